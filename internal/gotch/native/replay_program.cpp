#include "replay_program.h"
#include <ATen/core/enum_tag.h>
#include <algorithm>
#include <unordered_set>

namespace replay {

namespace {

bool starts(const std::string &s, const char *with) { return s.rfind(with, 0) == 0; }

// Operations that tell about a tensor what does not depend on its numbers.
bool metadata(const std::string &name) {
  static const std::unordered_set<std::string> names = {
      "aten::result_type", "aten::can_cast", "aten::is_same_size", "aten::size", "aten::stride", "aten::_version",
      "aten::dim", "aten::numel", "aten::is_floating_point", "aten::is_complex", "aten::is_signed", "aten::is_leaf",
      "aten::output_nr", "aten::storage_offset", "aten::is_contiguous", "aten::sym_size", "aten::sym_stride",
      "aten::sym_numel", "aten::is_neg", "aten::is_conj", "aten::is_inference", "aten::retains_grad", "aten::is_pinned",
      "aten::_has_compatible_shallow_copy_type", "aten::_has_same_storage_numel"};
  return names.count(name) > 0;
}

// Operations that change a tensor and not its numbers.
bool bookkeeping(const std::string &name) {
  return name == "aten::detach_" || name == "aten::requires_grad_" || name == "aten::retain_grad" ||
         name == "aten::_backward" || name == "aten::set_data";
}

// Operations whose result has no contents yet.
bool unwritten(const std::string &name) { return starts(name, "aten::empty") || starts(name, "aten::new_empty"); }

void tensors(const Value &v, std::vector<int64_t> &places) {
  if (v.kind == Value::Tensor)
    places.push_back(v.place);
  for (const Value &item : v.items)
    tensors(item, places);
}

bool opaque(const std::vector<Value> &values) {
  return std::any_of(values.begin(), values.end(),
                     [](const Value &v) { return v.kind == Value::Opaque || opaque(v.items); });
}

// flat are the tensors of some results, in order; undefined ones are left out.
std::vector<int64_t> flat(const std::vector<Value> &values) {
  std::vector<int64_t> places;
  for (const Value &v : values)
    tensors(v, places);
  return places;
}

// numbers says whether there is a result that is no tensor.
bool numbers(const std::vector<Value> &values) {
  return std::any_of(values.begin(), values.end(), [](const Value &v) {
    return v.kind == Value::Constant && (v.constant.isInt() || v.constant.isDouble() || v.constant.isBool() ||
                                         v.constant.isComplexDouble());
  });
}

bool draws(const c10::OperatorHandle &op) {
  if (op.hasTag(at::Tag::nondeterministic_seeded))
    return true;
  for (const auto &a : op.schema().arguments())
    if (a.type()->str() == "Generator?" || a.type()->str() == "Generator")
      return true;
  return false;
}

// overloads are the forms of an operation.
const std::vector<c10::OperatorName> &overloads(const std::string &name) {
  static const auto all = [] {
    std::unordered_map<std::string, std::vector<c10::OperatorName>> out;
    for (const auto &n : c10::Dispatcher::singleton().getAllOpNames())
      out[n.name].push_back(n);
    return out;
  }();
  static const std::vector<c10::OperatorName> none;
  auto found = all.find(name);
  return found == all.end() ? none : found->second;
}

// writing is the form of an operation that takes as many tensors more, for its results, and writes them by the same
// kernel.
Handle writing(const c10::OperatorHandle &op, c10::DeviceType device) {
  const auto &given = op.schema().arguments();
  const size_t n = op.schema().returns().size();
  const auto key = device == c10::kCPU ? c10::DispatchKey::CPU : c10::DispatchKey::CUDA;
  for (const auto &name : overloads(op.operator_name().name)) {
    auto other = c10::Dispatcher::singleton().findSchema(name);
    if (!other || !other->hasKernelForDispatchKey(key))
      continue;
    const auto &takes = other->schema().arguments();
    if (takes.size() != given.size() + n || other->schema().returns().size() != n)
      continue;
    bool fits = true;
    for (size_t i = 0; i < takes.size() && fits; ++i)
      fits = i < given.size() ? takes[i].alias_info() == nullptr && *takes[i].type() == *given[i].type()
                              : takes[i].alias_info() != nullptr && takes[i].alias_info()->isWrite();
    if (fits)
      return other;
  }
  return Handle();
}

bool divides(const std::string &op) {
  for (const char *name : {"aten::div", "aten::divide", "aten::floor_divide", "aten::remainder", "aten::fmod"})
    if (op == name || op == name + std::string("_"))
      return true;
  return false;
}

bool integers(const Recording &r, const std::vector<Value> &results) {
  for (int64_t p : flat(results))
    if (at::isIntegralType(r.places[p].type, false))
      return true;
  return false;
}

[[noreturn]] void refuse(const std::string &op, const std::string &why) { throw Refusal(op + ": " + why); }

const char *const reads_value =
    "it reads a value: what the program does then could depend on the parameters or on the batch";

} // namespace

Program::Program(std::unique_ptr<Recording> r) : recording(std::move(r)) {
  for (int64_t c : recording->roots)
    walk(c);
  classify();
}

// walk takes a call as a whole where all its tensors are physical, else the calls that it made.
void Program::walk(int64_t at) {
  Call &c = recording->calls[at];
  if (!c.ended)
    refuse(c.name, "it failed");
  if (c.name == "kelvin::read") {
    std::vector<int64_t> read;
    for (int64_t p : flat(c.arguments))
      read.push_back(recording->places[p].storage);
    if (opaque(c.arguments))
      refuse(c.name, reads_value);
    readings.push_back({c.name, read});
    return;
  }
  if (c.name == "kelvin::random" || c.name == "kelvin::sample")
    refuse(c.name, "it draws random numbers");
  if (c.name == "kelvin::write")
    refuse(c.name, "it writes numbers into a tensor without an operation");
  if (!c.op || opaque(c.arguments) || opaque(c.results) || (c.composite && !c.calls.empty())) {
    for (int64_t inner : c.calls)
      walk(inner);
    return;
  }
  add(c);
}

// add makes an operation of a call, unless it is a view or does nothing to numbers.
void Program::add(Call &c) {
  if (metadata(c.name) || bookkeeping(c.name))
    return;
  if (draws(*c.op))
    refuse(c.name, "it draws random numbers");
  if (c.name == "aten::resize_" || c.name == "aten::set_" || c.name == "aten::resize_as_")
    refuse(c.name, "it gives a tensor other memory");
  Operation o{*c.op, Handle(), c.name};
  for (int64_t p : flat(c.arguments))
    o.reads.push_back(recording->places[p].storage);
  if (numbers(c.results)) {
    readings.push_back({c.name, o.reads});
    return;
  }
  if (divides(c.name) && integers(*recording, c.results)) // eager evaluation looks for quotients that end the process
    readings.push_back({c.name, o.reads});
  bool mutates = false;
  const auto &formal = c.op->schema().arguments();
  for (size_t i = 0; i < formal.size() && i < c.arguments.size(); ++i) {
    if (formal[i].alias_info() == nullptr || !formal[i].alias_info()->isWrite())
      continue;
    mutates = true;
    std::vector<int64_t> places;
    tensors(c.arguments[i], places);
    for (int64_t p : places) {
      const int64_t s = recording->places[p].storage;
      if (!recording->storages[s].made)
        refuse(c.name, "it writes into a tensor that was there before the evaluation");
      o.writes.push_back(s);
    }
  }
  const auto results = flat(c.results);
  bool fresh = false, all = !results.empty() && results.size() == c.op->schema().returns().size();
  for (int64_t p : results) {
    const int64_t s = recording->places[p].storage;
    const bool is_new = s >= c.before && std::find(o.writes.begin(), o.writes.end(), s) == o.writes.end();
    if (is_new) {
      recording->storages[s].made = true;
      recording->storages[s].contents.clear();
      fresh = true;
    }
    all = all && is_new;
    o.results.push_back(is_new ? p : -1);
  }
  if ((!fresh && !mutates) || (fresh && unwritten(c.name)))
    return;
  for (int64_t p : o.results)
    if (p >= 0)
      o.writes.push_back(recording->places[p].storage);
  o.arguments = std::move(c.arguments);
  // A kernel that writes would change the shape of its result, and of no view of it.
  if (all && !mutates && !c.op->hasTag(at::Tag::dynamic_output_shape))
    o.out = writing(*c.op, recording->storages[o.writes[0]].device.type());
  if (mutates && !fresh)
    o.results.clear();
  operations.push_back(std::move(o));
}

// classify finds what every operation depends on. All that write into one storage depend on the same.
void Program::classify() {
  depends.assign(recording->storages.size(), Constants);
  for (size_t s = 0; s < depends.size(); ++s) {
    const Storage &storage = recording->storages[s];
    if (storage.known >= 0)
      depends[s] = storage.known == 0 ? Point : Batch;
    else if (storage.weight)
      depends[s] = Point;
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation &o : operations) {
      Depends d = o.depends;
      for (int64_t s : o.reads)
        d = std::max(d, depends[s]);
      for (int64_t s : o.writes)
        d = std::max(d, depends[s]);
      changed = changed || d != o.depends;
      o.depends = d;
      for (int64_t s : o.writes) {
        changed = changed || depends[s] != d;
        depends[s] = d;
      }
    }
  }
  for (const auto &reading : readings)
    for (int64_t s : reading.second)
      if (depends[s] != Constants)
        refuse(reading.first, reads_value);
}

// place gives every storage that is used a home, and those of the arena a part of it that no other needs meanwhile.
void Program::place() {
  const size_t n = recording->storages.size();
  homes.assign(n, Nowhere);
  std::vector<int64_t> first(n, -1), last(n, -1);
  points = 0;
  for (size_t i = 0; i < operations.size(); ++i) {
    Operation &o = operations[i];
    o.last.clear();
    points += o.depends == Point;
    for (const auto *list : {&o.reads, &o.writes})
      for (int64_t s : *list) {
        if (first[s] < 0)
          first[s] = static_cast<int64_t>(i);
        last[s] = static_cast<int64_t>(i);
        if (homes[s] == Nowhere)
          homes[s] = depends[s] == Point ? Arena : Shared;
      }
  }
  for (const Operation &o : operations)
    for (int64_t p : o.results)
      if (p >= 0 && !o.out && o.depends == Point)
        homes[recording->places[p].storage] = Taken;
  for (const Value &v : recording->outputs) {
    if (v.kind != Value::Tensor)
      throw Refusal("a result is mapped or undefined");
    const int64_t s = recording->places[v.place].storage;
    if (homes[s] == Arena || homes[s] == Taken)
      homes[s] = homes[s] == Arena ? Fresh : Taken, last[s] = -1;
    else if (homes[s] == Nowhere)
      homes[s] = depends[s] == Point ? Fresh : Shared;
  }
  for (size_t s = 0; s < n; ++s) {
    if (recording->storages[s].known == 0)
      homes[s] = Given;
    else if (recording->storages[s].weight)
      homes[s] = Weighted;
    else if (homes[s] != Nowhere && depends[s] == Point && !recording->storages[s].made)
      throw Refusal("it writes into a tensor that was there before the evaluation");
    if (homes[s] == Taken && last[s] >= 0)
      operations[last[s]].last.push_back(static_cast<int64_t>(s));
  }
  // First fit, in the order of first use.
  std::vector<int64_t> order, placed;
  for (size_t s = 0; s < n; ++s)
    if (homes[s] == Arena)
      order.push_back(static_cast<int64_t>(s));
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return first[a] < first[b]; });
  parts.assign(n, 0);
  arena = 0;
  auto room = [&](int64_t s) { return (recording->storages[s].bytes + 63) / 64 * 64; };
  for (int64_t s : order) {
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (int64_t t : placed)
      if (last[t] >= first[s])
        taken.push_back({parts[t], parts[t] + room(t)});
    std::sort(taken.begin(), taken.end());
    int64_t at = 0;
    for (const auto &t : taken) {
      if (at + room(s) <= t.first)
        break;
      at = std::max(at, t.second);
    }
    parts[s] = at;
    arena = std::max(arena, at + room(s));
    placed.push_back(s);
  }
}

} // namespace replay
