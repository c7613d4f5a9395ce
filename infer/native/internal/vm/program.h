// What the encoder in Go makes and the machine runs.
#ifndef KVM_PROGRAM_H
#define KVM_PROGRAM_H
#include <stdint.h>
#include "../cc/abi.h"

// An operand is the address base[k] + off[k] in bytes. Base is a number in the table of bases of an evaluation.
// Operand 0 is the result.
typedef struct kvm_instr {
  uint16_t kernel;  // enum kvm_kernel
  uint16_t flags;   // bit k: operand k is one number, not an array; the other bits belong to the kernel
  uint16_t base[5];
  uint32_t off[5];
  int32_t n;        // length, where it is fixed
  int64_t p, q;     // parameters
  const void *run;  // the kernel's function; null at the end
} kvm_instr;

// An instruction on single numbers in the work block, at these places. Those that take a number from elsewhere, or
// give one, have it at bases[base] + off[1].
typedef struct kvm_scalar {
  const void *run;
  uint32_t off[5], base;
} kvm_scalar;

// Bases. Those of the inputs follow, then of the outputs, then the cursors of a loop.
enum { B_WORK, B_CONST, B_PREPARED, B_POOL, B_X, B_GRAD, B_VALUE, B_WEIGHT, B_CALL, B_STATUS, B_FIRST };

// A term of an instruction that has several of one kind.
typedef struct kvm_term {
  uint16_t base[2];
  uint32_t off[2];
  uint32_t minus;
} kvm_term;

// A cursor is a base that moves with the iterations of a loop. Steps are in bytes.
typedef struct kvm_cursor {
  int64_t base, off, block;
  int64_t outer[6];
} kvm_cursor;

enum { KVM_OUTER = 6 };

// A loop: for each point of the outer dimensions run `outer`, then for each block of rows run `block`.
typedef struct kvm_loop {
  int64_t outers, sizes[KVM_OUTER];
  int64_t rows, per_block, inner; // rows in all, rows in a block, iterations in a row
  int64_t cursors, first;         // the cursors, and the number of the first as a base
  int64_t cursor, outer, block;   // places in the pool: of cursors, and of instructions
  int64_t blocks;                 // instructions of block
} kvm_loop;

// A matrix operation, repeated over a space.
typedef struct kvm_matrix {
  int64_t base, off, row, col; // off in bytes, the rest in elements
} kvm_matrix;

typedef struct kvm_step {
  int64_t dims, sizes[8], strides[3][8];
  int64_t m, n, k;
  int64_t upper, unit, right, lower, product;
  int64_t scratch; // place in work
  kvm_matrix out, a, b;
} kvm_step;

// A set of elements that get a number: off + Σ stride·i.
typedef struct kvm_fill {
  int64_t dims, sizes[8], strides[8];
} kvm_fill;

typedef struct kvm_program {
  const kvm_instr *part[2];
  char *pool;
  int64_t bases, inputs, outputs; // bases in all
  int64_t table;                  // the place of the table of bases in work
} kvm_program;

enum kvm_type { T_F64, T_F32, T_I64, T_U8, T_I32 };

// Operations on single numbers. From S_UNARY and S_BINARY on in the order of ir.Op; behind S_COUNT those that are no
// kernels.
enum kvm_scalar_op {
  S_MOVE, S_FMA, S_FMS, S_FNMA, S_SELECT, S_IF_LT, S_IF_LE, S_IF_EQ, S_IF_NE,
  S_UNARY, S_BINARY = S_UNARY + 33, S_COUNT = S_BINARY + 16,
  S_GET = S_COUNT, S_PUT, S_END, S_ALL
};

// Kernels. From K_UNARY on in the order of ir.Op. Of those on arrays the name ends with the forms of the operands,
// v for an array and s for one number, where they have functions of their own.
enum kvm_kernel {
  K_LOOP, K_MATMUL, K_CHOLESKY, K_SOLVE, K_SCAN, K_CALL, K_FILL, K_SCALARS,
  K_MOVE, K_LOAD, K_STORE, K_INDEX, K_SCATTER, K_LAST, K_QUOTIENT, K_LINEAR, K_DOTS,
  K_SUM, K_PROD, K_MAX, K_DOT,             // all elements to one number
  K_ROWS_SUM, K_ROWS_PROD, K_ROWS_MAX,     // each row to one number
  K_EACH_SUM, K_EACH_PROD, K_EACH_MAX,     // element by element into memory
  K_AT_SUM, K_AT_PROD, K_AT_MAX,           // into elements that a table names
  K_SELECT, K_IF_LT, K_IF_LE, K_IF_EQ, K_IF_NE,
  K_FMA_VVV, K_FMA_VVS, K_FMA_VSV, K_FMA_VSS,
  K_FMS_VVV, K_FMS_VVS, K_FMS_VSV, K_FMS_VSS,
  K_FNMA_VVV, K_FNMA_VVS, K_FNMA_VSV, K_FNMA_VSS,
  K_UNARY, K_BINARY = K_UNARY + 33,        // three forms each: vv, vs, sv
  K_SCALAR = K_BINARY + 3 * 16,            // on single numbers, in the order of kvm_scalar_op
  K_COUNT = K_SCALAR + S_COUNT
};

typedef struct kvm_variant {
  const char *name;
  int (*supported)(void);
  kelvin_fn part[2];
  kelvin_dense dense;
  const void *kernels[K_COUNT];
  const void *scalars[S_ALL][4]; // form k takes operand k from the instruction before; null where there is none
} kvm_variant;

extern const kvm_variant *const kvm_variants[]; // the best first, null at the end
#endif
