data {
  int N;
  array[N] real x;
  array[N] int y;
}
parameters {
  real<lower=0> rho;
  real<lower=0> alpha;
  real base;
  vector[N] z;
}
model {
  matrix[N, N] K = add_diag(gp_exp_quad_cov(x, alpha, rho), 1e-6);
  rho ~ inv_gamma(5, 5);
  alpha ~ normal(0, 2);
  base ~ normal(0, 3);
  z ~ normal(0, 1);
  y ~ poisson_log(base + cholesky_decompose(K) * z);
}
