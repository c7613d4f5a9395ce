// Kelvin's additions to gotch's C interface: errors in the output buffer, scopes, gradients,
// vmap, random numbers, data.
#ifndef KELVIN_H
#define KELVIN_H
#include <stdbool.h>

// A scope as the C++ side knows it: the index of its Go object. The structs are never freed, only used again.
typedef struct kelvin_scope {
  int64_t index;
  bool records; // whether gradients were recorded when it was opened: so they are again when it closes
} kelvin_scope;

#ifdef __cplusplus
extern thread_local kelvin_scope *kelvin_current;
char *kelvin_message(const std::exception &e);
// These throw: kelvin_type where a number names no element type, kelvin_readable where a tensor has no values of its
// own, kelvin_whole where a scalar is not a whole number.
at::ScalarType kelvin_type(int type);
at::Device kelvin_device(int d); // negative: main memory
void kelvin_readable(tensor t);
int64_t kelvin_whole(torch::Scalar *s);

// These throw where an operation would end the process, or not end: kelvin_require where a condition does not hold,
// kelvin_divides where the smallest integer is divided by -1, kelvin_multiple where it has a multiple, kelvin_finite
// where a number is infinite or none, the others where indices, paddings or sizes do not fit.
extern "C++" {
void kelvin_require(bool holds, const char *why);
void kelvin_divides(tensor self, tensor other);
void kelvin_divides(tensor self, scalar other);
void kelvin_divides(scalar self, tensor other);
void kelvin_multiple(tensor self, tensor other);
void kelvin_finite(tensor t);
void kelvin_indices(tensor indices, int64_t n);
void kelvin_bags(tensor weight, tensor indices, tensor offsets, int last, int64_t mode);
void kelvin_padding(tensor self, tensor grad, int64_t *padding, int length, int n); // grad may be null
void kelvin_pooled(tensor self, tensor grad, tensor indices, int64_t *output, int length, int n);
void kelvin_unfolded(tensor grad, int64_t *sizes, int length, int64_t dim, int64_t size, int64_t step);
}

// The body of a function with an output buffer of n results. Slot n says which scope owns them; on failure slot 0 is
// null and slot 1 holds the message.
#define KELVIN_OP(n, ...)                                                              \
  try {                                                                                \
    __VA_ARGS__;                                                                       \
    out__[n] = (torch::Tensor *)(void *)kelvin_current;                                \
  } catch (const std::exception &e) {                                                  \
    out__[1] = (torch::Tensor *)(void *)kelvin_message(e);                             \
    out__[0] = nullptr;                                                                \
  } catch (...) {                                                                      \
    out__[1] = (torch::Tensor *)(void *)strdup("unknown C++ exception");               \
    out__[0] = nullptr;                                                                \
  }
#endif

// Whether the operations of this thread are being recorded.
void kelvin_set_recorded(int on);
int kelvin_recorded(void);

// Scopes.
kelvin_scope *kelvin_new_scope(int64_t index);
kelvin_scope *kelvin_enter(kelvin_scope *s, int threads);
void kelvin_leave(kelvin_scope *previous, uintptr_t *tensors, int64_t n, uintptr_t *scalars, int64_t m);
kelvin_scope *kelvin_scope_now(void);
void kelvin_scalar_float(void **out, double v);
void kelvin_scalar_int(void **out, int64_t v);
void kelvin_free_tensor(tensor t);

// Tensors. kelvin_describe fills dims with up to 32 sizes and returns the rank, or -1 for an undefined tensor.
int kelvin_describe(tensor t, int64_t *dims, int *dtype, int *device, int *flags);
int64_t kelvin_nbytes(tensor t);
void kelvin_item(tensor t, double *value, char **error);

// Data.
void kelvin_from_data(tensor *out__, void *data, int data_type, int64_t *dims, int rank, int dtype, int device);
void kelvin_borrow(tensor *out__, void *data, int data_type, int64_t *dims, int rank, uint64_t handle);
void kelvin_read(tensor t, void *data, int data_type, int64_t numel, char **error);
void kelvin_write(tensor t, void *data, int data_type, int64_t numel, char **error);
void *kelvin_data(tensor t, int dtype, char **error);

// A tensor beside others, the first of which has one row for each chain, or is one. kind is one of those below; from
// are its elements. Where make is set, a tensor of its form is made, with elements at `to` that nobody set. Where it
// is KELVIN_TAKE and nothing else has the elements of one that is like the first, they are taken: then to is from.
enum { KELVIN_ROWS_LIKE, KELVIN_ROW_LIKE, KELVIN_NUMBERS_LIKE };
enum { KELVIN_MAKE = 1, KELVIN_TAKE };
typedef struct {
  uintptr_t t, from, to; // t may be null
  int make, kind;
} kelvin_row;
// kelvin_look looks at n tensors. dim is how long a row is. dtype is the type of all, single or double precision; -1,
// and nothing is made, where one is not contiguous in main memory, is of another type or form, has a row for all chains
// and make, or numbers and not. out__ has n + 2 slots: 0 is not null unless it failed, then come those that were made.
void kelvin_look(tensor *out__, kelvin_row *rows, int n, int64_t *dim, int *dtype);

// Autograd.
int kelvin_grad_mode(int enabled);
void kelvin_leaf(tensor *out__, tensor t);
// unused is what an input gets that the outputs do not depend on: 0 for an error, 1 for zeros, 2 for an undefined
// tensor.
void kelvin_grad(tensor *out__, tensor *outputs, int n_outputs, tensor *inputs, int n_inputs, tensor *grad_outputs,
                 int keep_graph, int create_graph, int unused);
// From here on a zero that comes to an elementwise function on the way back from t stays zero behind it.
void kelvin_guard(tensor t, char **error);

// Arithmetic: sum of coeffs[i] * tensors[i]; and per row of x, its norm, beside the values: out has 2 * rows numbers.
void kelvin_combine(tensor *out__, double *coeffs, tensor *tensors, int n);
void kelvin_readout(tensor values, tensor x, double *out, int64_t rows, char **error);

// Vmap.
int64_t kelvin_vmap_push(int64_t batch, int randomness, char **error);
void kelvin_vmap_pop(char **error);
void kelvin_vmap_in(tensor *out__, tensor t, int64_t dim, int64_t level);
void kelvin_vmap_out(tensor *out__, tensor t, int64_t dim, int64_t level, int64_t batch);

// Random numbers: row k is filled from the stream (seed, chains[k]) at position offset, counted in blocks of four
// 32-bit words. kind 0: standard normal, 1: uniform on (0, 1).
void kelvin_random(tensor *out__, int kind, uint64_t seed, uint64_t *chains, int64_t rows, uint64_t offset,
                   int64_t *dims, int rank, int dtype, int device);

// The keys of a seed for the ten rounds, aligned to 64 bytes: two for each, and each as often as a vector has it.
#define KELVIN_KEYS (10 * 2 * 8)
void kelvin_normal_keys(uint64_t seed, uint64_t *keys);

// The n standard normal numbers of single precision of one stream, by vectors of at most so many: 16, 8, or 1. keys are
// those of the seed. Meanwhile as many numbers at each of some addresses ahead come into the caches.
void kelvin_normal_floats(int width, const uint64_t *keys, uint64_t seed, uint64_t chain, uint64_t position, int64_t n,
                          float *out, const char *const *ahead, int addresses);

// Draws, whose parameters may be mapped. op 0: the logarithm of a gamma number of shape a, 1: Poisson of rate a, 2:
// binomial of count a and probability b, 3: multinomial of count a and weights b over its last dimension, 4: von Mises
// of concentration a. There is one seed for each evaluation of the level, or one alone where level is 0.
void kelvin_sample(tensor *out__, int op, tensor a, tensor b, int64_t level, uint64_t *seeds, int64_t n_seeds);

// The library.
char *kelvin_version(void);
char *kelvin_parallel_info(void);
char *kelvin_config(void);
int kelvin_cuda_devices(void);
void kelvin_cuda_synchronize(char **error);
int kelvin_max_threads(void);

#endif
