// The C++ side of the comparison: the operations of Kelvin's benchmarks, called on libtorch directly.
//
// The program reads commands from standard input, one on a line, and answers each with one line:
//
//   put NAME TYPE RANK DIM... NUMBER...   keep a tensor of double, float or long           ok
//   eval CASE NAME                        value and gradient at the tensor                 NUMBER... NUMBER...
//   time CASE NAME REPETITIONS            nanoseconds per call, after a fifth as many      NUMBER
//   info                                  libtorch's version and its number of threads     VERSION THREADS
//   net CASE KIND DATA SITES (SITE RANK DIM...)...                                         ok
//
// A failure is answered with "error MESSAGE". The cases are add, logistic, schools, and schools_vmap, in which each row
// of the tensor is a chain; and those that net makes: CASE is the log posterior of a network, cnnlstm or resnet, with
// these parameters, on the batch CASE.x and CASE.y of so many data, and CASE.step a step of gradient ascent from where
// the last one ended, at first NAME, whose value is where it ends. The one argument is the device: cpu or cuda. On cuda
// every timed call waits for the GPU, as Kelvin's does.
//
// networks.cpp is put before this file.
#include <ATen/Parallel.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>

namespace ft = at::functorch;
using at::Tensor;

namespace {

at::Device device(at::kCPU);
std::map<std::string, Tensor> tensors;

std::map<std::string, networks::Net> nets;
std::map<std::string, networks::Training> trainings;

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

constexpr double rate = 1e-4, momentum = 0.9; // of a step

const std::string step = ".step";

// Whether a case is a step of a network.
bool is_step(const std::string &name) {
  return name.size() > step.size() && name.compare(name.size() - step.size(), step.size(), step) == 0;
}

const networks::Net &net_of(const std::string &name) {
  const auto it = nets.find(is_step(name) ? name.substr(0, name.size() - step.size()) : name);
  if (it == nets.end())
    throw std::invalid_argument("there is no case " + name);
  return it->second;
}

networks::Training &training(const std::string &name, const Tensor &start) {
  networks::Training &t = trainings[name];
  if (!t.theta.defined())
    t.theta = start.clone();
  return t;
}

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
  const networks::Net &net = net_of(name);
  if (!is_step(name))
    return both(net.value_and_grad(x));
  networks::Training &t = training(name, x);
  t.step(net, rate, momentum);
  return {t.theta};
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
  const networks::Net &net = net_of(name);
  if (!is_step(name))
    return nanoseconds(repetitions, [&] { net.value_and_grad(x); });
  networks::Training &t = training(name, x);
  return nanoseconds(repetitions, [&] { t.step(net, rate, momentum); });
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

std::vector<int64_t> shape(std::istringstream &in) {
  std::vector<int64_t> sizes(next<size_t>(in, "the rank"));
  for (auto &s : sizes)
    s = next<int64_t>(in, "a size");
  return sizes;
}

std::string answer(const std::string &line) {
  std::istringstream in(line);
  const auto command = next<std::string>(in, "a command");
  if (command == "info")
    return std::string(TORCH_VERSION) + " " + std::to_string(at::get_num_threads());
  if (command == "put") {
    const auto name = next<std::string>(in, "a name");
    const auto type = next<std::string>(in, "a type");
    const std::vector<int64_t> sizes = shape(in);
    std::vector<double> data(c10::multiply_integers(sizes));
    for (auto &v : data)
      v = std::strtod(next<std::string>(in, "a number").c_str(), nullptr);
    const auto dtype = type == "double" ? at::kDouble : type == "float" ? at::kFloat : at::kLong;
    tensors[name] = at::from_blob(data.data(), sizes, at::kDouble).clone().to(device, dtype);
    return "ok";
  }
  if (command == "net") {
    const auto name = next<std::string>(in, "a case"), kind = next<std::string>(in, "a network");
    networks::Net net;
    net.logits = kind == "resnet" ? networks::resnet : networks::cnnlstm;
    net.x = named(name + ".x"), net.y = named(name + ".y");
    net.data = next<double>(in, "the number of data");
    net.sites.resize(next<size_t>(in, "the number of sites"));
    for (auto &s : net.sites) {
      s.name = next<std::string>(in, "a site");
      s.shape = shape(in);
    }
    nets[name] = net;
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
