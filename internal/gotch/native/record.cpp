#include "record.h"
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/record_function.h>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

enum Word : int64_t { Begin = 1, End = 2, Known = 3, Output = 4, Storage = 5 };
enum Kind : int64_t { None, Int, Double, Bool, String, Tensor, Undefined, List, Opaque, Other };

// More calls than this are no density that a plan is made of.
constexpr int64_t most_calls = 1 << 20;

struct Recording {
  kelvin_record out{};
  std::vector<int64_t> words;
  std::string bytes;
  std::unordered_map<const void *, int64_t> ids;       // of each storage
  std::unordered_map<std::string, int64_t> texts;      // where a text lies in bytes
  std::vector<c10::Storage> storages;                  // kept, so that no address is used again
  std::vector<int64_t> stack;                          // the calls that are open
  int64_t calls = 0;
  at::CallbackHandle handle = 0;
  std::string failure;

  void text(const std::string &s) {
    auto at = texts.find(s);
    if (at == texts.end()) {
      at = texts.emplace(s, static_cast<int64_t>(bytes.size())).first;
      bytes += s;
    }
    words.push_back(at->second);
    words.push_back(static_cast<int64_t>(s.size()));
  }

  // storage is the number of a tensor's storage. One that is met first as an argument was there before the recording
  // began, or was filled without an operation: its contents are copied, unless it is known.
  int64_t storage(const at::Tensor &t, bool made, bool known) {
    const c10::Storage &s = t.storage();
    const void *key = s.unsafeGetStorageImpl();
    auto found = ids.find(key);
    if (found != ids.end())
      return found->second;
    const int64_t id = static_cast<int64_t>(storages.size());
    ids[key] = id;
    storages.push_back(s);
    const int64_t size = static_cast<int64_t>(s.nbytes());
    const char *data = static_cast<const char *>(s.data());
    const bool copied = !made && !known && t.device().is_cpu() && data != nullptr && size > 0;
    pending.insert(pending.end(), {Storage, id, size, made ? 0 : 1, copied ? 1 : 0,
                                   copied ? static_cast<int64_t>(contents.size()) : 0});
    if (copied) {
      contents.append(data, static_cast<size_t>(size));
      contents.resize((contents.size() + 7) / 8 * 8);
    }
    return id;
  }

  void tensor(const at::Tensor &t, bool made, bool known) {
    if (!t.defined()) {
      words.push_back(Undefined);
      return;
    }
    const char *why = nullptr;
    if (at::functorch::isBatchedTensor(t))
      why = "mapped";
    else if (t.layout() != at::kStrided)
      why = "sparse";
    else if (!t.has_storage())
      why = "without storage";
    else if (t.is_neg() || t.is_conj())
      why = "a lazy negation or conjugate";
    if (why != nullptr) {
      words.push_back(Opaque);
      text(why);
      return;
    }
    const int64_t id = storage(t, made, known);
    words.insert(words.end(), {Tensor, id, t.storage_offset(), static_cast<int64_t>(t.scalar_type()),
                               t.device().is_cpu() ? 0 : 1, t.unsafeGetTensorImpl()->is_wrapped_number() ? 1 : 0,
                               t.dim()});
    for (int64_t n : t.sizes())
      words.push_back(n);
    for (int64_t n : t.strides())
      words.push_back(n);
  }

  void value(const c10::IValue &v, bool made) {
    if (v.isTensor()) {
      tensor(v.toTensor(), made, false);
    } else if (v.isNone()) {
      words.push_back(None);
    } else if (v.isDouble()) {
      const double d = v.toDouble();
      int64_t bits;
      memcpy(&bits, &d, sizeof bits);
      words.insert(words.end(), {Double, bits});
    } else if (v.isBool()) {
      words.insert(words.end(), {Bool, v.toBool() ? 1 : 0});
    } else if (v.isInt()) {
      words.insert(words.end(), {Int, v.toInt()});
    } else if (v.isString()) {
      words.push_back(String);
      text(v.toStringRef());
    } else if (v.isList()) {
      const auto list = v.toListRef();
      words.insert(words.end(), {List, static_cast<int64_t>(list.size())});
      for (const auto &item : list)
        value(item, made);
    } else {
      words.push_back(Other);
      text(v.tagKind());
    }
  }

  std::vector<int64_t> pending; // descriptions of storages: they must not stand amidst a value
  std::string contents;
};

thread_local Recording *current = nullptr;

struct Context : at::ObserverContext {
  int64_t call = -1;
};

// composite says whether an operation is written in terms of others: bit 0 for autograd too, bit 1 below it.
int64_t composite(const c10::OperatorName &name) {
  auto op = c10::Dispatcher::singleton().findOp(name);
  if (!op)
    return 0;
  int64_t flags = 0;
  if (op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd))
    flags |= 1;
  if (op->hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
      op->hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional))
    flags |= 2;
  return flags;
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction &fn) {
  Recording *r = current;
  std::unique_ptr<Context> context;
  if (r == nullptr || !r->failure.empty())
    return context;
  try {
    context = std::make_unique<Context>();
    if (r->calls >= most_calls) {
      r->failure = "the function does more than a million operations";
      return context;
    }
    context->call = r->calls++;
    const auto name = fn.operator_name();
    const auto inputs = fn.inputs();
    r->words.insert(r->words.end(), {Begin, r->stack.empty() ? -1 : r->stack.back(), name ? composite(*name) : 0});
    r->text(name ? name->name : fn.name());
    r->text(name ? name->overload_name : "");
    r->words.push_back(static_cast<int64_t>(inputs.size()));
    for (const auto &v : inputs)
      r->value(v, false);
    r->stack.push_back(context->call);
  } catch (const std::exception &e) {
    r->failure = e.what();
  } catch (...) {
    r->failure = "unknown C++ exception";
  }
  return context;
}

void end(const at::RecordFunction &fn, at::ObserverContext *context) {
  Recording *r = current;
  auto *c = static_cast<Context *>(context);
  if (r == nullptr || c == nullptr || c->call < 0 || !r->failure.empty())
    return;
  try {
    const auto &outputs = fn.outputs();
    r->words.insert(r->words.end(), {End, c->call, static_cast<int64_t>(outputs.size())});
    for (const auto &v : outputs)
      r->value(v, true);
    while (!r->stack.empty() && r->stack.back() >= c->call)
      r->stack.pop_back();
  } catch (const std::exception &e) {
    r->failure = e.what();
  } catch (...) {
    r->failure = "unknown C++ exception";
  }
}

} // namespace

#define KELVIN_TRY(...)                       \
  *error = nullptr;                           \
  try {                                       \
    __VA_ARGS__;                              \
  } catch (const std::exception &e) {         \
    *error = strdup(e.what());                \
  } catch (...) {                             \
    *error = strdup("unknown C++ exception"); \
  }

kelvin_record *kelvin_record_start(void **known, int n, char **error) {
  KELVIN_TRY(
      if (current != nullptr) throw std::logic_error("this thread is recorded already");
      if (!at::isRecordFunctionEnabled()) throw std::logic_error("observers are switched off on this thread");
      auto r = std::make_unique<Recording>(); r->out.state = r.get();
      for (int i = 0; i < n; ++i) {
        r->words.push_back(Known);
        r->tensor(*static_cast<at::Tensor *>(known[i]), false, true);
      }
      r->handle = at::addThreadLocalCallback(at::RecordFunctionCallback(begin, end)
                                                 .needsInputs(true)
                                                 .needsOutputs(true)
                                                 .scopes({at::RecordScope::FUNCTION}));
      current = r.get(); return &r.release()->out;)
  return nullptr;
}

void kelvin_record_stop(kelvin_record *out, void **outputs, int n, char **error) {
  auto *r = static_cast<Recording *>(out->state);
  if (current == r) {
    current = nullptr;
    try {
      at::removeCallback(r->handle);
    } catch (...) {
    }
  }
  KELVIN_TRY(
      if (!r->failure.empty()) throw std::runtime_error(r->failure);
      for (int i = 0; i < n; ++i) {
        r->words.push_back(Output);
        r->tensor(*static_cast<at::Tensor *>(outputs[i]), true, false);
      }
      // The contents follow the texts; the words say where they lie.
      r->bytes.resize((r->bytes.size() + 7) / 8 * 8);
      const auto start = static_cast<int64_t>(r->bytes.size());
      for (size_t i = 0; i < r->pending.size(); i += 6) r->pending[i + 5] += start;
      r->bytes += r->contents; r->words.insert(r->words.end(), r->pending.begin(), r->pending.end());
      out->words = r->words.data(); out->n_words = static_cast<int64_t>(r->words.size());
      out->bytes = &r->bytes[0]; out->n_bytes = static_cast<int64_t>(r->bytes.size());)
}

void kelvin_record_free(kelvin_record *out) { delete static_cast<Recording *>(out->state); }
