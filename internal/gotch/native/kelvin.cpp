#include "torch_api.h"
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/record_function.h>
#include <cmath>
#include <torch/csrc/autograd/autograd.h>
#include <torch/version.h>

// ---- errors and scopes ----------------------------------------------------------------------------------------------

thread_local kelvin_scope *kelvin_current = nullptr;

char *kelvin_message(const std::exception &e) {
  const char *text = e.what();
  if (auto *c10 = dynamic_cast<const c10::Error *>(&e)) {
    text = c10->what_without_backtrace();
  }
  return strdup(text[0] ? text : "unknown error");
}

// The body of a function that reports through a char** named error.
#define KELVIN_TRY(...)                                                        \
  *error = nullptr;                                                            \
  try {                                                                        \
    __VA_ARGS__;                                                               \
  } catch (const std::exception &e) {                                          \
    *error = kelvin_message(e);                                                \
  } catch (...) {                                                              \
    *error = strdup("unknown C++ exception");                                  \
  }

static thread_local int recorded = 0;
void kelvin_set_recorded(int on) { recorded = on; }
int kelvin_recorded(void) { return recorded; }

kelvin_scope *kelvin_new_scope(int64_t index) { return new kelvin_scope{index, true}; }

kelvin_scope *kelvin_enter(kelvin_scope *s, int threads) {
  // The number of threads is kept per thread by OpenMP, so a thread that started before a change has to be told.
  if (threads > 0 && at::get_num_threads() != threads) {
    at::set_num_threads(threads);
  }
  kelvin_scope *previous = kelvin_current;
  s->records = at::GradMode::is_enabled();
  kelvin_current = s;
  return previous;
}

void kelvin_leave(kelvin_scope *previous, uintptr_t *tensors, int64_t n, uintptr_t *scalars, int64_t m) {
  if (kelvin_current != nullptr && kelvin_current->records != at::GradMode::is_enabled()) {
    at::GradMode::set_enabled(kelvin_current->records); // a guard of gotch's was not dropped
  }
  kelvin_current = previous;
  for (int64_t i = 0; i < n; ++i)
    delete reinterpret_cast<tensor>(tensors[i]);
  for (int64_t i = 0; i < m; ++i)
    delete reinterpret_cast<scalar>(scalars[i]);
}

kelvin_scope *kelvin_scope_now(void) { return kelvin_current; }

void kelvin_scalar_float(void **out, double v) {
  out[0] = new torch::Scalar(v);
  out[1] = kelvin_current;
}

void kelvin_scalar_int(void **out, int64_t v) {
  out[0] = new torch::Scalar(v);
  out[1] = kelvin_current;
}

void kelvin_free_tensor(tensor t) { delete t; }

// ---- tensors and data -----------------------------------------------------------------------------------------------

static int device_number(const at::Device &d) { return d.is_cuda() ? (d.has_index() ? d.index() : 0) : -1; }

at::ScalarType kelvin_type(int type) {
  if (type < 0 || type >= static_cast<int>(at::ScalarType::NumOptions) ||
      type == static_cast<int>(at::ScalarType::Undefined))
    throw std::invalid_argument("element type number " + std::to_string(type) + " is not one of this libtorch's");
  return static_cast<at::ScalarType>(type);
}

int64_t kelvin_whole(torch::Scalar *s) {
  if (s->isFloatingPoint() && s->to<double>() != std::floor(s->to<double>()))
    throw std::invalid_argument("this libtorch knows whole corrections only");
  return s->to<int64_t>();
}

at::Device kelvin_device(int d) { return d < 0 ? at::Device(at::kCPU) : at::Device(at::kCUDA, d); }

int kelvin_describe(tensor t, int64_t *dims, int *dtype, int *device, int *flags) {
  try {
    if (!t->defined())
      return -1;
    *dtype = static_cast<int>(t->scalar_type());
    *device = device_number(t->device());
    *flags = (t->is_contiguous() ? 1 : 0) | (t->requires_grad() ? 2 : 0) |
             (at::functorch::isBatchedTensor(*t) ? 4 : 0);
    int rank = 0;
    for (int64_t s : t->sizes()) {
      if (rank == 32)
        break;
      dims[rank++] = s;
    }
    return rank;
  } catch (...) {
    return -1;
  }
}

int64_t kelvin_nbytes(tensor t) {
  try {
    return t->defined() && t->has_storage() ? static_cast<int64_t>(t->nbytes()) : 0;
  } catch (...) {
    return 0;
  }
}

void kelvin_item(tensor t, double *value, char **error) { KELVIN_TRY(kelvin_readable(t); *value = t->item<double>()) }

void kelvin_from_data(tensor *out__, void *data, int data_type, int64_t *dims, int rank, int dtype, int device) {
  KELVIN_OP(1, auto src = torch::from_blob(data, at::IntArrayRef(dims, rank),
                                           at::TensorOptions().dtype(static_cast<at::ScalarType>(data_type)));
            auto to = at::TensorOptions().dtype(kelvin_type(dtype)).device(kelvin_device(device));
            out__[0] = new torch::Tensor(at::empty(at::IntArrayRef(dims, rank), to)); out__[0]->copy_(src);)
}

extern "C" void kelvinRelease(uint64_t handle); // in Go: unpins the memory

void kelvin_borrow(tensor *out__, void *data, int data_type, int64_t *dims, int rank, uint64_t handle) {
  KELVIN_OP(1, out__[0] = new torch::Tensor(torch::from_blob(
                   data, at::IntArrayRef(dims, rank), [handle](void *) { kelvinRelease(handle); },
                   at::TensorOptions().dtype(static_cast<at::ScalarType>(data_type))));)
}

void kelvin_readable(tensor t) {
  if (t->defined() && at::functorch::isBatchedTensor(*t))
    throw std::invalid_argument("the values of a tensor cannot be read inside a vmapped function: it stands for all "
                                "the chains or samples at once (use tensor operations such as where)");
  RECORD_FUNCTION("kelvin::read", std::vector<c10::IValue>{*t}); // recorders of operations must know of it
}

// host returns the elements as a contiguous tensor in main memory, and fails when there are not numel of them.
static at::Tensor host(tensor t, int data_type, int64_t numel) {
  kelvin_readable(t);
  if (t->numel() != numel)
    throw std::invalid_argument("the tensor has " + std::to_string(t->numel()) + " elements and the slice " +
                                std::to_string(numel));
  return t->detach().to(at::kCPU, static_cast<at::ScalarType>(data_type)).contiguous();
}

void kelvin_read(tensor t, void *data, int data_type, int64_t numel, char **error) {
  KELVIN_TRY(auto h = host(t, data_type, numel); if (numel > 0) memcpy(data, h.data_ptr(), h.nbytes());)
}

void kelvin_write(tensor t, void *data, int data_type, int64_t numel, char **error) {
  KELVIN_TRY(
      RECORD_FUNCTION("kelvin::write", std::vector<c10::IValue>{*t});
      if (t->numel() != numel) throw std::invalid_argument("the tensor has " + std::to_string(t->numel()) +
                                                           " elements and the slice " + std::to_string(numel));
      at::NoGradGuard off; auto src = torch::from_blob(
          data, t->sizes(), at::TensorOptions().dtype(static_cast<at::ScalarType>(data_type)));
      t->copy_(src);)
}

void *kelvin_data(tensor t, int dtype, char **error) {
  KELVIN_TRY(
      kelvin_readable(t);
      if (!t->device().is_cpu()) throw std::invalid_argument("the tensor is not in main memory");
      if (!t->is_contiguous()) throw std::invalid_argument("the tensor is not contiguous");
      if (static_cast<int>(t->scalar_type()) != dtype) throw std::invalid_argument("the tensor has another type");
      return t->data_ptr();)
  return nullptr;
}

// plain says whether the elements of a tensor can be read in main memory one after the other.
static bool plain(tensor t) {
  return t->defined() && t->device().is_cpu() && t->is_contiguous() && !at::functorch::isBatchedTensor(*t);
}

// form is the form of a tensor beside the sizes of the first.
static int form(at::IntArrayRef own, at::IntArrayRef first) {
  if (own == first)
    return KELVIN_ROWS_LIKE;
  if (own == first.slice(first.size() - 1))
    return KELVIN_ROW_LIKE;
  const auto chains = first.slice(0, first.size() - 1);
  if (own.size() == first.size() && own.back() == 1 && own.slice(0, own.size() - 1) == chains)
    return KELVIN_NUMBERS_LIKE;
  return -1;
}

void kelvin_look(tensor *out__, kelvin_row *rows, int n, int64_t *dim, int *dtype) {
  KELVIN_OP(
      n + 1, auto first = reinterpret_cast<tensor>(rows[0].t); at::Tensor made[16]; *dim = 0; *dtype = -1;
      bool alike = n <= 16 && first != nullptr && plain(first) && first->dim() > 0 &&
                   (first->scalar_type() == at::kFloat || first->scalar_type() == at::kDouble);
      for (int i = 0; i < n && alike; ++i) {
        auto t = reinterpret_cast<tensor>(rows[i].t);
        if (t == nullptr)
          continue;
        alike = plain(t) && t->scalar_type() == first->scalar_type();
        if (!alike)
          break;
        kelvin_readable(t);
        rows[i].kind = form(t->sizes(), first->sizes());
        rows[i].from = reinterpret_cast<uintptr_t>(t->data_ptr());
        alike = rows[i].kind == KELVIN_ROWS_LIKE ||
                rows[i].kind == (rows[i].make ? KELVIN_NUMBERS_LIKE : KELVIN_ROW_LIKE);
      }
      for (int i = 0; i < n && alike; ++i) {
        auto t = reinterpret_cast<tensor>(rows[i].t);
        if (t == nullptr || !rows[i].make)
          continue;
        if (rows[i].make == KELVIN_TAKE && rows[i].kind == KELVIN_ROWS_LIKE && t->use_count() == 1 &&
            t->storage().use_count() == 1) {
          rows[i].to = rows[i].from;
          continue;
        }
        made[i] = at::empty(t->sizes(), at::TensorOptions().dtype(t->scalar_type()));
        rows[i].to = reinterpret_cast<uintptr_t>(made[i].data_ptr());
      }
      if (alike) {
        *dim = first->size(-1);
        *dtype = static_cast<int>(first->scalar_type());
      }
      for (int i = 0; i < n; ++i)
        out__[i + 1] = made[i].defined() ? new torch::Tensor(std::move(made[i])) : nullptr;
      out__[0] = reinterpret_cast<tensor>(rows);)
}

// ---- autograd -------------------------------------------------------------------------------------------------------

int kelvin_grad_mode(int enabled) {
  int before = at::GradMode::is_enabled() ? 1 : 0;
  if (enabled != before)
    at::GradMode::set_enabled(enabled != 0);
  return before;
}

void kelvin_leaf(tensor *out__, tensor t) {
  KELVIN_OP(1, if (t->defined() && at::functorch::isBatchedTensor(*t)) throw std::invalid_argument(
                   "gradients cannot be taken inside a vmapped function: make the leaf outside, map over it, and take "
                   "the gradient of the sum of the results");
            out__[0] = new torch::Tensor(t->detach().set_requires_grad(true));)
}

void kelvin_grad(tensor *out__, tensor *outputs, int n_outputs, tensor *inputs, int n_inputs, tensor *grad_outputs,
                 int keep_graph, int create_graph, int unused) {
  KELVIN_OP(
      n_inputs, std::vector<at::Tensor> ys; std::vector<at::Tensor> xs; std::vector<at::Tensor> gs;
      for (int i = 0; i < n_outputs; ++i) ys.push_back(*outputs[i]);
      for (int i = 0; i < n_inputs; ++i) xs.push_back(*inputs[i]);
      for (int i = 0; grad_outputs != nullptr && i < n_outputs; ++i) gs.push_back(*grad_outputs[i]);
      auto grads = torch::autograd::grad(ys, xs, gs, keep_graph != 0, create_graph != 0, unused != 0);
      for (int i = 0; i < n_inputs; ++i) out__[i] = new torch::Tensor(
          grads[i].defined() || unused == 2 ? grads[i] : at::zeros_like(xs[i]));)
}

// ---- arithmetic -----------------------------------------------------------------------------------------------------

void kelvin_readout(tensor values, tensor x, double *out, int64_t rows, char **error) {
  KELVIN_TRY(
      at::NoGradGuard off; auto flat = x->detach().reshape({rows, -1});
      auto norms = at::linalg_vector_norm(flat, 2, at::IntArrayRef({1}));
      auto both = at::stack({values->detach().reshape({rows}), norms}).to(at::kCPU, at::kDouble).contiguous();
      memcpy(out, both.data_ptr(), both.nbytes());)
}

// ---- vmap -----------------------------------------------------------------------------------------------------------

namespace ft = at::functorch;

#if TORCH_VERSION_MAJOR < 2
// Before 2.0 initAndPushDynamicLayer kept a life handle for each level in a table of the whole process, so that two
// threads could not map at once. Only functorch's own gradients need the handles: the stack of levels, which belongs to
// the thread, is enough for vmap.
int64_t kelvin_vmap_push(int64_t batch, int randomness, char **error) {
  KELVIN_TRY(auto stack = ft::getDynamicLayerStack(); const int64_t level = static_cast<int64_t>(stack.size()) + 1;
             stack.emplace_back(ft::TransformType::Vmap, level, batch, static_cast<ft::RandomnessType>(randomness));
             ft::setDynamicLayerStack(stack); if (level == 1) ft::setDynamicLayerFrontBackKeysIncluded(true);
             return level;)
  return -1;
}

void kelvin_vmap_pop(char **error) {
  KELVIN_TRY(auto stack = ft::getDynamicLayerStack();
             if (stack.empty()) throw std::logic_error("no level of vmap is open on this thread");
             stack.pop_back(); const bool last = stack.empty();
             ft::setDynamicLayerStack(stack); if (last) ft::setDynamicLayerFrontBackKeysIncluded(false);)
}
#else
int64_t kelvin_vmap_push(int64_t batch, int randomness, char **error) {
  KELVIN_TRY(return ft::initAndPushDynamicLayer(ft::TransformType::Vmap, batch,
                                                static_cast<ft::RandomnessType>(randomness));)
  return -1;
}

void kelvin_vmap_pop(char **error) { KELVIN_TRY(ft::popDynamicLayerAndDeleteMetadata();) }
#endif

void kelvin_vmap_in(tensor *out__, tensor t, int64_t dim, int64_t level) {
  KELVIN_OP(1, int64_t d = dim < 0 ? dim + t->dim() : dim;
            if (d < 0 || d >= t->dim()) throw std::invalid_argument("the mapped dimension " + std::to_string(dim) +
                                                                    " is out of range");
            out__[0] = new torch::Tensor(ft::makeBatched(*t, d, level));)
}

void kelvin_vmap_out(tensor *out__, tensor t, int64_t dim, int64_t level, int64_t batch) {
  KELVIN_OP(1, auto *impl = ft::maybeGetBatchedImpl(*t); bool mapped = impl != nullptr && impl->level() == level;
            const int64_t rank = mapped ? impl->value().dim() : t->dim() + 1; // of the result
            if (dim < -rank || dim >= rank) throw std::invalid_argument(
                "the output dimension " + std::to_string(dim) + " is out of range: the result has " +
                std::to_string(rank));
            at::Tensor value; if (mapped) { value = impl->value().movedim(impl->bdim(), dim); } else {
              // The result does not depend on the mapped inputs: it is the same for each.
              auto sizes = t->sizes().vec();
              int64_t d = dim < 0 ? dim + rank : dim;
              sizes.insert(sizes.begin() + d, batch);
              value = t->unsqueeze(d).expand(sizes);
            } out__[0] = new torch::Tensor(value);)
}

// ---- the library ----------------------------------------------------------------------------------------------------

char *kelvin_version(void) { return strdup(TORCH_VERSION); }
char *kelvin_parallel_info(void) { return strdup(at::get_parallel_info().c_str()); }
char *kelvin_config(void) { return strdup(at::show_config().c_str()); }
int kelvin_cuda_devices(void) {
  try {
    return torch::cuda::is_available() ? static_cast<int>(torch::cuda::device_count()) : 0;
  } catch (...) {
    return 0;
  }
}
void kelvin_cuda_synchronize(char **error) { KELVIN_TRY(if (torch::cuda::is_available()) torch::cuda::synchronize();) }
int kelvin_max_threads(void) { return at::get_num_threads(); }
