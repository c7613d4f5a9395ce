#include "torch_api.h"
#include <ATen/FuncTorchTLS.h>
#include <ATen/Parallel.h>
#include <ATen/core/PhiloxRNGEngine.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <cmath>
#include <map>
#include <torch/csrc/autograd/custom_function.h>

// Gamma, Poisson, binomial and multinomial numbers. Each element of a draw has a Philox generator of its own, named by
// (seed of its chain, index of the element), because rejection takes any number of words: so a draw depends on neither
// the other chains nor the number of threads.

namespace ft = at::functorch;

namespace {

// engine gives uniform and normal numbers in double precision.
struct engine {
  at::Philox4_32 words;
  engine(uint64_t seed, uint64_t element) : words(seed, element, 0) {}
  double uniform() { // of the open unit interval: 52 bits and a half
    const uint64_t hi = words(), lo = words();
    return (static_cast<double>((hi << 20) | (lo >> 12)) + 0.5) * (1.0 / 4503599627370496.0);
  }
  double normal() {
    const double r = std::sqrt(-2.0 * std::log(uniform()));
    return r * std::cos(6.283185307179586476925286766559 * uniform());
  }
};

const double nan_value = std::numeric_limits<double>::quiet_NaN();

// gamma_number is a draw of the gamma distribution of shape alpha >= 1 (Marsaglia and Tsang 2000).
double gamma_number(engine &e, double alpha) {
  const double d = alpha - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double x = e.normal();
    const double t = 1.0 + c * x;
    if (t <= 0)
      continue;
    const double v = t * t * t;
    if (std::log(e.uniform()) < 0.5 * x * x + d * (1.0 - v + 3.0 * std::log(t)))
      return d * v;
  }
}

// stirling is log k! less Stirling's approximation (k + 1/2) log k - k + log sqrt(2 pi), and deviance
// x log(x/mu) + mu - x, from which Loader (2000) builds probabilities that stay accurate for large counts.
double stirling(double k) {
  if (k < 16)
    return std::lgamma(k + 1) - (k + 0.5) * std::log(k) + k - 0.91893853320467274178;
  const double r = 1.0 / (k * k);
  return (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r / 1680))) / k;
}

double deviance(double x, double mu) {
  const double t = (x - mu) / mu;
  return x == 0 ? mu : mu * ((1 + t) * std::log1p(t) - t);
}

double poisson_log(double k, double rate) {
  if (k == 0)
    return -rate;
  return -stirling(k) - deviance(k, rate) - 0.5 * std::log(6.283185307179586476925286766559 * k);
}

// poisson_number inverts the distribution function for small rates; above, it is transformed
// rejection (Hoermann 1993, PTRS).
double poisson_number(engine &e, double rate) {
  if (!(rate >= 0) || std::isinf(rate))
    return nan_value;
  if (rate < 10) {
    double u = e.uniform();
    double p = std::exp(-rate);
    double k = 0;
    while (u > p && k < 200) {
      u -= p;
      k += 1;
      p *= rate / k;
    }
    return k;
  }
  const double b = 0.931 + 2.53 * std::sqrt(rate);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double v_r = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = e.uniform() - 0.5;
    const double v = e.uniform();
    const double us = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= v_r)
      return k;
    if (k < 0 || (us < 0.013 && v > us))
      continue;
    if (std::log(v * inverse_alpha / (a / (us * us) + b)) <= poisson_log(k, rate))
      return k;
  }
}

double binomial_log(double k, double n, double p) {
  if (k == 0)
    return n * std::log1p(-p);
  if (k == n)
    return n * std::log(p);
  return stirling(n) - stirling(k) - stirling(n - k) - deviance(k, n * p) - deviance(n - k, n * (1 - p)) +
         0.5 * std::log(n / (6.283185307179586476925286766559 * k * (n - k)));
}

// binomial_number inverts the distribution function where few successes are expected; otherwise it is transformed
// rejection (Hoermann 1993, BTRS).
double binomial_number(engine &e, double n, double p) {
  if (!(n >= 0) || std::isinf(n) || !(p >= 0 && p <= 1))
    return nan_value;
  if (p > 0.5)
    return n - binomial_number(e, n, 1 - p);
  if (n * p < 10) {
    double u = e.uniform();
    double f = std::exp(n * std::log1p(-p));
    double k = 0;
    while (u > f && k < n && k < 300) {
      u -= f;
      f *= (n - k) / (k + 1) * (p / (1 - p));
      k += 1;
    }
    return k;
  }
  const double spread = std::sqrt(n * p * (1 - p));
  const double b = 1.15 + 2.53 * spread;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double v_r = 0.92 - 4.2 / b;
  const double alpha = (2.83 + 5.1 / b) * spread;
  const double mode = binomial_log(std::floor((n + 1) * p), n, p);
  for (;;) {
    const double u = e.uniform() - 0.5;
    const double v = e.uniform();
    const double us = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / us + b) * u + n * p + 0.5);
    if (k < 0 || k > n)
      continue;
    if (us >= 0.07 && v <= v_r)
      return k;
    if (std::log(v * alpha / (a / (us * us) + b)) <= binomial_log(k, n, p) - mode)
      return k;
  }
}

// von_mises_number is a draw around 0: rejection from a wrapped Cauchy (Best and Fisher 1979). Where the concentration
// is large, 1 - cos of the angle would be lost in rounding: w is that difference.
double von_mises_number(engine &e, double k) {
  if (!(k >= 0) || std::isinf(k))
    return nan_value;
  const double pi = 3.1415926535897932384626433832795;
  if (k < 1e-8)
    return pi * (2 * e.uniform() - 1);
  if (k > 1e8) // normal up to terms of order 1/k
    return e.normal() / std::sqrt(k);
  const double tau = 1 + std::sqrt(1 + 4 * k * k);
  const double rho = (tau - std::sqrt(2 * tau)) / (2 * k);
  // r - 1, with r as in the paper; for small k, where tau is lost in rounding, its limit.
  const double r1 = k < 1e-5 ? 1 / k + k - 1 : (1 - rho) * (1 - rho) / (2 * rho);
  for (;;) {
    const double z = std::sin(pi * (e.uniform() - 0.5)); // cos of a uniform angle
    const double w = r1 * (1 - z) / (r1 + 1 + z); // 1 - f
    const double c = k * (r1 + w);
    const double u = e.uniform();
    if (c * (2 - c) > u || std::log(c / u) + 1 >= c)
      return (e.uniform() < 0.5 ? -2 : 2) * std::asin(std::sqrt(std::min(1.0, w / 2)));
  }
}

// NoLevels takes the levels of vmap from this thread. While there are any, libtorch 2 refuses a function that has a
// backward pass in C++, even one whose tensors belong to no level.
struct NoLevels {
  std::unique_ptr<ft::FuncTorchTLSBase> levels;
  NoLevels() { levels.swap(ft::functorchTLSAccessor()); }
  ~NoLevels() { levels.swap(ft::functorchTLSAccessor()); }
};

// Once stands for a derivative that has none itself.
struct Once : torch::autograd::Function<Once> {
  static at::Tensor forward(torch::autograd::AutogradContext *, at::Tensor slope, at::Tensor) { return slope.clone(); }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext *, torch::autograd::variable_list) {
    throw std::logic_error("second derivatives of gamma draws are not implemented");
  }
};

// Pathwise is a draw with its derivative in the parameter.
struct Pathwise : torch::autograd::Function<Pathwise> {
  static at::Tensor forward(torch::autograd::AutogradContext *ctx, at::Tensor parameter, at::Tensor draw,
                            at::Tensor slope) {
    ctx->save_for_backward({parameter, slope});
    return draw.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext *ctx,
                                                 torch::autograd::variable_list grad) {
    auto saved = ctx->get_saved_variables();
    at::Tensor slope;
    {
      NoLevels bare;
      slope = Once::apply(saved[1], saved[0]);
    }
    return {grad[0] * slope, at::Tensor(), at::Tensor()};
  }
};

// Unmapped runs what follows on plain tensors although levels of vmap are open on this thread.
struct unmapped {
  const bool open = !ft::getDynamicLayerStack().empty();
  unmapped() {
    if (open)
      ft::setDynamicLayerFrontBackKeysIncluded(false);
  }
  ~unmapped() {
    if (open)
      ft::setDynamicLayerFrontBackKeysIncluded(true);
  }
};

// operand is a tensor without its marks of vmap: dimensions of levels first, then those that the program sees.
struct operand {
  at::Tensor value;
  std::vector<int64_t> levels; // ascending
};

operand unwrap(const at::Tensor &t) {
  auto *impl = ft::maybeGetBatchedImpl(t);
  if (impl == nullptr)
    return {t, {}};
  operand inner = unwrap(impl->value());
  const int64_t n = static_cast<int64_t>(inner.levels.size());
  inner.value = inner.value.movedim(n + impl->bdim(), n);
  inner.levels.push_back(impl->level());
  return inner;
}

// frame is the common shape of the operands: levels with their sizes, then the sizes that the program sees.
struct frame {
  std::map<int64_t, int64_t> levels;
  std::vector<int64_t> sizes;

  void include(const operand &o, int64_t last) { // all but the last dimensions
    const int64_t n = static_cast<int64_t>(o.levels.size());
    for (int64_t i = 0; i < n; ++i)
      levels[o.levels[i]] = o.value.size(i);
    sizes = at::infer_size(sizes, o.value.sizes().slice(n, o.value.dim() - n - last));
  }

  std::vector<int64_t> shape() const {
    std::vector<int64_t> s;
    for (auto &l : levels)
      s.push_back(l.second);
    s.insert(s.end(), sizes.begin(), sizes.end());
    return s;
  }

  // fit broadcasts an operand to the frame, but for the last dimensions, which it keeps.
  at::Tensor fit(const operand &o, int64_t last) const {
    const int64_t n = static_cast<int64_t>(o.levels.size());
    std::vector<int64_t> view;
    for (auto &l : levels)
      view.push_back(std::count(o.levels.begin(), o.levels.end(), l.first) ? l.second : 1);
    const int64_t own = o.value.dim() - n - last;
    view.insert(view.end(), sizes.size() - own, 1);
    for (int64_t i = n; i < o.value.dim(); ++i)
      view.push_back(o.value.size(i));
    auto to = shape();
    for (int64_t i = 0; i < last; ++i)
      to.push_back(o.value.size(o.value.dim() - last + i));
    return o.value.reshape(view).expand(to);
  }

  // map calls f with the index of each element and its generator. Evaluation k of the source's level has the seed k.
  template <typename F> void map(int64_t level, const uint64_t *seeds, int64_t n_seeds, const F &f) const {
    int64_t seen = 1; // elements that the program sees
    for (int64_t s : sizes)
      seen *= s;
    int64_t total = seen, inside = 1; // inside: evaluations of later levels, per evaluation of the source's
    for (auto &l : levels) {
      total *= l.second;
      if (l.first > level)
        inside *= l.second;
    }
    at::parallel_for(0, total, 512, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t chain = n_seeds == 1 ? 0 : i / seen / inside % n_seeds;
        engine e(seeds[chain], static_cast<uint64_t>(i % seen));
        f(i, e);
      }
    });
  }

  at::Tensor wrap(at::Tensor t) const {
    for (auto &l : levels)
      t = ft::makeBatched(t, 0, l.first);
    return t;
  }
};

at::Tensor doubles_of(const at::Tensor &t) { return t.detach().to(at::kCPU, at::kDouble).contiguous(); }

at::Tensor log_gamma(const frame &fr, const at::Tensor &alpha, int64_t level, const uint64_t *seeds, int64_t n_seeds) {
  // Below 1 a draw is that of alpha + 1 times u^(1/alpha); in logarithms this does not underflow.
  at::Tensor at_least_one, draw, log_u, log_x;
  {
    at::NoGradGuard off;
    auto a = doubles_of(alpha);
    at_least_one = at::empty_like(a), draw = at::empty_like(a), log_u = at::zeros_like(a);
    const double *ap = a.data_ptr<double>();
    double *one = at_least_one.data_ptr<double>(), *x = draw.data_ptr<double>(), *u = log_u.data_ptr<double>();
    fr.map(level, seeds, n_seeds, [=](int64_t i, engine &e) {
      const bool ok = ap[i] > 0 && !std::isinf(ap[i]);
      one[i] = !ok ? nan_value : ap[i] < 1 ? ap[i] + 1 : ap[i];
      x[i] = ok ? gamma_number(e, one[i]) : nan_value;
      if (ok && ap[i] < 1)
        u[i] = std::log(e.uniform());
    });
    log_x = draw.log() + log_u / a;
    if (alpha.requires_grad()) {
      auto slope = at::_standard_gamma_grad(at_least_one, draw) / draw - log_u / a.square();
      log_u = slope.to(alpha.device(), alpha.scalar_type());
    }
    log_x = log_x.to(alpha.device(), alpha.scalar_type());
  }
  if (!(alpha.requires_grad() && at::GradMode::is_enabled()))
    return log_x;
  NoLevels bare;
  return Pathwise::apply(alpha, log_x, log_u);
}

// category_numbers is a multinomial draw: category after category, a binomial number of those that are left.
void category_numbers(engine &e, double count, const double *weights, int64_t k, double *to) {
  double rest = 0;
  for (int64_t j = k - 1; j >= 0; --j)
    to[j] = rest += weights[j]; // the weight of j and all later
  double left = count;
  for (int64_t j = 0; j < k; ++j) {
    double here = left;
    if (j < k - 1)
      here = left == 0 ? 0 : binomial_number(e, left, std::min(1.0, weights[j] / to[j]));
    to[j] = here;
    left -= here;
  }
}

// sample is kelvin_sample, with errors thrown.
at::Tensor sample(int op, tensor a, tensor b, int64_t level, const uint64_t *seeds, int64_t n_seeds) {
  unmapped plain;
  const int64_t last = op == 3 ? 1 : 0;
  const operand x = unwrap(*a);
  operand y;
  frame fr;
  fr.include(x, 0);
  auto type = a->scalar_type();
  if (b != nullptr) {
    y = unwrap(*b);
    fr.include(y, last);
    type = at::promote_types(type, b->scalar_type());
  }
  if (!at::isFloatingType(type))
    type = at::kDouble;
  if (level > 0) {
    auto found = fr.levels.find(level);
    if (found != fr.levels.end() && found->second != n_seeds)
      throw std::logic_error("the number of streams is wrong");
    fr.levels[level] = n_seeds;
  }
  const at::Tensor first = fr.fit(x, 0);
  if (op == 0) {
    const at::Tensor shape = at::isFloatingType(first.scalar_type()) ? first : first.to(type);
    return fr.wrap(log_gamma(fr, shape, level, seeds, n_seeds));
  }
  at::NoGradGuard off;
  const at::Tensor p = doubles_of(first);
  const at::Tensor q = b != nullptr ? doubles_of(fr.fit(y, last)) : p;
  const at::Tensor t = at::empty_like(q);
  const double *pp = p.data_ptr<double>();
  const double *qp = q.data_ptr<double>();
  double *to = t.data_ptr<double>();
  const int64_t k = last ? q.size(-1) : 1;
  fr.map(level, seeds, n_seeds, [=](int64_t i, engine &e) {
    if (op == 1)
      to[i] = poisson_number(e, pp[i]);
    else if (op == 2)
      to[i] = binomial_number(e, pp[i], qp[i]);
    else if (op == 4)
      to[i] = von_mises_number(e, pp[i]);
    else
      category_numbers(e, pp[i], qp + i * k, k, to + i * k);
  });
  return fr.wrap(t.to(a->device(), type));
}

} // namespace

void kelvin_sample(tensor *out__, int op, tensor a, tensor b, int64_t level, uint64_t *seeds, int64_t n_seeds) {
  KELVIN_OP(1, RECORD_FUNCTION("kelvin::sample", std::vector<c10::IValue>{});
            out__[0] = new torch::Tensor(sample(op, a, b, level, seeds, n_seeds));)
}
