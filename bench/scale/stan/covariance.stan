data {
  int n;
  int k;
  array[n] vector[k] y;
}
parameters {
  vector[k] mu;
  vector<lower=0>[k] s;
  cholesky_factor_corr[k] L;
}
model {
  mu ~ normal(0, 5);
  s ~ normal(0, 2);
  L ~ lkj_corr_cholesky(2);
  y ~ multi_normal_cholesky(mu, diag_pre_multiply(s, L));
}
