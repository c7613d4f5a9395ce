data {
  int n;
  array[n] real x;
  vector[n] y;
}
parameters {
  real<lower=0> scale;
  real<lower=0> length;
  real<lower=0> noise;
}
model {
  scale ~ normal(0, 1);
  length ~ lognormal(0, 1);
  noise ~ normal(0, 1);
  y ~ multi_normal_cholesky(rep_vector(0, n),
                            cholesky_decompose(add_diag(gp_exp_quad_cov(x, scale, length), square(noise))));
}
