data {
  int N;
  int K;
  array[N] vector[K] y;
}
parameters {
  vector[K] mu;
  vector<lower=0>[K] s;
  cholesky_factor_corr[K] L;
}
model {
  mu ~ normal(0, 5);
  s ~ normal(0, 2);
  L ~ lkj_corr_cholesky(2);
  y ~ multi_normal_cholesky(mu, diag_pre_multiply(s, L));
}
