// The networks of the comparison, as a user of libtorch writes them: with its LSTM, its batch normalisation and its
// cross entropy. Parameters are one vector, laid out as in Kelvin's models/nn, which names them.
#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace networks {

using at::Tensor;

struct Site {
  std::string name;
  std::vector<int64_t> shape;
};

// The parameters by name, views of one vector.
class Params {
public:
  Params(const std::vector<Site> &sites, const Tensor &flat) {
    std::vector<int64_t> sizes;
    for (const Site &s : sites)
      sizes.push_back(c10::multiply_integers(s.shape));
    const std::vector<Tensor> parts = flat.split_with_sizes(sizes);
    for (size_t i = 0; i < sites.size(); ++i)
      byName[sites[i].name] = parts[i].view(sites[i].shape);
  }
  const Tensor &operator()(const std::string &name) const {
    auto it = byName.find(name);
    if (it == byName.end())
      throw std::invalid_argument("the layout has no site " + name);
    return it->second;
  }

private:
  std::map<std::string, Tensor> byName;
};

// nn.CNNLSTM: an embedding, filters over words, an LSTM of one bias, and logits of its last state.
inline Tensor cnnlstm(const Params &p, const Tensor &x) {
  Tensor h = at::embedding(p("1_embedding.weight"), x).transpose(1, 2);
  h = at::conv1d(h, p("2_conv.weight"), p("2_conv.bias")).relu();
  h = at::max_pool1d(h, 4).transpose(1, 2);
  const Tensor &bias = p("3_lstm.bias_ih"), none = at::zeros_like(bias);
  const Tensor start = at::zeros({1, x.size(0), p("3_lstm.weight_hh").size(1)}, bias.options());
  const auto out = at::lstm(h, {start, start}, {p("3_lstm.weight_ih"), p("3_lstm.weight_hh"), bias, none}, true, 1, 0.0,
                            true, false, true);
  return at::linear(std::get<1>(out).squeeze(0), p("4_output.weight"), p("4_output.bias"));
}

// networks.ResNet20 with the moments of the batch.
inline Tensor resnet(const Params &p, const Tensor &images) {
  auto conv = [&](const std::string &name, const Tensor &in, int64_t stride, int64_t padding) {
    return at::conv2d(in, p(name + ".weight"), p(name + ".bias"), stride, padding);
  };
  auto norm = [&](const std::string &name, const Tensor &in) {
    return at::batch_norm(in, p(name + ".scale"), p(name + ".bias"), {}, {}, true, 0.1, 1e-5, true);
  };
  Tensor x = norm("stem.1", conv("stem.0", images, 1, 1)).relu();
  for (int stage = 1; stage <= 3; ++stage)
    for (int block = 1; block <= 3; ++block) {
      const std::string name = "stage_" + std::to_string(stage) + "_block_" + std::to_string(block) + ".0.";
      const int64_t stride = stage > 1 && block == 1 ? 2 : 1;
      const Tensor h = norm(name + "body.1", conv(name + "body.0", x, stride, 1)).relu();
      const Tensor body = norm(name + "body.4", conv(name + "body.3", h, 1, 1));
      const Tensor shortcut = stride > 1 ? conv(name + "shortcut.0", x, stride, 0) : x;
      x = (shortcut + body).relu();
    }
  return at::linear(x.mean({2, 3}), p("output.weight"), p("output.bias"));
}

// A network on a batch of data.
struct Net {
  std::vector<Site> sites;
  Tensor (*logits)(const Params &, const Tensor &);
  Tensor x, y;
  double data = 0; // of which the batch is a part

  // The log posterior as a mean over the data, with the prior N(0, 1).
  Tensor density(const Tensor &flat) const {
    const Tensor logit = logits(Params(sites, flat), x);
    const double constant = -0.5 * std::log(2 * M_PI) * static_cast<double>(flat.numel());
    return (flat.dot(flat) * -0.5 + constant) / data - at::cross_entropy_loss(logit, y);
  }

  std::pair<Tensor, Tensor> value_and_grad(const Tensor &at) const {
    const Tensor leaf = at.detach().set_requires_grad(true);
    const Tensor value = density(leaf);
    return {value.detach(), torch::autograd::grad({value}, {leaf})[0]};
  }
};

// A step of stochastic gradient ascent with momentum, in place, as torch.optim.SGD makes it.
struct Training {
  Tensor theta, momentum;

  void step(const Net &net, double lr, double mu) {
    const Tensor grad = net.value_and_grad(theta).second;
    at::NoGradGuard without;
    if (momentum.defined())
      momentum.mul_(mu).add_(grad);
    else
      momentum = grad.clone();
    theta.add_(momentum, lr);
  }
};

} // namespace networks
