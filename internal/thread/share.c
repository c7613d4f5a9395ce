#include "share.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

typedef struct job {
  long parts;
  void (*f)(const void *, long);
  const void *of;
  atomic_long next;    // the part that nobody has taken
  int wanted, joined;  // helpers
  atomic_int left;     // of those that joined, how many are done
} job;

static atomic_int threads = 1, callers;
static pthread_mutex_t owner = PTHREAD_MUTEX_INITIALIZER; // of who has the helpers
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // of what follows
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static job *current;
static int helpers;

void kelvin_share_threads(int n) { atomic_store(&threads, n); }

static void take(job *j) {
  for (long part; (part = atomic_fetch_add(&j->next, 1)) < j->parts;)
    j->f(j->of, part);
}

static void *help(void *none) {
  pthread_mutex_lock(&lock);
  for (;;) {
    while (!current || current->joined == current->wanted)
      pthread_cond_wait(&work, &lock);
    job *j = current;
    j->joined++;
    pthread_mutex_unlock(&lock);
    take(j);
    pthread_mutex_lock(&lock);
    atomic_fetch_add(&j->left, 1);
    pthread_cond_signal(&done);
  }
  return none;
}

// Starts helpers until there are so many, as far as the system lets it. They take no signals: those are for Go.
static void start(int wanted) {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  for (pthread_t t; helpers < wanted && !pthread_create(&t, NULL, help, NULL); helpers++)
    pthread_detach(t);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
}

// Publishes a job, takes parts of it, and waits for the helpers, the last of which are soon done.
static void lead(job *j) {
  pthread_mutex_lock(&lock);
  start(j->wanted);
  current = j;
  for (int i = 0; i < j->wanted; i++)
    pthread_cond_signal(&work);
  pthread_mutex_unlock(&lock);
  take(j);
  pthread_mutex_lock(&lock);
  current = NULL;
  int joined = j->joined;
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < 4000 && atomic_load(&j->left) < joined; i++)
    atomic_signal_fence(memory_order_seq_cst);
  pthread_mutex_lock(&lock); // who was last has left the job when it is ours
  while (atomic_load(&j->left) < joined)
    pthread_cond_wait(&done, &lock);
  pthread_mutex_unlock(&lock);
}

void kelvin_share_parts(long parts, void (*f)(const void *, long), const void *of) {
  job j = {.parts = parts, .f = f, .of = of};
  j.wanted = atomic_load(&threads) - 1 - atomic_fetch_add(&callers, 1);
  if (j.wanted > parts - 1)
    j.wanted = parts - 1;
  if (j.wanted > 0 && !pthread_mutex_trylock(&owner)) {
    lead(&j);
    pthread_mutex_unlock(&owner);
  } else {
    take(&j);
  }
  atomic_fetch_sub(&callers, 1);
}
