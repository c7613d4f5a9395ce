#include "torch_api.h"
#include <ATen/functorch/BatchedTensorImpl.h>
#include <algorithm>
#include <string>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <typeindex>
#include <unordered_map>
#include <unordered_set>

// The gradient of the branch that was not taken. A Where sends an exact zero there, and a chain rule that multiplies it
// by an infinite derivative makes NaN of it. Behind a guard, a function of single elements sends zero on where it gets
// zero and its derivative is not finite. Elsewhere zero times a derivative stays, since it has derivatives itself.

using torch::autograd::Node;
using torch::autograd::variable_list;

static void guard_graph(at::Tensor t);

// elementwise says whether each element of what the node computes depends on one element of each of its inputs, by a
// derivative that may be infinite.
static bool elementwise(const Node &node) {
  static const std::unordered_set<std::string> names = {
      "Abs", "Acos", "Acosh", "Addcdiv", "Addcmul", "Angle", "Asin", "Asinh", "Atan", "Atan2", "Atanh", "Cos",
      "Cosh", "Digamma", "Div", "Elu", "Erf", "Erfc", "Erfinv", "Exp", "Exp2", "Expm1", "Gelu", "Hypot", "I0",
      "Igamma", "Igammac", "Lgamma", "Log", "Log10", "Log1P", "Log2", "LogSigmoid", "Logaddexp", "Logaddexp2",
      "Logit", "Mul", "Mvlgamma", "Polygamma", "Pow", "Reciprocal", "Rsqrt", "Sigmoid", "Silu", "Sin", "Sinc",
      "Sinh", "Softplus", "Sqrt", "Tan", "Tanh", "Xlogy"};
  static thread_local std::unordered_map<std::type_index, bool> known;
  auto found = known.find(typeid(node));
  if (found != known.end())
    return found->second;
  std::string name = node.name();
  name = name.substr(0, name.find("Backward"));
  bool yes = name.rfind("Special", 0) == 0 || names.count(name) != 0;
  known.emplace(typeid(node), yes);
  return yes;
}

// Guard is on each node that a guard has passed, so that none is passed twice. Those of other functions do nothing.
struct Guard : torch::autograd::FunctionPostHook {
  Guard(Node *of) : node(elementwise(*of) ? of : nullptr) {}

  variable_list operator()(const variable_list &grads, const variable_list &upstream) override {
    if (node == nullptr || upstream.size() != 1 || !upstream[0].defined())
      return grads;
    const at::Tensor &up = upstream[0];
    const at::Tensor none = up == 0;
    const auto mended = [&](const at::Tensor &x) { return x.masked_fill(at::logical_and(none, at::isnan(x)), 0); };
    variable_list out = grads, full;
    for (size_t i = 0; i < out.size(); ++i) {
      if (!out[i].defined())
        continue;
      if (out[i].sizes() == up.sizes()) {
        out[i] = mended(out[i]);
      } else { // an input that was broadcast: its sum has the NaN already, and is taken once more
        if (full.empty())
          full = (*node)(variable_list(upstream));
        out[i] = at::sum_to(mended(full[i]), out[i].sizes()).to(out[i].options());
      }
      if (at::GradMode::is_enabled())
        guard_graph(out[i]);
    }
    return out;
  }

  Node *node;
};

static void guard_graph(at::Tensor t) {
  while (at::functorch::isBatchedTensor(t))
    t = at::functorch::maybeGetBatchedImpl(t)->value();
  if (!t.requires_grad() || !t.grad_fn())
    return;
  std::vector<Node *> open{t.grad_fn().get()};
  while (!open.empty()) {
    Node *node = open.back();
    open.pop_back();
    auto &hooks = node->post_hooks();
    if (node->num_outputs() == 0 || std::any_of(hooks.begin(), hooks.end(), [](const auto &h) {
          return dynamic_cast<Guard *>(h.get()) != nullptr;
        }))
      continue;
    node->add_post_hook(std::make_unique<Guard>(node));
    for (const auto &edge : node->next_edges())
      if (edge.is_valid())
        open.push_back(edge.function.get());
  }
}

void kelvin_guard(tensor t, char **error) {
  *error = nullptr;
  try {
    guard_graph(*t);
  } catch (const std::exception &e) {
    *error = kelvin_message(e);
  } catch (...) {
    *error = strdup("unknown C++ exception");
  }
}
