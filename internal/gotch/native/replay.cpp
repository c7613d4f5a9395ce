#include "replay.h"
#include "replay_program.h"
#include <ATen/core/LegacyTypeDispatch.h>
#include <cstring>
#include <functional>

namespace replay {

namespace {

// below are the keys of everything that an evaluation is recorded without.
struct Below {
  at::NoGradGuard grad;
  at::AutoDispatchBelowADInplaceOrView keys;
};

c10::Storage storage_of(const Storage &s, at::DataPtr data) {
  return c10::Storage(c10::Storage::use_byte_size_t(), s.bytes, std::move(data), c10::GetAllocator(s.device.type()),
                      false);
}

const char *const another_shape = "the shape of a result depends on the numbers";

at::DataPtr nothing(c10::Device device) { return at::DataPtr(nullptr, device); }

at::Tensor view_of(const c10::Storage &s, const Place &p) {
  return at::empty({0}, at::TensorOptions().dtype(p.type).device(s.device())).set_(s, p.offset, p.sizes, p.strides);
}

// put writes the number that a storage holds. Newer versions of libtorch give constant memory here.
template <typename T> void put(const c10::Storage &s, T number) {
  memcpy(const_cast<void *>(static_cast<const void *>(s.unsafeGetStorageImpl()->data())), &number, sizeof number);
}

void flat(const c10::IValue &v, std::vector<at::Tensor> &out) {
  if (v.isTensor()) {
    if (v.toTensor().defined())
      out.push_back(v.toTensor());
  } else if (v.isList()) {
    for (const auto &item : v.toListRef())
      flat(item, out);
  }
}

} // namespace

// ready makes the shared storages and does what depends on constants alone. What was recorded is given back.
void Program::ready() {
  place();
  Recording &r = *recording;
  shared.resize(r.storages.size());
  for (size_t s = 0; s < shared.size(); ++s) {
    Storage &from = r.storages[s];
    if (homes[s] == Shared) {
      if (from.known >= 0) {
        shared[s] = storage_of(from, nothing(from.device));
      } else if (!from.made && !from.device.is_cpu()) {
        shared[s] = from.storage;
      } else {
        shared[s] = storage_of(from, c10::GetAllocator(from.device.type())->allocate(from.bytes));
        if (!from.made)
          memcpy(const_cast<void *>(static_cast<const void *>(shared[s].data())), from.contents.data(),
                 from.contents.size());
      }
    }
    from.storage = c10::Storage();
    from.contents.clear();
  }
  r.calls.clear();
  own = std::make_unique<Workspace>(*this);
  Below guard;
  own->run(Constants, 0);
}

void Program::take(void **given, int n) {
  std::vector<at::Tensor> next;
  for (int i = 0; i < n; ++i)
    next.push_back(*static_cast<at::Tensor *>(given[i]));
  for (size_t s = 0; s < homes.size(); ++s) {
    const Storage &storage = recording->storages[s];
    if (storage.known < 1 || homes[s] != Shared)
      continue;
    if (storage.known > n)
      throw std::invalid_argument("tensors are missing in the batch");
    const at::Tensor &t = next[storage.known - 1];
    if (!t.is_contiguous() || t.device() != storage.device ||
        static_cast<int64_t>(t.numel() * t.element_size()) != storage.bytes)
      throw std::invalid_argument("the batch has other shapes");
    shared[s].unsafeGetStorageImpl()->set_data_ptr(at::DataPtr(t.data_ptr(), storage.device));
  }
  batch = std::move(next);
  Below guard;
  own->run(Batch, 0);
}

Workspace::Workspace(Program &p) : program(p) {
  const Recording &r = *p.recording;
  const bool own = p.own == nullptr;
  storages.resize(r.storages.size());
  tensors.resize(r.places.size());
  arguments.resize(p.operations.size());
  if (!own && p.arena > 0)
    for (const Storage &s : r.storages) {
      arena = c10::GetAllocator(s.device.type())->allocate(p.arena); // all are on one device
      break;
    }
  for (size_t s = 0; s < storages.size(); ++s) {
    const Storage &from = r.storages[s];
    switch (p.homes[s]) {
    case Nowhere:
      break;
    case Shared:
      storages[s] = p.shared[s];
      break;
    case Arena:
      if (!own)
        storages[s] = storage_of(from, at::DataPtr(static_cast<char *>(arena.get()) + p.parts[s], from.device));
      break;
    case Weighted:
      storages[s] = storage_of(from, c10::GetAllocator(from.device.type())->allocate(from.bytes));
      break;
    default:
      storages[s] = storage_of(from, nothing(from.device));
    }
  }
  std::unordered_map<std::string, int64_t> alike;
  auto make = [&](int64_t at) {
    const Place &place = r.places[at];
    std::string key;
    auto add = [&](int64_t v) { key.append(reinterpret_cast<const char *>(&v), sizeof v); };
    add(place.storage), add(place.offset), add(static_cast<int64_t>(place.type)), add(place.wrapped);
    for (int64_t v : place.sizes)
      add(v);
    for (int64_t v : place.strides)
      add(v);
    auto found = alike.emplace(key, at);
    if (!found.second) {
      tensors[at] = tensors[found.first->second];
      return;
    }
    tensors[at] = view_of(storages[place.storage], place);
    if (place.wrapped)
      tensors[at].unsafeGetTensorImpl()->set_wrapped_number(true);
  };
  std::function<void(const Value &)> all = [&](const Value &v) {
    if (v.kind == Value::Tensor)
      make(v.place);
    for (const Value &item : v.items)
      all(item);
  };
  Below guard;
  for (size_t i = 0; i < p.operations.size(); ++i) {
    const Operation &o = p.operations[i];
    if ((o.depends == Point) == own)
      continue;
    for (const Value &v : o.arguments)
      all(v);
    for (int64_t place : o.results)
      if (place >= 0)
        make(place);
    for (const Value &v : o.arguments)
      arguments[i].push_back(argument(v));
    if (o.out)
      for (int64_t place : o.results)
        arguments[i].push_back(tensors[place]);
  }
  if (!own)
    for (const Value &v : r.outputs)
      if (p.homes[r.places[v.place].storage] != Fresh && p.homes[r.places[v.place].storage] != Taken)
        make(v.place);
}

c10::IValue Workspace::argument(const Value &v) {
  if (v.kind == Value::Tensor)
    return tensors[v.place];
  if (v.kind != Value::List)
    return v.constant;
  c10::impl::GenericList list(v.constant.toList().elementType());
  for (const Value &item : v.items)
    list.push_back(argument(item));
  return list;
}

// keep puts what an operation has made where the storage of a place is.
void Workspace::keep(const at::Tensor &made, int64_t at) {
  const Place &p = program.recording->places[at];
  if (made.sizes() != c10::IntArrayRef(p.sizes) || made.scalar_type() != p.type)
    throw std::runtime_error(another_shape);
  auto *to = storages[p.storage].unsafeGetStorageImpl();
  const c10::Storage &from = made.storage();
  if (made.strides() == c10::IntArrayRef(p.strides) && made.storage_offset() == p.offset &&
      from.nbytes() >= static_cast<size_t>(program.recording->storages[p.storage].bytes) && from.use_count() == 1) {
    to->set_data_ptr(from.unsafeGetStorageImpl()->set_data_ptr(nothing(made.device())));
    return;
  }
  if (to->data() == nullptr)
    to->set_data_ptr(c10::GetAllocator(made.device().type())->allocate(to->nbytes()));
  tensors[at].copy_(made);
}

void Workspace::perform(const Operation &o, const std::vector<c10::IValue> &with, double weight) {
  stack.assign(with.begin(), with.end());
  for (size_t i = 0; i < o.arguments.size(); ++i)
    if (o.arguments[i].sign != 0)
      stack[i] = o.arguments[i].sign * weight;
  if (o.out) {
    o.out->callBoxed(&stack);
    for (int64_t at : o.results)
      if (tensors[at].sizes() != c10::IntArrayRef(program.recording->places[at].sizes))
        throw std::runtime_error(another_shape);
  } else {
    o.op.callBoxed(&stack);
    if (!o.results.empty()) {
      std::vector<at::Tensor> made;
      for (const auto &v : stack)
        flat(v, made);
      stack.clear();
      if (made.size() != o.results.size())
        throw std::runtime_error("the number of results depends on the numbers");
      for (size_t i = 0; i < made.size(); ++i)
        if (o.results[i] >= 0)
          keep(made[i], o.results[i]);
    }
  }
  stack.clear();
}

void Workspace::run(Depends which, double weight) {
  for (size_t i = 0; i < program.operations.size(); ++i) {
    const Operation &o = program.operations[i];
    if (o.depends != which)
      continue;
    try {
      perform(o, arguments[i], weight);
    } catch (const c10::Error &e) {
      throw std::runtime_error(o.name + ": " + e.what_without_backtrace());
    }
    for (int64_t s : o.last)
      storages[s].unsafeGetStorageImpl()->set_data_ptr(nothing(storages[s].device()));
  }
}

void Workspace::evaluate(const at::Tensor &point, double weight, void **outputs) {
  const Recording &r = *program.recording;
  Below guard;
  for (size_t s = 0; s < storages.size(); ++s) {
    const Storage &is = r.storages[s];
    switch (program.homes[s]) {
    case Given:
      if (!point.is_contiguous() || point.device() != is.device ||
          static_cast<int64_t>(point.numel() * point.element_size()) != is.bytes)
        throw std::invalid_argument("the point has another shape");
      storages[s].unsafeGetStorageImpl()->set_data_ptr(at::DataPtr(point.data_ptr(), is.device));
      break;
    case Fresh:
      storages[s].unsafeGetStorageImpl()->set_data_ptr(c10::GetAllocator(is.device.type())->allocate(is.bytes));
      break;
    case Weighted:
      if (is.type == at::kFloat)
        put(storages[s], static_cast<float>(weight));
      else
        put(storages[s], weight);
      break;
    default:
      break;
    }
  }
  run(Point, weight);
  std::unordered_map<int64_t, c10::Storage> moved;
  std::vector<at::Tensor> out;
  for (const Value &v : r.outputs) {
    const Place &p = r.places[v.place];
    const Home home = program.homes[p.storage];
    if (home != Fresh && home != Taken) {
      out.push_back(tensors[v.place].clone());
      continue;
    }
    auto found = moved.find(p.storage);
    if (found == moved.end()) {
      auto *from = storages[p.storage].unsafeGetStorageImpl();
      at::DataPtr data = from->set_data_ptr(nothing(from->device()));
      found = moved.emplace(p.storage, storage_of(r.storages[p.storage], std::move(data))).first;
    }
    out.push_back(view_of(found->second, p));
  }
  for (size_t i = 0; i < out.size(); ++i)
    outputs[i] = new at::Tensor(std::move(out[i]));
}

} // namespace replay

struct kelvin_program {
  replay::Program program;
};

struct kelvin_workspace {
  replay::Workspace workspace;
};

#define KELVIN_TRY(...)                         \
  *error = nullptr;                             \
  try {                                         \
    __VA_ARGS__;                                \
  } catch (const c10::Error &e) {               \
    *error = strdup(e.what_without_backtrace()); \
  } catch (const std::exception &e) {           \
    *error = strdup(e.what());                  \
  } catch (...) {                               \
    *error = strdup("unknown C++ exception");   \
  }

void kelvin_replay_start(void **known, int n, char **error) { KELVIN_TRY(replay::start(known, n)) }

kelvin_program *kelvin_replay_stop(void **outputs, int n, char **reason, char **error) {
  *reason = nullptr;
  KELVIN_TRY(
      auto recording = replay::stop(outputs, n); try {
        return new kelvin_program{replay::Program(std::move(recording))};
      } catch (const replay::Refusal &r) { *reason = strdup(r.what()); })
  return nullptr;
}

char *kelvin_replay_compare(kelvin_program *a, kelvin_program *b, double weight_a, double weight_b) {
  try {
    const std::string why = a->program.compare(b->program, weight_a, weight_b);
    return why.empty() ? nullptr : strdup(why.c_str());
  } catch (const std::exception &e) {
    return strdup(e.what());
  }
}

int64_t kelvin_replay_ready(kelvin_program *p, char **error) {
  KELVIN_TRY(p->program.ready(); return p->program.points)
  return 0;
}

void kelvin_replay_batch(kelvin_program *p, void **tensors, int n, char **error) {
  KELVIN_TRY(p->program.take(tensors, n))
}

kelvin_workspace *kelvin_replay_workspace(kelvin_program *p, char **error) {
  KELVIN_TRY(return new kelvin_workspace{replay::Workspace(p->program)})
  return nullptr;
}

void kelvin_replay_run(kelvin_workspace *w, void *point, double weight, void **outputs, char **error) {
  KELVIN_TRY(w->workspace.evaluate(*static_cast<at::Tensor *>(point), weight, outputs))
}

void kelvin_replay_free_workspace(kelvin_workspace *w) { delete w; }
void kelvin_replay_free(kelvin_program *p) { delete p; }
