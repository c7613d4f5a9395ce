#include "torch_api.h"
#ifdef __GLIBC__
#include <ATen/ops/bmm_cpu_dispatch.h>
#include <dlfcn.h>
#include <limits>
#include <torch/library.h>
#include <vector>

// Products of many small matrices, which vmap makes of one, call the BLAS at once. Without MKL libtorch makes three
// tensors and a checked call for each pair, which takes up to ten times as long as the product itself: two fifths of
// the gradients of single data of a small network.
//
// Every product is what it is alone, whatever the others are. A result that is given has the same numbers, so that a
// replay has the bits of what it was recorded from.

namespace kelvin_bmm {
namespace {

template <class T>
using gemm = void (*)(const char *, const char *, const int *, const int *, const int *, const T *, const T *,
                      const int *, const T *, const int *, const T *, T *, const int *);

gemm<float> single_precision;
gemm<double> double_precision;

gemm<float> routine(float) { return single_precision; }
gemm<double> routine(double) { return double_precision; }

// The BLAS is called for products of so many multiplications: below them libtorch has a loop of its own; above them
// OpenBLAS takes several threads, and what surrounds the product no longer counts.
const int64_t least = 400, most = 1 << 18;

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

// The products of n matrices [m, 1] and [1, k].
template <class T>
KELVIN_LOOP void outer(T *to, const T *a, const T *b, const view &left, const view &right, int64_t n, int64_t m,
                       int64_t k) {
  std::vector<T> row(static_cast<size_t>(k));
  for (int64_t i = 0; i < n; ++i) {
    const T *x = a + i * left.step, *y = b + i * right.step;
    for (int64_t j = 0; j < k; ++j)
      row[static_cast<size_t>(j)] = y[j * right.of_column];
    for (int64_t h = 0; h < m; ++h, to += k) {
      const T factor = x[h * left.of_row];
      const T *__restrict__ in = row.data();
      T *__restrict__ out = to;
      for (int64_t j = 0; j < k; ++j)
        out[j] = factor * in[j];
    }
  }
}

template <class T>
void products(const at::Tensor &left, const at::Tensor &right, const view &l, const view &r, const at::Tensor &result) {
  const int64_t n = left.size(0), m = left.size(1), inner = left.size(2), k = right.size(2);
  const T *a = static_cast<const T *>(left.data_ptr()), *b = static_cast<const T *>(right.data_ptr());
  T *to = static_cast<T *>(result.data_ptr());
  if (inner == 1)
    return outer(to, a, b, l, r, n, m, k);
  const char tl = l.transposed ? 'T' : 'N', tr = r.transposed ? 'T' : 'N';
  const int M = static_cast<int>(k), N = static_cast<int>(m), K = static_cast<int>(inner);
  const T one = 1, zero = 0;
  for (int64_t i = 0; i < n; ++i) // along rows, so the transposes in the other order
    routine(T())(&tr, &tl, &M, &N, &K, &one, b + i * r.step, &r.leading, a + i * l.step, &l.leading, &zero,
                 to + i * m * k, &M);
}

// Whether a tensor is numbers in main memory, and nothing besides. Dimensions have no names in the latest versions, and
// Kelvin gives them none.
bool plain(const at::Tensor &t) {
#if TORCH_VERSION_MAJOR < 2
  if (t.has_names())
    return false;
#endif
  return t.dim() == 3 && t.layout() == at::kStrided && !t.is_neg() && t.device().is_cpu();
}

// Whether the products of two batches are made here.
bool here(const at::Tensor &left, const at::Tensor &right) {
  const auto type = left.scalar_type();
  if ((type != at::kFloat && type != at::kDouble) || right.scalar_type() != type || !plain(left) || !plain(right) ||
      left.size(0) < 1 || left.size(0) != right.size(0) || left.size(2) != right.size(1))
    return false;
  // Each factor is compared first, so that no product is too large.
  const int64_t m = left.size(1), inner = left.size(2), k = right.size(2);
  return m <= most && inner <= most && k <= most && m * inner <= most && m * inner * k <= most &&
         m * inner * k >= least && view(left).fits && view(right).fits;
}

void make(const at::Tensor &left, const at::Tensor &right, const at::Tensor &result) {
  const view l(left), r(right);
  if (left.scalar_type() == at::kFloat)
    products<float>(left, right, l, r, result);
  else
    products<double>(left, right, l, r, result);
}

at::Tensor bmm(const at::Tensor &left, const at::Tensor &right) {
  if (!here(left, right))
    return at::cpu::bmm(left, right);
  const at::Tensor result = at::empty({left.size(0), left.size(1), right.size(2)}, left.options());
  make(left, right, result);
  return result;
}

at::Tensor &bmm_out(const at::Tensor &left, const at::Tensor &right, at::Tensor &result) {
  if (!here(left, right) || !plain(result) || result.scalar_type() != left.scalar_type() ||
      result.size(0) != left.size(0) || result.size(1) != left.size(1) || result.size(2) != right.size(2) ||
      !result.is_contiguous() || result.is_alias_of(left) || result.is_alias_of(right))
    return at::cpu::bmm_outf(left, right, result);
  make(left, right, result);
  return result;
}

// libtorch warns of a kernel in the place of another, from version 2 on of the first one alone; these are meant to be.
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
  try {
    static auto *library = new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, __LINE__);
    library->impl("bmm", bmm);
    library->impl("bmm.out", bmm_out);
  } catch (...) { // a libtorch whose operation is another keeps its own
    return false;
  }
  return true;
}();

} // namespace
} // namespace kelvin_bmm
#endif
