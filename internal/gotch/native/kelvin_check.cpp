#include "torch_api.h"
#include <ATen/Dispatch.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <c10/util/accumulate.h>
#include <cmath>
#include <limits>

// What libtorch leaves to the processor, to memory and to LAPACK. No check is an operation: none must be recorded.

void kelvin_require(bool holds, const char *why) {
  if (!holds)
    throw std::invalid_argument(why);
}

// physical is the tensor of numbers below maps; false where there are none in main memory.
static bool physical(at::Tensor &x) {
  while (at::functorch::isBatchedTensor(x))
    x = at::functorch::maybeGetBatchedImpl(x)->value();
  return x.defined() && x.layout() == at::kStrided && x.device().is_cpu() && x.has_storage() && x.numel() > 0;
}

// every says whether f holds for each number of a tensor, in the order of its indices.
template <typename T, typename F> static bool every(const at::Tensor &x, const F &f) {
  const T *data = x.data_ptr<T>();
  std::vector<int64_t> at(x.dim(), 0);
  for (int64_t left = x.numel(), offset = 0; left > 0; --left) {
    if (!f(data[offset]))
      return false;
    for (int64_t d = x.dim() - 1; d >= 0; --d) {
      offset += x.stride(d);
      if (++at[d] < x.size(d))
        break;
      offset -= x.stride(d) * at[d];
      at[d] = 0;
    }
  }
  return true;
}

// integers says whether f holds for each number of a tensor of integers; true for any other tensor.
template <typename F> static bool integers(at::Tensor x, const F &f) {
  bool yes = true;
  if (physical(x) && at::isIntegralType(x.scalar_type(), false))
    AT_DISPATCH_INTEGRAL_TYPES(x.scalar_type(), "integers", [&] {
      yes = every<scalar_t>(x, [&](scalar_t v) { return f(static_cast<int64_t>(v)); });
    });
  return yes;
}

// ---- integers whose quotient the processor refuses ------------------------------------------------------------------

// holds looks for a value in a tensor as its elements are converted to T.
template <typename T> static bool holds(const at::Tensor &t, T value) {
  return !integers(t, [&](int64_t v) { return static_cast<T>(v) != value; });
}

template <typename T> static bool holds(const at::Scalar &s, T value) {
  return s.isIntegral(false) && static_cast<T>(s.to<int64_t>()) == value;
}

// smallest says whether x holds the smallest integer of a type whose quotients the processor checks.
template <typename A> static bool smallest(at::ScalarType type, const A &x) {
  return (type == at::kLong && holds(x, std::numeric_limits<int64_t>::min())) ||
         (type == at::kInt && holds(x, std::numeric_limits<int32_t>::min()));
}

template <typename A, typename B> static void quotient(const A &self, const B &other) {
  const auto type = at::result_type(self, other);
  if (((type == at::kLong && holds<int64_t>(other, -1)) || (type == at::kInt && holds<int32_t>(other, -1))) &&
      smallest(type, self))
    throw std::invalid_argument("integer overflow: the smallest integer divided by -1 is larger than the largest");
}

void kelvin_divides(tensor self, tensor other) { quotient(*self, *other); }
void kelvin_divides(tensor self, scalar other) { quotient(*self, *other); }
void kelvin_divides(scalar self, tensor other) { quotient(*self, *other); }

// The greatest common divisor, by which libtorch divides, may come out as -1.
void kelvin_multiple(tensor self, tensor other) {
  const auto type = at::result_type(*self, *other);
  kelvin_require(!smallest(type, *self) && !smallest(type, *other),
                 "integer overflow: a multiple of the smallest integer is larger than the largest");
}

// ---- indices, places and sizes that do not fit ----------------------------------------------------------------------

// alike says whether two tensors have the same sizes but for the last n.
static bool alike(const at::Tensor &a, const at::Tensor &b, int64_t n) {
  return a.dim() == b.dim() && a.dim() >= n && a.sizes().slice(0, a.dim() - n) == b.sizes().slice(0, b.dim() - n);
}

void kelvin_indices(tensor indices, int64_t n) {
  kelvin_require(n >= 0 && integers(*indices, [&](int64_t v) { return 0 <= v && v < n; }),
                 "an index is out of range");
}

void kelvin_bags(tensor weight, tensor indices, tensor offsets, int last, int64_t mode) {
  kelvin_require(weight->dim() == 2 && indices->dim() == 1 && offsets->dim() == 1,
                 "weights must be a matrix, indices and offsets vectors");
  kelvin_require(0 <= mode && mode <= 2, "the mode must be 0 (sum), 1 (mean) or 2 (max)");
  kelvin_require(!last || offsets->numel() > 0, "there must be an offset behind the last bag");
  kelvin_indices(indices, weight->size(0));
  int64_t before = 0;
  kelvin_require(integers(*offsets,
                          [&](int64_t v) {
                            const bool fits = before <= v && v <= indices->numel();
                            before = v;
                            return fits;
                          }),
                 "offsets must not fall, nor lead behind the indices");
}

void kelvin_padding(tensor self, tensor grad, int64_t *padding, int length, int n) {
  kelvin_require(length == 2 * n, "a dimension needs two paddings");
  kelvin_require(self->dim() == n + 1 || self->dim() == n + 2, "the tensor has too few or too many dimensions");
  kelvin_require(grad == nullptr || alike(*self, *grad, n), "the gradient has another shape");
  for (int i = 0; i < n; ++i) { // paddings begin with those of the last dimension
    const int64_t size = self->size(-1 - i), before = padding[2 * i], behind = padding[2 * i + 1];
    kelvin_require(-size < before && before < size && -size < behind && behind < size,
                   "paddings must be smaller than what they reflect");
    kelvin_require(grad == nullptr || grad->size(-1 - i) == size + before + behind, "the gradient has another shape");
  }
}

void kelvin_pooled(tensor self, tensor grad, tensor indices, int64_t *output, int length, int n) {
  kelvin_require(length == n, "a dimension needs an output size");
  kelvin_require(self->dim() == n + 1 || self->dim() == n + 2, "the tensor has too few or too many dimensions");
  kelvin_require(alike(*self, *grad, n) && indices->sizes() == grad->sizes() &&
                     grad->sizes().slice(grad->dim() - n) == at::IntArrayRef(output, n),
                 "gradient, indices and output sizes must fit");
  kelvin_indices(indices, c10::multiply_integers(self->sizes().slice(self->dim() - n)));
}

void kelvin_unfolded(tensor grad, int64_t *sizes, int length, int64_t dim, int64_t size, int64_t step) {
  const int64_t d = at::maybe_wrap_dim(dim, length);
  kelvin_require(length > 0 && grad->dim() == length + 1 && step > 0 && 0 <= size && size <= sizes[d] &&
                     grad->size(d) == (sizes[d] - size) / step + 1 && grad->size(length) == size,
                 "the windows do not fit the sizes");
  for (int64_t i = 0; i < length; ++i)
    kelvin_require(i == d || grad->size(i) == sizes[i], "the windows do not fit the sizes");
}

// ---- numbers that LAPACK does not end with --------------------------------------------------------------------------

void kelvin_finite(tensor t) {
  at::Tensor x = *t;
  if (!physical(x) || (x.scalar_type() != at::kDouble && x.scalar_type() != at::kFloat))
    return;
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "finite", [&] {
    kelvin_require(every<scalar_t>(x, [](scalar_t v) { return std::isfinite(v); }),
                   "the matrix has numbers that are not finite");
  });
}
