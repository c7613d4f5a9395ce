#include "torch_api.h"
#ifdef __GLIBC__
#include <c10/core/CPUAllocator.h>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <map>
#include <mutex>
#include <pthread.h>
#include <thread>
#include <vector>

// Large blocks of tensors are kept for a second when they are given back, for the next tensor of about their size. The
// C library gives such blocks back to the system, or not, as it happens: then every page of the next one is a fault,
// and a gradient of three million parameters takes up to twice as long.
//
// What is in use and what is kept are together at most a quarter more than what was in use at once, in the last two
// seconds, or 32 MiB where that is more: without these the blocks of other sizes are missing when the most are in use.
//
// Other blocks are kept by the thread that gives them back, up to four MiB. The C library looks for an aligned block
// among all that were freed, which takes as long as an operation on few numbers, and seldom finds the one that is in a
// cache.

namespace {

using when = std::chrono::steady_clock::time_point;

const size_t large = 1 << 18;                   // bytes, from which on blocks are kept for all threads
const size_t page = 1 << 12;                    // sizes of large blocks are multiples of it
const int64_t spare = 1 << 25;                  // bytes kept besides what is in use, where that is little
const auto idle = std::chrono::milliseconds(1000); // for so long a block is kept

struct block {
  void *memory;
  when since;
};

// The state is never destroyed: tensors may be given back while the process ends.
struct keeper {
  std::mutex lock;
  std::condition_variable some;
  std::multimap<size_t, block> kept; // by size
  int64_t used = 0, keeps = 0;       // bytes
  int64_t most = 0, before = 0;      // in use at once, in this second and the last
  bool watched = false;              // whether the thread that drops blocks runs
};

keeper &the() {
  static keeper *k = new keeper;
  return *k;
}

// The bytes of a large block. The C library makes some blocks a little larger than was asked for, which is not counted:
// blocks for tensors of one size are of one size.
size_t size_of(void *memory) { return malloc_usable_size(memory) / page * page; }

// drop gives blocks to the C library, after the lock is given back.
struct dropped {
  std::vector<void *> blocks;
  ~dropped() {
    for (void *b : blocks)
      free(b);
  }
};

void drop(keeper &k, std::multimap<size_t, block>::iterator i, dropped &to) {
  to.blocks.push_back(i->second.memory);
  k.keeps -= static_cast<int64_t>(i->first);
  k.kept.erase(i);
}

void watch() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr); // signals are the program's
  keeper &k = the();
  for (;;) {
    {
      std::unique_lock<std::mutex> held(k.lock);
      k.some.wait(held, [&] { return !k.kept.empty(); });
    }
    std::this_thread::sleep_for(idle);
    dropped gone;
    std::lock_guard<std::mutex> held(k.lock);
    const when now = std::chrono::steady_clock::now();
    for (auto i = k.kept.begin(); i != k.kept.end();) {
      const auto next = std::next(i);
      if (now - i->second.since >= idle)
        drop(k, i, gone);
      i = next;
    }
    k.before = k.most;
    k.most = k.used;
  }
}

// take finds a block, null where there is none: of those of one size the one that was given back last, which is the
// most likely to be in a cache.
void *take(size_t n) {
  keeper &k = the();
  std::lock_guard<std::mutex> held(k.lock);
  auto i = k.kept.lower_bound(n);
  if (i == k.kept.end() || i->first - n > n / 8)
    return nullptr;
  i = std::prev(k.kept.upper_bound(i->first));
  void *memory = i->second.memory;
  k.keeps -= static_cast<int64_t>(i->first);
  k.used += static_cast<int64_t>(i->first);
  k.most = std::max(k.most, k.used);
  k.kept.erase(i);
  return memory;
}

// make makes room among what is kept, then a new block; null where there is no memory.
void *make(size_t n) {
  keeper &k = the();
  n = (n + page - 1) / page * page;
  {
    dropped gone;
    std::lock_guard<std::mutex> held(k.lock);
    const int64_t peak = std::max({k.most, k.before, k.used + static_cast<int64_t>(n)});
    const int64_t bound = peak + std::max(peak / 4, spare);
    while (!k.kept.empty() && k.used + static_cast<int64_t>(n) + k.keeps > bound) {
      auto oldest = k.kept.begin();
      for (auto i = k.kept.begin(); i != k.kept.end(); ++i)
        if (i->second.since < oldest->second.since)
          oldest = i;
      drop(k, oldest, gone);
    }
  }
  void *memory = nullptr;
  if (posix_memalign(&memory, 64, n) != 0) {
    {
      dropped gone;
      std::lock_guard<std::mutex> held(k.lock);
      while (!k.kept.empty())
        drop(k, k.kept.begin(), gone);
    }
    if (posix_memalign(&memory, 64, n) != 0)
      return nullptr;
  }
  std::lock_guard<std::mutex> held(k.lock);
  k.used += static_cast<int64_t>(size_of(memory));
  k.most = std::max(k.most, k.used);
  return memory;
}

// The sizes of blocks that a thread keeps: multiples of `alignment` up to `small`, then eight for each doubling.
const size_t alignment = 64, small = 1 << 13; // bytes
const size_t middle = large - large / 16;     // bytes; the last size
const size_t smalls = small / alignment;      // how many sizes there are up to `small`
const size_t sizes = smalls + 8 * 5 - 1;      // and all
const size_t shelf = 1 << 22;                 // bytes that a thread keeps

// A size of blocks: its number, from 1 on, and its bytes.
struct kind {
  size_t number, bytes;
};

// The least size of at least n bytes, 1 <= n <= middle; above, up to `large`, it is `large`.
kind least_of(size_t n) {
  if (n <= small) {
    const size_t i = (n + alignment - 1) / alignment;
    return {i, i * alignment};
  }
  const int doubling = 63 - __builtin_clzll(n - 1); // n - 1 is from 2^doubling on
  const size_t step = size_t(1) << (doubling - 3), i = (n + step - 1) / step;
  return {smalls + 8 * static_cast<size_t>(doubling - 13) + i - 8, i * step};
}

// The largest size of at most n bytes; number 0 where there is none.
kind most_of(size_t n) {
  if (n < alignment)
    return {0, 0};
  const kind above = least_of(n);
  if (above.bytes == n)
    return above;
  if (n <= small)
    return {above.number - 1, above.bytes - alignment};
  const size_t step = (size_t(1) << (63 - __builtin_clzll(n))) / 8;
  return {above.number - 1, n / step * step};
}

// What a thread keeps: the blocks of a size are a list that begins at first[number].
struct shelves {
  void *first[sizes + 1];
  size_t bytes;
  bool ended; // the thread is ending

  void empty() {
    for (void *&f : first)
      while (f != nullptr) {
        void *block = f;
        memcpy(&f, block, sizeof f);
        free(block);
      }
    bytes = 0;
  }
};

thread_local shelves mine; // of zeros, and never destroyed: tensors may be given back while the thread ends

struct ending {
  bool begun = false;
  ~ending() {
    mine.ended = true;
    mine.empty();
  }
};

thread_local ending at_end;

// little is a block of a thread's own, or a new one; null where there is no memory.
void *little(size_t n) {
  const kind k = least_of(n);
  void *&f = mine.first[k.number];
  if (f == nullptr) {
    void *memory = nullptr;
    return posix_memalign(&memory, alignment, k.bytes) == 0 ? memory : nullptr;
  }
  void *block = f;
  memcpy(&f, block, sizeof f);
  mine.bytes -= k.bytes;
  return block;
}

void give_little(void *memory, size_t n) {
  const kind k = most_of(n);
  if (k.number == 0 || mine.ended) {
    free(memory);
    return;
  }
  at_end.begun = true; // makes it, so that it is destroyed
  if (mine.bytes + k.bytes > shelf)
    mine.empty();
  memcpy(memory, &mine.first[k.number], sizeof(void *));
  mine.first[k.number] = memory;
  mine.bytes += k.bytes;
}

void give(void *memory) {
  if (memory == nullptr)
    return;
  const size_t n = malloc_usable_size(memory);
  if (n < large) {
    give_little(memory, n);
    return;
  }
  const size_t size = size_of(memory);
  keeper &k = the();
  std::lock_guard<std::mutex> held(k.lock);
  k.used -= static_cast<int64_t>(size);
  try {
    if (!k.watched)
      std::thread(watch).detach();
    k.watched = true;
    k.kept.insert({size, {memory, std::chrono::steady_clock::now()}});
    k.keeps += static_cast<int64_t>(size);
    k.some.notify_one();
  } catch (...) { // no thread, or no memory
    free(memory);
  }
}

// The functions of the base class are constant, and are there, or not, with the version of libtorch.
struct allocator final : at::Allocator {
  at::Allocator *usual = c10::GetCPUAllocator();

  at::DataPtr block_of(size_t n) const {
    if (n == 0)
      return usual->allocate(n);
    // Between the last size and `large` a block has `large` bytes: what a block is follows from its size alone.
    const size_t own = n <= middle ? n : std::max(n, large);
    void *memory = own <= middle ? little(own) : take(own);
    if (memory == nullptr && own > middle)
      memory = make(own);
    if (memory == nullptr)
      return usual->allocate(n); // and says that there is no memory
    return {memory, memory, &give, at::Device(at::kCPU)};
  }
  at::DataPtr allocate(size_t n) const { return block_of(n); }
  at::DataPtr allocate(size_t n) { return block_of(n); }
  at::DeleterFnPtr raw_deleter() const { return &give; }
  void copy_data(void *to, const void *from, std::size_t n) const { memcpy(to, from, n); }
};

const bool installed = [] {
  c10::SetCPUAllocator(new allocator);
  return true;
}();

} // namespace
#endif
