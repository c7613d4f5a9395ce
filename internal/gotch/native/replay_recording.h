// What is recorded for a replay: the calls of operations, with their arguments as places in storages.
#ifndef KELVIN_REPLAY_RECORDING_H
#define KELVIN_REPLAY_RECORDING_H
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace replay {

// A tensor: which elements of which storage it has.
struct Place {
  int64_t storage, offset;
  at::ScalarType type;
  bool wrapped; // a number that libtorch made a tensor of
  std::vector<int64_t> sizes, strides;
  bool operator==(const Place &o) const {
    return storage == o.storage && offset == o.offset && type == o.type && wrapped == o.wrapped && sizes == o.sizes &&
           strides == o.strides;
  }
};

// An argument or result.
struct Value {
  enum Kind { Constant, Tensor, List, Opaque } kind = Constant;
  c10::IValue constant; // also an undefined tensor, and an empty list like a List
  int64_t place = -1;   // of a Tensor, in Recording::places
  std::vector<Value> items;
  int sign = 0; // of a Constant that is the weight, or its negative
};

// An operation of libtorch, or none: the optional type of this libtorch.
using Handle = decltype(c10::Dispatcher::singleton().findSchema(std::declval<const c10::OperatorName &>()));

// A call, with the calls that it made.
struct Call {
  std::string name;
  Handle op;
  bool composite = false; // written in terms of other operations, for autograd too
  bool ended = false;
  int64_t before = 0; // storages that were there when it began
  std::vector<Value> arguments, results;
  std::vector<int64_t> calls;
};

struct Storage {
  c10::Storage storage; // kept, so that no address is used again
  int64_t bytes;
  c10::Device device;
  int known;            // its number among the known tensors, or -1
  bool made;            // by an operation of the recording
  std::string contents; // of one in main memory that was there before
  bool weight = false;  // it holds the weight, a number of this type
  at::ScalarType type = at::kDouble;
};

struct Recording {
  std::vector<Call> calls;
  std::vector<int64_t> roots; // calls that no other made
  std::vector<int64_t> open;
  std::vector<Place> places;
  std::vector<Storage> storages;
  std::unordered_map<const void *, int64_t> ids;
  std::vector<Value> outputs;
  at::CallbackHandle handle = 0;
  std::string failure;

  Value value(const c10::IValue &v, bool made);
  Value tensor(const at::Tensor &t, bool made, int known);
};

} // namespace replay

#endif
