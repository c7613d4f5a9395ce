// Updates of stochastic-gradient methods without tensors: see package fuse.
#ifndef KELVIN_FUSE_H
#define KELVIN_FUSE_H
#include "abi.h"

#ifdef __cplusplus
extern "C" {
#endif

// Registers are vectors of dim numbers. Those from KELVIN_PARTS on belong to a chain and stay; the rest of them does
// not.
enum {
  KELVIN_THETA,
  KELVIN_GRAD,
  KELVIN_NOISE,
  KELVIN_A,
  KELVIN_B,
  KELVIN_D,
  KELVIN_E,
  KELVIN_PARTS,
  KELVIN_REGISTERS = KELVIN_PARTS + 7
};

// What an operation does with each element.
enum {
  KELVIN_COMBINE,  // to = sum of c[i] from[i]
  KELVIN_COMBINE_PRODUCT, // the same, where the last two are one summand, their product; of 3 or 4
  KELVIN_MULTIPLY, // to = c[0] from[0] from[1]
  KELVIN_DIVIDE,   // to = c[0] from[0] / from[1]
  KELVIN_ROOT,     // to = c[0] sqrt(from[0]) + c[1]
  KELVIN_INVERSE_ROOT, // to = c[0] / sqrt(from[0] + c[1])
  KELVIN_SHIFT,    // to = from[0] + c[0]
  KELVIN_CLAMP,    // to = min(max(from[0], c[0]), c[1])
  KELVIN_BELOW,    // to = 1 where from[0] < 0, else 0
  KELVIN_ATMC,     // a whole update of ATMC, see Program.ATMC: from are momenta, which are `to`, thermostats and noise;
                   // c are H, Friction, Scale, Velocity, Plus and Limit. It writes theta and thermostats too
  // The rest is for passes alone: the mean of from[0] over the elements of a chain has the number to; and the number
  // `to` of a chain grows by c[0] times the mean that has the number from[0], and by c[1].
  KELVIN_MEAN,
  KELVIN_DRIFT,
};

typedef struct {
  int32_t code, to, terms;
  int32_t from[4];
  double c[6];
} kelvin_op;

// One update of all chains.
typedef struct {
  int32_t first, count; // of its operations
  int32_t noise;        // whether it draws noise
  int32_t value;        // whether the value is evaluated too, and must be finite, also of chains that were not held
  int32_t record;       // whether the points before it are kept, with their values
  double weight;        // of the log Jacobian
} kelvin_move;

// A function of a batch.
typedef struct {
  kelvin_fn main, prologue; // prologue is null where there is none
  const kelvin_call *call;
} kelvin_function;

// A tensor of which each update takes other rows.
typedef struct {
  const char *from;
  char *to;
  long bytes; // of a row
} kelvin_gather;

typedef struct {
  kelvin_function value, grad; // grad need not write a value
  long chains, dim, stride;    // stride: from one chain to the next in a register
  double *registers[KELVIN_REGISTERS];
  double *const *aux; // scratch for the outputs of value
  uint64_t seed, offset;
  const uint64_t *streams; // of each chain
  double *values, *norms;  // of each chain, of the last update
  unsigned char *held;     // of each chain: the last update did not move it
  long total;              // held updates since the last call
  long undefined;          // those of them with a finite value and a gradient that is NaN
} kelvin_chains;

// Makes n updates. rows has chains x (dim + 3) numbers for each update that records: point, value, norm of the
// gradient, whether the update that led there was held. index has size rows of data for each update, or is null. It
// returns 0, or 1 + the number of the update whose batch has a bad index.
long kelvin_fuse_run(kelvin_chains *f, long n, const kelvin_move *moves, const kelvin_op *ops, double *rows,
                     long gathers, const kelvin_gather *gather, long size, const int64_t *index);

// n standard normal numbers of a stream, in double precision.
void kelvin_fuse_normal(uint64_t seed, uint64_t stream, uint64_t offset, long n, double *out);

#ifdef __cplusplus
}
#endif
#endif
