#include "torch_api.h"
#ifdef __GLIBC__
#include <ATen/Parallel.h>
#include <ATen/ops/bmm_cpu_dispatch.h>
#include <algorithm>
#include <dlfcn.h>
#include <limits>
#include <torch/library.h>
#include <vector>

// Products of many small matrices, which vmap makes of one, call the BLAS at once. Without MKL libtorch makes three
// tensors and a checked call for each pair, which takes up to ten times as long as the product itself: two fifths of
// the gradients of single data of a small network.
//
// Every product is what it is alone, whatever the others are, and whichever thread makes it.

namespace kelvin_bmm {
namespace {

template <class T>
using gemm = void (*)(const char *, const char *, const int *, const int *, const int *, const T *, const T *,
                      const int *, const T *, const int *, const T *, T *, const int *);

gemm<float> single_precision;
gemm<double> double_precision;

gemm<float> the(float) { return single_precision; }
gemm<double> the(double) { return double_precision; }

// The BLAS is called for products of so many multiplications: below them libtorch has a loop of its own, above them
// what surrounds the product no longer counts.
const int64_t least = 400, most = 1 << 18;

// Multiplications for which another thread is worth it.
const int64_t grain = 1 << 15;

// A matrix of a batch [n, rows, columns] as the BLAS sees it, which goes along columns: its transpose, or itself.
struct view {
  bool fits = false, transposed = false;
  int64_t step = 0, of_row = 0, of_column = 0; // from a matrix to the next, and within it
  int leading = 0;

  explicit view(const at::Tensor &t) {
    const int64_t rows = t.size(1), columns = t.size(2);
    step = t.stride(0);
    of_row = t.stride(1);
    of_column = t.stride(2);
    int64_t lead;
    if (columns == 1 || of_column == 1) {
      lead = rows == 1 ? columns : of_row;
      fits = lead >= columns;
    } else {
      transposed = true;
      lead = of_column;
      fits = (rows == 1 || of_row == 1) && lead >= rows;
    }
    fits = fits && lead <= std::numeric_limits<int>::max();
    leading = static_cast<int>(lead);
  }
};

#if defined(__GNUC__) && !defined(__clang__)
#define KELVIN_LOOP __attribute__((noinline, optimize("O3")))
#else
#define KELVIN_LOOP
#endif

// The products from `from` on of n matrices [m, 1] and [1, k].
template <class T>
KELVIN_LOOP void outer(T *to, const T *a, const T *b, const view &left, const view &right, int64_t m, int64_t k,
                       int64_t from, int64_t n) {
  std::vector<T> row(static_cast<size_t>(k));
  for (int64_t i = from; i < from + n; ++i) {
    const T *x = a + i * left.step, *y = b + i * right.step;
    for (int64_t j = 0; j < k; ++j)
      row[static_cast<size_t>(j)] = y[j * right.of_column];
    T *r = to + i * m * k;
    for (int64_t h = 0; h < m; ++h, r += k) {
      const T factor = x[h * left.of_row];
      const T *__restrict__ in = row.data();
      T *__restrict__ out = r;
      for (int64_t j = 0; j < k; ++j)
        out[j] = factor * in[j];
    }
  }
}

template <class T>
at::Tensor products(const at::Tensor &left, const at::Tensor &right, const view &l, const view &r) {
  const int64_t n = left.size(0), m = left.size(1), inner = left.size(2), k = right.size(2);
  at::Tensor result = at::empty({n, m, k}, left.options());
  const T *a = static_cast<const T *>(left.data_ptr()), *b = static_cast<const T *>(right.data_ptr());
  T *to = static_cast<T *>(result.data_ptr());
  const int64_t each = m * inner * k;
  at::parallel_for(0, n, std::max<int64_t>(1, grain / each), [&](int64_t from, int64_t until) {
    if (inner == 1)
      return outer(to, a, b, l, r, m, k, from, until - from);
    const char tl = l.transposed ? 'T' : 'N', tr = r.transposed ? 'T' : 'N';
    const int M = static_cast<int>(k), N = static_cast<int>(m), K = static_cast<int>(inner);
    const T one = 1, zero = 0;
    for (int64_t i = from; i < until; ++i) // along rows, so the transposes in the other order
      the(T())(&tr, &tl, &M, &N, &K, &one, b + i * r.step, &r.leading, a + i * l.step, &l.leading, &zero,
               to + i * m * k, &M);
  });
  return result;
}

// Later versions have no names of dimensions, or none that Kelvin makes.
bool named(const at::Tensor &t) {
#if TORCH_VERSION_MAJOR < 2
  return t.has_names();
#else
  return false;
#endif
}

at::Tensor bmm(const at::Tensor &left, const at::Tensor &right) {
  const auto plain = [](const at::Tensor &t) {
    return t.dim() == 3 && t.layout() == at::kStrided && !t.is_neg() && !named(t) && t.device().is_cpu();
  };
  const auto type = left.scalar_type();
  if ((type != at::kFloat && type != at::kDouble) || right.scalar_type() != type || !plain(left) || !plain(right) ||
      left.size(0) < 2 || left.size(0) != right.size(0) || left.size(2) != right.size(1))
    return at::cpu::bmm(left, right);
  // Each factor is compared first, so that no product is too large.
  const int64_t m = left.size(1), inner = left.size(2), k = right.size(2);
  if (m > most || inner > most || k > most || m * inner > most || m * inner * k > most || m * inner * k < least)
    return at::cpu::bmm(left, right);
  const view l(left), r(right);
  if (!l.fits || !r.fits)
    return at::cpu::bmm(left, right);
  return type == at::kFloat ? products<float>(left, right, l, r) : products<double>(left, right, l, r);
}

// libtorch warns of a kernel in the place of another; this one is meant to be.
struct silent final : c10::WarningHandler {
#if TORCH_VERSION_MAJOR < 2
  void process(const c10::SourceLocation &, const std::string &, const bool) override {}
#else
  void process(const c10::Warning &) override {}
#endif
};

#if TORCH_VERSION_MAJOR < 2
namespace warning = c10::Warning;
#else
namespace warning = c10::WarningUtils;
#endif

const bool installed = [] {
  if (at::hasMKL())
    return false;
  single_precision = reinterpret_cast<gemm<float>>(dlsym(RTLD_DEFAULT, "sgemm_"));
  double_precision = reinterpret_cast<gemm<double>>(dlsym(RTLD_DEFAULT, "dgemm_"));
  if (single_precision == nullptr || double_precision == nullptr)
    return false;
  silent none;
  warning::WarningHandlerGuard guard(&none);
  static auto *library = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, __LINE__);
  library->impl("bmm", bmm);
  return true;
}();

} // namespace
} // namespace kelvin_bmm
#endif
