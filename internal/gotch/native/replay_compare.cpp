#include "replay_program.h"
#include <algorithm>
#include <cstring>
#include <sstream>

namespace replay {

namespace {

std::string print(const Recording &r, const Value &v) {
  std::ostringstream out;
  if (v.kind == Value::Tensor) {
    const Place &p = r.places[v.place];
    out << p.type << c10::IntArrayRef(p.sizes);
  } else if (v.kind == Value::List) {
    for (const Value &item : v.items)
      out << print(r, item) << ' ';
  } else if (v.kind == Value::Constant) {
    out << v.constant;
  }
  return out.str();
}

bool same_bits(double a, double b) { return memcmp(&a, &b, sizeof a) == 0; }

// same compares two arguments. A number that is the weight in both is noted in b.
bool same(const Recording &ra, const Value &a, const Recording &rb, Value &b, double wa, double wb) {
  if (a.kind != b.kind || a.items.size() != b.items.size())
    return false;
  switch (a.kind) {
  case Value::Tensor:
    return ra.places[a.place] == rb.places[b.place];
  case Value::List:
    for (size_t i = 0; i < a.items.size(); ++i)
      if (!same(ra, a.items[i], rb, b.items[i], wa, wb))
        return false;
    return true;
  case Value::Opaque:
    return false;
  default:
    break;
  }
  const c10::IValue &x = a.constant, &y = b.constant;
  if (x.isDouble() && y.isDouble()) {
    b.sign = 0;
    if (same_bits(x.toDouble(), y.toDouble()))
      return true;
    for (int sign : {1, -1})
      if (same_bits(x.toDouble(), sign * wa) && same_bits(y.toDouble(), sign * wb))
        b.sign = sign;
    return b.sign != 0;
  }
  if (x.isTensor() && y.isTensor())
    return !x.toTensor().defined() && !y.toTensor().defined();
  if (x.isGenericDict() || x.isObject() || x.isCapsule() || x.isStorage() || x.isGenerator())
    return false;
  return x.tagKind() == y.tagKind() && print(ra, a) == print(rb, b);
}

template <typename T> bool holds(const std::string &bytes, double weight) {
  const T w = static_cast<T>(weight);
  return bytes.size() == sizeof w && memcmp(bytes.data(), &w, sizeof w) == 0;
}

// same compares what two storages hold that were there before. One that holds the weight is noted in b.
bool same(const Storage &a, Storage &b, double wa, double wb) {
  b.weight = false;
  if (a.known != b.known || a.made != b.made || a.bytes != b.bytes || a.device != b.device)
    return false;
  if (a.made || a.known >= 0)
    return true;
  if (!a.device.is_cpu())
    return a.storage.unsafeGetStorageImpl() == b.storage.unsafeGetStorageImpl();
  if (a.contents == b.contents)
    return true;
  if (holds<double>(a.contents, wa) && holds<double>(b.contents, wb))
    b.type = at::kDouble;
  else if (holds<float>(a.contents, wa) && holds<float>(b.contents, wb))
    b.type = at::kFloat;
  else
    return false;
  b.weight = true;
  return true;
}

} // namespace

std::string Program::compare(Program &with, double weight, double other) {
  const Recording &ra = *recording;
  Recording &rb = *with.recording;
  const std::string why = "evaluations at two points do different operations: control flow depends on the parameters, "
                          "or a number does by a way that is no tensor operation";
  if (ra.outputs.size() != rb.outputs.size())
    return why;
  std::vector<int64_t> used;
  for (size_t i = 0; i < std::max(operations.size(), with.operations.size()); ++i) {
    if (i >= operations.size() || i >= with.operations.size())
      return (i < operations.size() ? operations : with.operations)[i].name + ": " + why;
    const Operation &x = operations[i];
    Operation &y = with.operations[i];
    bool equal = x.op.operator_name() == y.op.operator_name() && x.arguments.size() == y.arguments.size() &&
                 x.results.size() == y.results.size() && x.reads == y.reads && x.writes == y.writes;
    for (size_t k = 0; equal && k < x.arguments.size(); ++k)
      equal = same(ra, x.arguments[k], rb, y.arguments[k], weight, other);
    for (size_t k = 0; equal && k < x.results.size(); ++k)
      equal = (x.results[k] < 0) == (y.results[k] < 0) &&
              (x.results[k] < 0 || ra.places[x.results[k]] == rb.places[y.results[k]]);
    if (!equal)
      return x.name + ": " + why;
    used.insert(used.end(), x.reads.begin(), x.reads.end());
    used.insert(used.end(), x.writes.begin(), x.writes.end());
  }
  for (size_t k = 0; k < ra.outputs.size(); ++k) {
    if (!same(ra, ra.outputs[k], rb, rb.outputs[k], weight, other))
      return "an output is mapped, or " + why;
    used.push_back(ra.places[ra.outputs[k].place].storage);
  }
  for (int64_t s : used)
    if (!same(ra.storages[s], rb.storages[s], weight, other))
      return "a constant that the evaluation captures differs from one point to another: it depends on the parameters "
             "by a way that is no tensor operation, or is random";
  with.classify();
  return "";
}

} // namespace replay
