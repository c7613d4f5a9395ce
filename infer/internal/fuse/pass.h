// One update of large states in one pass over memory: see Pass in pass.go.
#ifndef KELVIN_PASS_H
#define KELVIN_PASS_H
#include "loop.h"

#ifdef __cplusplus
extern "C" {
#endif

// What a register is in a pass.
enum {
  KELVIN_SCRATCH, // a block of its own, in cache
  KELVIN_ROWS,    // a row of elements for each chain
  KELVIN_ALIKE,   // one row for all chains
  KELVIN_SINGLE,  // one number for each chain
};

typedef struct {
  long chains, dim;
  int single, threads;                   // precision; 0 threads for as many as libtorch uses
  const void *from[KELVIN_REGISTERS];    // what the update begins with
  void *to[KELVIN_REGISTERS];            // what it makes; null where it makes nothing. It may be the same memory where
                                         // no chain is held, but for numbers
  unsigned char kinds[KELVIN_REGISTERS]; // of registers
  uint64_t seed, offset;
  int noise;           // whether the operations read it
  int count, means;    // of operations, and of numbers of KELVIN_MEAN
} kelvin_pass;

// Makes the update. means gets the means, chain by chain; partial is memory for as many of each block, see
// kelvin_pass_blocks. A chain that is held, if held is not null, keeps what it began with.
void kelvin_pass_run(const kelvin_pass *p, const kelvin_op *ops, const uint64_t *streams, const unsigned char *held,
                     double *means, double *partial);

// How many blocks the elements of a chain are cut into.
long kelvin_pass_blocks(long dim);

// n standard normal numbers of a stream, by vectors of at most so many: 16, 8, or 1.
void kelvin_pass_normal(int width, uint64_t seed, uint64_t stream, uint64_t offset, long n, float *out);

#ifdef __cplusplus
}
#endif
#endif
