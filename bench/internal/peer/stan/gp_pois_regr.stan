// Poisson counts whose log rate is a Gaussian process.
data {
  int<lower=1> N;
  array[N] real x;
  array[N] int<lower=0> k;
}
parameters {
  real<lower=0> rho;
  real<lower=0> alpha;
  vector[N] u;
}
transformed parameters {
  vector[N] f;
  {
    matrix[N, N] cov = add_diag(gp_exp_quad_cov(x, alpha, rho), 1e-10);
    f = cholesky_decompose(cov) * u;
  }
}
model {
  rho ~ gamma(25, 4);
  alpha ~ normal(0, 2);
  u ~ std_normal();
  k ~ poisson_log(f);
}
