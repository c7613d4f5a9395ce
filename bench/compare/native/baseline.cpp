// The C++ side of the comparison: the operations of Kelvin's benchmarks, called on libtorch directly.
//
// The program reads commands from standard input, one on a line, and answers each with one line:
//
//   put NAME RANK DIM... NUMBER...   keep a float64 tensor under a name                  ok
//   eval CASE NAME                   value and gradient at the tensor                    NUMBER... NUMBER...
//   time CASE NAME REPETITIONS       nanoseconds per call, after a fifth as many         NUMBER
//   info                             libtorch's version and its number of threads        VERSION THREADS
//
// A failure is answered with "error MESSAGE". The cases are add, logistic, schools, and schools_vmap, in which each row
// of the tensor is a chain. The one argument is the device: cpu or cuda. On cuda every timed call waits for the GPU, as
// Kelvin's does.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ft = at::functorch;
using at::Tensor;

namespace {

at::Device device(at::kCPU);
std::map<std::string, Tensor> tensors;

const Tensor &named(const std::string &name) {
  auto it = tensors.find(name);
  if (it == tensors.end())
    throw std::invalid_argument("there is no tensor " + name);
  return it->second;
}

// ---- the densities, operation by operation as in bench/models.go ----------------------------------------------------

Tensor logistic(const Tensor &w) {
  static const Tensor &x = named("x"), &sign = named("sign");
  Tensor log_lik = at::log_sigmoid(x.mv(w) * sign).sum(at::kDouble);
  return w.square().sum(at::kDouble) * -0.5 + log_lik;
}

Tensor schools(const Tensor &x) {
  static const Tensor &y = named("y"), &sigma = named("sigma");
  Tensor mu = x.select(0, 0), log_tau = x.select(0, 1), z = x.narrow(0, 2, 8);
  Tensor tau = log_tau.exp();
  Tensor theta = z * tau + mu;
  Tensor log_lik = ((y - theta) / sigma).square().sum(at::kDouble) * -0.5;
  Tensor prior_z = z.square().sum(at::kDouble) * -0.5;
  Tensor prior_mu = (mu / 5.0).square() * -0.5;
  Tensor prior_tau = (tau / 5.0).square().log1p();
  return log_lik + prior_z + prior_mu - prior_tau + log_tau;
}

// ---- gradients ------------------------------------------------------------------------------------------------------

using Density = Tensor (*)(const Tensor &);
using ValueAndGrad = std::pair<Tensor, Tensor>;

ValueAndGrad value_and_grad(Density f, const Tensor &x) {
  Tensor leaf = x.detach().set_requires_grad(true);
  Tensor y = f(leaf);
  auto grads = torch::autograd::grad({y}, {leaf});
  return {y.detach(), grads[0]};
}

// The density is called once, at a tensor that stands for all rows of x; the gradient of the sum of the values has the
// gradient of each value in its row.
ValueAndGrad vmap_value_and_grad(Density f, const Tensor &x) {
  Tensor leaf = x.detach().set_requires_grad(true);
  const int64_t level = ft::initAndPushDynamicLayer(ft::TransformType::Vmap, x.size(0), ft::RandomnessType::Error);
  Tensor y = f(ft::makeBatched(leaf, 0, level));
  ft::popDynamicLayerAndDeleteMetadata();
  auto *batched = ft::maybeGetBatchedImpl(y);
  if (batched == nullptr)
    throw std::logic_error("the density does not depend on its argument");
  Tensor values = batched->value().movedim(batched->bdim(), 0);
  auto grads = torch::autograd::grad({values.sum(at::kDouble)}, {leaf});
  return {values.detach(), grads[0]};
}

// ---- the cases ------------------------------------------------------------------------------------------------------

// A case gives its value, and its gradient if it has one.
std::vector<Tensor> run(const std::string &name, const Tensor &x) {
  auto both = [](ValueAndGrad r) { return std::vector<Tensor>{r.first, r.second}; };
  if (name == "add")
    return {x + x};
  if (name == "logistic")
    return both(value_and_grad(logistic, x));
  if (name == "schools")
    return both(value_and_grad(schools, x));
  if (name == "schools_vmap")
    return both(vmap_value_and_grad(schools, x));
  throw std::invalid_argument("there is no case " + name);
}

// The body is inlined into the loop, so that a call costs nothing but its operations.
template <typename Body> double nanoseconds(int64_t repetitions, Body body) {
  const bool wait = device.is_cuda();
  auto loop = [&](int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      body();
      if (wait)
        torch::cuda::synchronize();
    }
  };
  loop(repetitions / 5 + 1);
  const auto start = std::chrono::steady_clock::now();
  loop(repetitions);
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  return took.count() / static_cast<double>(repetitions);
}

double time_case(const std::string &name, const Tensor &x, int64_t repetitions) {
  if (repetitions < 1)
    throw std::invalid_argument("the number of repetitions must be positive");
  if (name == "add")
    return nanoseconds(repetitions, [&] { Tensor sum = x + x; });
  if (name == "logistic")
    return nanoseconds(repetitions, [&] { value_and_grad(logistic, x); });
  if (name == "schools")
    return nanoseconds(repetitions, [&] { value_and_grad(schools, x); });
  if (name == "schools_vmap")
    return nanoseconds(repetitions, [&] { vmap_value_and_grad(schools, x); });
  throw std::invalid_argument("there is no case " + name);
}

// ---- the protocol ---------------------------------------------------------------------------------------------------

std::string text(double v) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.17g", v);
  return buffer;
}

template <typename T> T next(std::istringstream &in, const char *what) {
  T v;
  if (!(in >> v))
    throw std::invalid_argument(std::string("expected ") + what);
  return v;
}

std::string answer(const std::string &line) {
  std::istringstream in(line);
  const auto command = next<std::string>(in, "a command");
  if (command == "info")
    return std::string(TORCH_VERSION) + " " + std::to_string(at::get_num_threads());
  if (command == "put") {
    const auto name = next<std::string>(in, "a name");
    std::vector<int64_t> sizes(next<size_t>(in, "the rank"));
    int64_t numel = 1;
    for (auto &s : sizes)
      numel *= (s = next<int64_t>(in, "a size"));
    std::vector<double> data(numel);
    for (auto &v : data)
      v = std::strtod(next<std::string>(in, "a number").c_str(), nullptr);
    tensors[name] = at::from_blob(data.data(), sizes, at::kDouble).clone().to(device);
    return "ok";
  }
  const auto name = next<std::string>(in, "a case");
  const Tensor &x = named(next<std::string>(in, "the name of a tensor"));
  if (command == "time")
    return text(time_case(name, x, next<int64_t>(in, "the number of repetitions")));
  if (command == "eval") {
    std::string out;
    for (const Tensor &t : run(name, x)) {
      const Tensor flat = t.to(at::kCPU, at::kDouble).contiguous();
      for (int64_t i = 0; i < flat.numel(); ++i)
        out += (out.empty() ? "" : " ") + text(flat.data_ptr<double>()[i]);
    }
    return out;
  }
  throw std::invalid_argument("there is no command " + command);
}

std::string one_line(std::string s) {
  s = s.substr(0, s.find('\n'));
  return "error " + s;
}

} // namespace

int main(int argc, char **argv) {
  if (argc == 2 && std::string(argv[1]) == "cuda") {
    if (!torch::cuda::is_available()) {
      std::cerr << "libtorch can use no GPU\n";
      return 1;
    }
    device = at::Device(at::kCUDA, 0);
  }
  std::string line;
  while (std::getline(std::cin, line)) {
    try {
      std::cout << answer(line) << std::endl;
    } catch (const std::exception &e) {
      std::cout << one_line(e.what()) << std::endl;
    }
  }
}
