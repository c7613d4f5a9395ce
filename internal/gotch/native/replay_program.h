// A recording made into operations that are done again.
#ifndef KELVIN_REPLAY_PROGRAM_H
#define KELVIN_REPLAY_PROGRAM_H
#include "replay_recording.h"

namespace replay {

// Why an evaluation cannot be done again.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What an operation, or the contents of a storage, depend on.
enum Depends { Constants, Batch, Point };

struct Operation {
  c10::OperatorHandle op;
  Handle out;             // the form that writes its results into given tensors
  std::string name;
  std::vector<Value> arguments;
  std::vector<int64_t> results; // places of the results, -1 for one that is not new; with out all of them are
  std::vector<int64_t> reads, writes; // storages
  Depends depends = Constants;
  std::vector<int64_t> last; // storages of no use afterwards
};

// Where the contents of a storage are.
enum Home {
  Nowhere,   // it is not used
  Shared,    // in memory that evaluations share: constants, and what depends on the batch alone
  Arena,     // in a part of the workspace
  Fresh,     // in new memory for each evaluation: it is an output
  Given,     // the memory of the point
  Taken,     // in what an operation has made
  Weighted,  // in the workspace: the weight
};

struct Workspace;

struct Program {
  std::unique_ptr<Recording> recording;
  std::vector<Operation> operations;
  std::vector<std::pair<std::string, std::vector<int64_t>>> readings; // what has read values, and of which storages
  std::vector<Depends> depends;               // of storages
  std::vector<Home> homes;
  std::vector<int64_t> parts;       // offsets in the arena
  int64_t arena = 0, points = 0;    // bytes; operations that depend on the point
  std::vector<c10::Storage> shared; // storages that are Shared
  std::vector<at::Tensor> batch;    // kept
  std::unique_ptr<Workspace> own;   // for the operations that do not depend on the point

  explicit Program(std::unique_ptr<Recording> r);
  std::string compare(Program &with, double weight, double other);
  void ready();
  void take(void **tensors, int n);

private:
  void walk(int64_t call);
  void add(Call &c);
  void classify();
  void place();
};

struct Workspace {
  Program &program;
  at::DataPtr arena;
  std::vector<c10::Storage> storages; // by number; empty where they are not used
  std::vector<at::Tensor> tensors;    // of places
  std::vector<std::vector<c10::IValue>> arguments; // of operations
  std::vector<c10::IValue> stack;

  explicit Workspace(Program &p);
  void run(Depends from, double weight);
  void evaluate(const at::Tensor &point, double weight, void **outputs);

private:
  c10::IValue argument(const Value &v);
  void perform(const Operation &o, const std::vector<c10::IValue> &with, double weight);
  void keep(const at::Tensor &made, int64_t place);
};

void start(void **known, int n);
std::unique_ptr<Recording> stop(void **outputs, int n);

} // namespace replay

#endif
