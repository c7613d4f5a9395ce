#include "replay_recording.h"
#include "replay.h"
#include "replay_program.h"
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/record_function.h>
#include <algorithm>
#include <cstring>
#include <functional>

namespace replay {

namespace {

// More calls than this are no density that is worth it.
constexpr size_t most_calls = 1 << 20;

thread_local Recording *current = nullptr;

struct Context : at::ObserverContext {
  int64_t call = -1;
};

void guarded(Recording *r, const std::function<void()> &f) {
  try {
    f();
  } catch (const std::exception &e) {
    r->failure = e.what();
  } catch (...) {
    r->failure = "unknown C++ exception";
  }
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction &fn) {
  Recording *r = current;
  if (r == nullptr || !r->failure.empty())
    return nullptr;
  auto context = std::make_unique<Context>();
  guarded(r, [&] {
    if (r->calls.size() >= most_calls)
      throw std::runtime_error("the function does more than a million operations");
    Call c;
    c.name = fn.name();
    if (const auto name = fn.operator_name()) {
      c.name = name->name;
      c.op = c10::Dispatcher::singleton().findSchema(*name);
      c.composite = c.op && c.op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
    }
    for (const auto &v : fn.inputs())
      c.arguments.push_back(r->value(v, false));
    c.before = static_cast<int64_t>(r->storages.size());
    context->call = static_cast<int64_t>(r->calls.size());
    (r->open.empty() ? r->roots : r->calls[r->open.back()].calls).push_back(context->call);
    r->open.push_back(context->call);
    r->calls.push_back(std::move(c));
  });
  return context;
}

void end(const at::RecordFunction &fn, at::ObserverContext *context) {
  Recording *r = current;
  auto *c = static_cast<Context *>(context);
  if (r == nullptr || c == nullptr || c->call < 0 || !r->failure.empty())
    return;
  guarded(r, [&] {
    for (const auto &v : fn.outputs()) {
      Value made = r->value(v, true);
      r->calls[c->call].results.push_back(std::move(made));
    }
    r->calls[c->call].ended = true;
    while (!r->open.empty() && r->open.back() >= c->call)
      r->open.pop_back();
  });
}

} // namespace

Value Recording::tensor(const at::Tensor &t, bool made, int known) {
  Value v;
  if (!t.defined()) {
    v.constant = t;
    return v;
  }
  if (at::functorch::isBatchedTensor(t) || t.layout() != at::kStrided || !t.has_storage() || t.is_neg() ||
      t.is_conj()) {
    v.kind = Value::Opaque;
    return v;
  }
  const c10::Storage &s = t.storage();
  auto found = ids.emplace(s.unsafeGetStorageImpl(), static_cast<int64_t>(storages.size()));
  if (found.second) {
    storages.push_back({s, static_cast<int64_t>(s.nbytes()), s.device(), known, made, ""});
    // One that is met first as an argument was there before, or was filled without an operation.
    const char *data = static_cast<const char *>(s.data());
    if (!made && known < 0 && s.device().is_cpu() && data != nullptr)
      storages.back().contents.assign(data, s.nbytes());
  }
  // An operation may enlarge what it is given to write into.
  Storage &is = storages[found.first->second];
  is.bytes = std::max(is.bytes, static_cast<int64_t>(s.nbytes()));
  v.kind = Value::Tensor;
  v.place = static_cast<int64_t>(places.size());
  places.push_back({found.first->second, t.storage_offset(), t.scalar_type(),
                    t.unsafeGetTensorImpl()->is_wrapped_number(), t.sizes().vec(), t.strides().vec()});
  return v;
}

Value Recording::value(const c10::IValue &v, bool made) {
  if (v.isTensor())
    return tensor(v.toTensor(), made, -1);
  Value out;
  out.constant = v;
  if (!v.isList())
    return out;
  const auto list = v.toListRef();
  bool tensors = false;
  for (const auto &item : list)
    tensors = tensors || item.isTensor();
  if (!tensors)
    return out;
  out.kind = Value::List;
  for (const auto &item : list)
    out.items.push_back(value(item, made));
  out.constant = c10::impl::GenericList(v.toList().elementType());
  return out;
}

void start(void **known, int n) {
  if (current != nullptr)
    throw std::logic_error("this thread is recorded already");
  if (!at::isRecordFunctionEnabled())
    throw std::logic_error("observers are switched off on this thread");
  auto r = std::make_unique<Recording>();
  for (int i = 0; i < n; ++i)
    r->tensor(*static_cast<at::Tensor *>(known[i]), false, i);
  if (static_cast<int>(r->storages.size()) != n)
    throw std::invalid_argument("tensors of the batch share memory");
  r->handle = at::addThreadLocalCallback(at::RecordFunctionCallback(begin, end)
                                             .needsInputs(true)
                                             .needsOutputs(true)
                                             .scopes({at::RecordScope::FUNCTION}));
  current = r.release();
}

std::unique_ptr<Recording> stop(void **outputs, int n) {
  std::unique_ptr<Recording> r(current);
  current = nullptr;
  if (r == nullptr)
    throw std::logic_error("this thread is not recorded");
  at::removeCallback(r->handle);
  if (!r->failure.empty())
    throw std::runtime_error(r->failure);
  for (int i = 0; i < n; ++i)
    r->outputs.push_back(r->tensor(*static_cast<at::Tensor *>(outputs[i]), false, -1));
  return r;
}

} // namespace replay
