#include "torch_api.h"
#include <ATen/Parallel.h>
#include <ATen/functorch/BatchedTensorImpl.h>

// Sums of many numbers in one pass over memory. The roundings are those of libtorch's operations one after the other: a
// product, and then a fused multiply-add for each further term.
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define KELVIN_FMA __attribute__((target("avx2,fma")))
#if !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3")
#endif
static inline KELVIN_FMA float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline KELVIN_FMA double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

template <typename T>
static KELVIN_FMA void sums(T *out, const T *const *x, const T *c, int n, int64_t from, int64_t to) {
  const T *a = x[0], *b = x[1], *d = x[n - 1], *e = x[2 % n];
  const T ca = c[0], cb = c[1], cd = c[n - 1], ce = c[2 % n];
  if (n == 2)
    for (int64_t i = from; i < to; ++i)
      out[i] = fused(b[i], cb, ca * a[i]);
  else if (n == 3)
    for (int64_t i = from; i < to; ++i)
      out[i] = fused(d[i], cd, fused(b[i], cb, ca * a[i]));
  else
    for (int64_t i = from; i < to; ++i)
      out[i] = fused(d[i], cd, fused(e[i], ce, fused(b[i], cb, ca * a[i])));
}
#if !defined(__clang__)
#pragma GCC pop_options
#endif

template <typename T> static void all_sums(at::Tensor &out, const double *coeffs, tensor *tensors, int n) {
  const T *x[4];
  T c[4];
  for (int i = 0; i < n; ++i) {
    x[i] = tensors[i]->data_ptr<T>();
    c[i] = static_cast<T>(coeffs[i]);
  }
  T *to = out.data_ptr<T>();
  at::parallel_for(0, out.numel(), 32768, [&](int64_t from, int64_t end) { sums(to, x, c, n, from, end); });
}

// one_pass says whether the terms are plain numbers of one shape, and adds them.
static bool one_pass(at::Tensor &out, const double *coeffs, tensor *tensors, int n) {
  static const bool able = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (!able || n < 2 || n > 4 || kelvin_recorded())
    return false;
  const at::Tensor &first = *tensors[0];
  for (int i = 0; i < n; ++i) {
    const at::Tensor &t = *tensors[i];
    if (!t.defined() || at::functorch::isBatchedTensor(t) || !t.device().is_cpu() || t.layout() != at::kStrided ||
        (t.scalar_type() != at::kFloat && t.scalar_type() != at::kDouble) || t.scalar_type() != first.scalar_type() ||
        !t.is_contiguous() || t.requires_grad() || t.sizes() != first.sizes())
      return false;
  }
  out = at::empty(first.sizes(), first.options());
  if (first.scalar_type() == at::kFloat)
    all_sums<float>(out, coeffs, tensors, n);
  else
    all_sums<double>(out, coeffs, tensors, n);
  return true;
}
#else
static bool one_pass(at::Tensor &, const double *, tensor *, int) { return false; }
#endif

void kelvin_combine(tensor *out__, double *coeffs, tensor *tensors, int n) {
  KELVIN_OP(1, at::Tensor sum; if (!one_pass(sum, coeffs, tensors, n)) for (int i = 0; i < n; ++i) {
    if (i == 0)
      sum = coeffs[0] == 1.0 ? *tensors[0] : at::mul(*tensors[0], coeffs[0]);
    else if (i == 1)
      sum = at::add(sum, *tensors[1], coeffs[1]);
    else
      sum.add_(*tensors[i], coeffs[i]);
  } out__[0] = new torch::Tensor(n == 1 && coeffs[0] == 1.0 ? sum.clone() : sum);)
}
