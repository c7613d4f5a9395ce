// A Stan model as a shared library: the C interface of BridgeStan 2, which nutpie loads; Stan's own NUTS; and a loop
// that times gradients. It is compiled once for all models, and linked with the object that PyStan makes of each.
#include <time.h>

#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include <stan/callbacks/interrupt.hpp>
#include <stan/callbacks/logger.hpp>
#include <stan/callbacks/writer.hpp>
#include <stan/io/empty_var_context.hpp>
#include <stan/io/json/json_data.hpp>
#include <stan/model/log_prob_grad.hpp>
#include <stan/model/model_base.hpp>
#include <stan/services/sample/hmc_nuts_diag_e_adapt.hpp>
#include <stan/services/util/create_rng.hpp>

stan::model::model_base &new_model(stan::io::var_context &data, unsigned int seed, std::ostream *messages);

struct bs_model {
  stan::model::model_base *model;
  std::string name, names[4], unconstrained;  // names: index_of
  int count[4];
};

struct bs_rng {
  stan::rng_t rng;
};

namespace {

std::string joined(const std::vector<std::string> &names) {
  std::string out;
  for (const auto &n : names) out += (out.empty() ? "" : ",") + n;
  return out;
}

int fail(const char *message, char **error) {
  if (error) *error = strdup(message);
  return -1;
}

// Each thread needs a stack of its own for Stan's derivatives.
void thread_stack() { static thread_local stan::math::ChainableStack stack; }

template <class F>
int guarded(char **error, F f) {
  try {
    thread_stack();
    f();
    return 0;
  } catch (const std::exception &e) {
    return fail(e.what(), error);
  }
}

double gradient_of(const bs_model *m, bool propto, bool jacobian, Eigen::VectorXd &x, Eigen::VectorXd &g) {
  using stan::model::log_prob_grad;
  auto &model = *m->model;
  if (propto) return jacobian ? log_prob_grad<true, true>(model, x, g) : log_prob_grad<true, false>(model, x, g);
  return jacobian ? log_prob_grad<false, true>(model, x, g) : log_prob_grad<false, false>(model, x, g);
}

Eigen::VectorXd point(const bs_model *m, const double *theta) {
  return Eigen::Map<const Eigen::VectorXd>(theta, m->model->num_params_r());
}

int index_of(bool transformed, bool generated) { return 2 * transformed + generated; }

// store keeps a sampler's draws.
class store : public stan::callbacks::writer {
 public:
  explicit store(size_t width) : width_(width) {}
  void operator()(const std::vector<double> &row) override {
    if (row.size() != width_) return;
    numbers.insert(numbers.end(), row.begin(), row.end());
  }
  std::vector<double> numbers;

 private:
  size_t width_;
};

}  // namespace

extern "C" {

extern const int bs_major_version = 2, bs_minor_version = 9, bs_patch_version = 0;

bs_model *bs_model_construct(const char *data, unsigned int seed, char **error) {
  bs_model *m = nullptr;
  guarded(error, [&] {
    std::istringstream text(data && *data ? data : "{}");
    stan::json::json_data context(text);
    auto *model = &new_model(context, seed, nullptr);
    m = new bs_model{model};
    m->name = model->model_name();
    for (int i = 0; i < 4; i++) {
      std::vector<std::string> names;
      model->constrained_param_names(names, i / 2, i % 2);
      m->names[i] = joined(names);
      m->count[i] = names.size();
    }
    std::vector<std::string> names;
    model->unconstrained_param_names(names, false, false);
    m->unconstrained = joined(names);
  });
  return m;
}

void bs_model_destruct(bs_model *m) {
  if (m) delete m->model;
  delete m;
}

void bs_free_error_msg(char *message) { free(message); }
const char *bs_name(const bs_model *m) { return m->name.c_str(); }
const char *bs_model_info(const bs_model *) { return "STAN_THREADS=true"; }
const char *bs_param_unc_names(const bs_model *m) { return m->unconstrained.c_str(); }
int bs_param_unc_num(const bs_model *m) { return m->model->num_params_r(); }

const char *bs_param_names(const bs_model *m, bool transformed, bool generated) {
  return m->names[index_of(transformed, generated)].c_str();
}

int bs_param_num(const bs_model *m, bool transformed, bool generated) {
  return m->count[index_of(transformed, generated)];
}

int bs_param_constrain(const bs_model *m, bool transformed, bool generated, const double *theta, double *out,
                       bs_rng *rng, char **error) {
  return guarded(error, [&] {
    stan::rng_t spare = stan::services::util::create_rng(1, 1);
    Eigen::VectorXd x = point(m, theta), v;
    m->model->write_array(rng ? rng->rng : spare, x, v, transformed, generated, nullptr);
    std::copy(v.data(), v.data() + v.size(), out);
  });
}

int bs_param_unconstrain(const bs_model *m, const double *theta, double *out, char **error) {
  return guarded(error, [&] {
    Eigen::VectorXd v = Eigen::Map<const Eigen::VectorXd>(theta, m->count[0]), x;
    m->model->unconstrain_array(v, x, nullptr);
    std::copy(x.data(), x.data() + x.size(), out);
  });
}

int bs_param_unconstrain_json(const bs_model *m, const char *json, double *out, char **error) {
  return guarded(error, [&] {
    std::istringstream text(json);
    stan::json::json_data context(text);
    Eigen::VectorXd x;
    m->model->transform_inits(context, x, nullptr);
    std::copy(x.data(), x.data() + x.size(), out);
  });
}

int bs_log_density_gradient(const bs_model *m, bool propto, bool jacobian, const double *theta, double *value,
                            double *grad, char **error) {
  return guarded(error, [&] {
    Eigen::VectorXd x = point(m, theta), g;
    *value = gradient_of(m, propto, jacobian, x, g);
    std::copy(g.data(), g.data() + g.size(), grad);
  });
}

int bs_log_density(const bs_model *m, bool propto, bool jacobian, const double *theta, double *value, char **error) {
  std::vector<double> grad(m->model->num_params_r());
  return bs_log_density_gradient(m, propto, jacobian, theta, value, grad.data(), error);
}

// Second derivatives are part of the interface; no sampler here asks for them.
int bs_log_density_hessian(const bs_model *, bool, bool, const double *, double *, double *, double *, char **error) {
  return fail("there are no second derivatives", error);
}

int bs_log_density_hessian_vector_product(const bs_model *, bool, bool, const double *, const double *, double *,
                                          double *, char **error) {
  return fail("there are no second derivatives", error);
}

bs_rng *bs_rng_construct(unsigned int seed, char **) { return new bs_rng{stan::services::util::create_rng(seed, 0)}; }
void bs_rng_destruct(bs_rng *r) { delete r; }
int bs_set_print_callback(void (*)(const char *, size_t), char **) { return 0; }

// kelvin_sample runs one chain of Stan's NUTS with a diagonal metric at CmdStan's defaults, but for delta, the target
// of the acceptance probability. draws gets [number, bs_param_num(true, false)] numbers, counts how many gradients the
// transitions of the warm-up and those of the draws took, and how many of the latter diverged.
int kelvin_sample(const bs_model *m, unsigned int seed, unsigned int chain, int warmup, int number, double delta,
                  double *draws, double *counts, char **error) {
  return guarded(error, [&] {
    stan::io::empty_var_context start;
    stan::callbacks::interrupt interrupt;
    stan::callbacks::logger logger;
    stan::callbacks::writer nowhere;
    const size_t width = m->count[index_of(true, false)];
    const size_t before = 7;  // lp, acceptance, step size, depth, leapfrogs, divergent, energy
    const size_t row = before + m->count[index_of(true, true)];
    store out(row);
    int status = stan::services::sample::hmc_nuts_diag_e_adapt(
        *m->model, start, seed, chain, 2, warmup, number, 1, true, 0, 1, 0, 10, delta, 0.05, 0.75, 10, 75, 50, 25,
        interrupt, logger, nowhere, out, nowhere);
    if (status != 0 || out.numbers.size() != (warmup + number) * row) throw std::runtime_error("Stan's sampler failed");
    counts[0] = counts[1] = counts[2] = 0;
    for (int i = 0; i < warmup + number; i++) {
      const double *from = out.numbers.data() + i * row;
      counts[i >= warmup] += from[4];
      if (i >= warmup) counts[2] += from[5];
      if (i >= warmup) std::copy(from + before, from + before + width, draws + (i - warmup) * width);
    }
  });
}

// kelvin_gradients evaluates the gradient at a point n times and returns the seconds of the thread's CPU.
double kelvin_gradients(const bs_model *m, const double *theta, long n) {
  thread_stack();
  Eigen::VectorXd x = point(m, theta), g;
  timespec a, b;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
  for (long i = 0; i < n; i++) gradient_of(m, true, true, x, g);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
  return (b.tv_sec - a.tv_sec) + 1e-9 * (b.tv_nsec - a.tv_nsec);
}

}  // extern "C"
