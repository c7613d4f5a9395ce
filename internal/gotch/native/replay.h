// An evaluation that was recorded once, as the operations that libtorch did below autograd and vmap, to be done again.
#ifndef KELVIN_REPLAY_H
#define KELVIN_REPLAY_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kelvin_program kelvin_program;
typedef struct kelvin_workspace kelvin_workspace;

// Starts to record the calling thread. Of the known tensors the first is the point, the others are the batch: they are
// contiguous and begin at their storage's start.
void kelvin_replay_start(void **known, int n, char **error);

// Ends the recording on the thread that started it. It returns null with an error where recording failed, and null with
// a reason where the operations cannot be done again.
kelvin_program *kelvin_replay_stop(void **outputs, int n, char **reason, char **error);

// Says why two recordings, at two points and with two weights, are not one program; null where they are. What is the
// weight in each is the weight of later evaluations of b.
char *kelvin_replay_compare(kelvin_program *a, kelvin_program *b, double weight_a, double weight_b);

// Does the operations that depend on constants alone, and returns the number of those that a point needs.
int64_t kelvin_replay_ready(kelvin_program *p, char **error);

// Takes another batch of the same shapes, whose tensors must live as long as they are used, and does the operations
// that depend on it alone. No evaluation may be under way.
void kelvin_replay_batch(kelvin_program *p, void **tensors, int n, char **error);

// What one evaluation at a time needs. The program must live longer.
kelvin_workspace *kelvin_replay_workspace(kelvin_program *p, char **error);

// Evaluates at a point, and gives new tensors for the outputs.
void kelvin_replay_run(kelvin_workspace *w, void *point, double weight, void **outputs, char **error);

void kelvin_replay_free_workspace(kelvin_workspace *w);
void kelvin_replay_free(kelvin_program *p);

#ifdef __cplusplus
}
#endif

#endif
