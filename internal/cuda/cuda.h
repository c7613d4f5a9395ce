#ifndef KELVIN_CUDA_H
#define KELVIN_CUDA_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

// The functions that return a text return the reason why they failed, which the caller frees; null is success.
typedef struct kelvin_cuda kelvin_cuda;

// Loads the kernel onto a device. Libraries are file names, tried in their order, each ended by a zero byte and all by
// another.
char *kelvin_cuda_load(int device, const char *libraries, kelvin_cuda **out);
// Starts the kernel on the device's default stream. out and chains are there; where chains is null, that of row k is
// first + k * step.
char *kelvin_cuda_fill(kelvin_cuda *k, int is_float, void *out, void *chains, uint64_t first, uint64_t step,
                       uint64_t seed, uint64_t offset, int64_t rows, int64_t n, int normal);
// The same numbers, in main memory.
void kelvin_cuda_serial(int is_float, void *out, void *chains, uint64_t first, uint64_t step, uint64_t seed,
                        uint64_t offset, int64_t rows, int64_t n, int normal);
// What NVRTC makes of the kernel for an architecture, which the caller frees.
char *kelvin_cuda_compile(const char *libraries, const char *architecture, char **code, size_t *size);

#ifdef __cplusplus
}
#endif
#endif
