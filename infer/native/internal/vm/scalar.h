// Instructions on single numbers, in two forms: kernels, whose operands may lie anywhere, and the code of a K_SCALARS,
// whose operands lie in the work block.

// One number through a function on vectors, so that both give the same bits.
#define SCALAR1(f)                                                                                                    \
  static inline double s##f(double x) { return v##f(splat(x))[0]; }
#define SCALAR2(f)                                                                                                    \
  static inline double s##f(double a, double b) { return v##f(splat(a), splat(b))[0]; }
#if KVM_ISA > 0
#define NARROW1(f)                                                                                                    \
  double kvm_narrow_##f(double x);                                                                                    \
  FN double s##f(double x) { return kvm_narrow_##f(x); }
#define NARROW2(f)                                                                                                    \
  double kvm_narrow_##f(double a, double b);                                                                          \
  FN double s##f(double a, double b) { return kvm_narrow_##f(a, b); }
UNARY_OF(SCALAR1, NARROW1)
BINARY_OF(SCALAR2, NARROW2)
#else
UNARY(SCALAR1)
BINARY(SCALAR2)
#endif

// The same bits without vectors.
#define sneg(x) (-(x))
#define sabs(x) __builtin_fabs(x)
#define ssqrt(x) __builtin_sqrt(x)

FN double smove(double x) { return x; }
#if KVM_FMA
FN double sfma(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
FN double sfma(double a, double b, double c) { return a * b + c; }
#endif
FN double sfms(double a, double b, double c) { return sfma(a, b, -c); }
FN double sfnma(double a, double b, double c) { return sfma(-a, b, c); }
FN double sselect(double c, double a, double b) { return c != 0 ? a : b; }
FN double sif_lt(double a, double b, double c, double d) { return a < b ? c : d; }
FN double sif_le(double a, double b, double c, double d) { return a <= b ? c : d; }
FN double sif_eq(double a, double b, double c, double d) { return a == b ? c : d; }
FN double sif_ne(double a, double b, double c, double d) { return a != b ? c : d; }

#define TERNARY(X) X(fma) X(fms) X(fnma) X(select)
#define QUATERNARY(X) X(if_lt) X(if_le) X(if_eq) X(if_ne)

#define SCALAR_KERNEL(f, ...)                                                                                         \
  KERNEL(k_s##f) {                                                                                                    \
    (void)n;                                                                                                          \
    *AT(0) = s##f(__VA_ARGS__);                                                                                       \
  }
#define SCALAR_KERNEL1(f) SCALAR_KERNEL(f, *AT(1))
#define SCALAR_KERNEL2(f) SCALAR_KERNEL(f, *AT(1), *AT(2))
#define SCALAR_KERNEL3(f) SCALAR_KERNEL(f, *AT(1), *AT(2), *AT(3))
#define SCALAR_KERNEL4(f) SCALAR_KERNEL(f, *AT(1), *AT(2), *AT(3), *AT(4))
SCALAR_KERNEL1(move)
TERNARY(SCALAR_KERNEL3)
QUATERNARY(SCALAR_KERNEL4)
UNARY(SCALAR_KERNEL1)
BINARY(SCALAR_KERNEL2)

// Each function ends with the call of the next, which compilers make a jump. v is the result of the one before: what
// takes it from there does not wait until it is in memory.
typedef void (*scalar)(const kvm_scalar *in, char *work, char *const *bases, double v);
#define OPERAND(k) (*(double *)(work + in->off[k]))
#define SCALAR(name, x)                                                                                               \
  static void name(const kvm_scalar *in, char *work, char *const *bases, double v) {                                  \
    v = (x);                                                                                                          \
    OPERAND(0) = v;                                                                                                   \
    ((scalar)in[1].run)(in + 1, work, bases, v);                                                                      \
  }
#define CODE1(f)                                                                                                      \
  SCALAR(one_##f, s##f(OPERAND(1)))                                                                                   \
  SCALAR(one_##f##_1, s##f(v))
#define CODE2(f)                                                                                                      \
  SCALAR(one_##f, s##f(OPERAND(1), OPERAND(2)))                                                                       \
  SCALAR(one_##f##_1, s##f(v, OPERAND(2)))                                                                            \
  SCALAR(one_##f##_2, s##f(OPERAND(1), v))
#define CODE3(f)                                                                                                      \
  SCALAR(one_##f, s##f(OPERAND(1), OPERAND(2), OPERAND(3)))                                                           \
  SCALAR(one_##f##_1, s##f(v, OPERAND(2), OPERAND(3)))                                                                \
  SCALAR(one_##f##_2, s##f(OPERAND(1), v, OPERAND(3)))                                                                \
  SCALAR(one_##f##_3, s##f(OPERAND(1), OPERAND(2), v))
#define CODE4(f) SCALAR(one_##f, s##f(OPERAND(1), OPERAND(2), OPERAND(3), OPERAND(4)))
CODE1(move)
TERNARY(CODE3)
QUATERNARY(CODE4)
UNARY(CODE1)
BINARY(CODE2)

// A number from elsewhere, and one to elsewhere.
#define ELSEWHERE (*(double *)(bases[in->base] + in->off[1]))
SCALAR(one_get, ELSEWHERE)
static void one_put(const kvm_scalar *in, char *work, char *const *bases, double v) {
  v = OPERAND(0);
  ELSEWHERE = v;
  ((scalar)in[1].run)(in + 1, work, bases, v);
}
static void one_put_1(const kvm_scalar *in, char *work, char *const *bases, double v) {
  ELSEWHERE = v;
  ((scalar)in[1].run)(in + 1, work, bases, v);
}
static void one_end(const kvm_scalar *in, char *work, char *const *bases, double v) {
  (void)in, (void)work, (void)bases, (void)v;
}

KERNEL(k_scalars) {
  (void)n;
  const kvm_scalar *code = (const kvm_scalar *)(bases[B_POOL] + in->p);
  ((scalar)code->run)(code, bases[B_WORK], bases, 0);
}
