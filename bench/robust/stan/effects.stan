data {
  int N;
  int G;
  matrix[N, 3] x;
  array[N] int g;
  vector[N] y;
}
parameters {
  vector[3] gamma;
  vector<lower=0>[3] tau;
  cholesky_factor_corr[3] L;
  real<lower=0> sigma;
  matrix[G, 3] z;
}
model {
  matrix[G, 3] effect = rep_matrix(gamma', G) + z * diag_pre_multiply(tau, L)';
  vector[N] mean_y;
  for (i in 1:N) mean_y[i] = x[i] * effect[g[i] + 1]';
  gamma ~ normal(0, 5);
  tau ~ normal(0, 1);
  L ~ lkj_corr_cholesky(2);
  sigma ~ normal(0, 1);
  to_vector(z) ~ normal(0, 1);
  y ~ normal(mean_y, sigma);
}
