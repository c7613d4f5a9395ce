// Gaussian, with intercepts and slopes of counties.
data {
  int<lower=1> N;
  int<lower=1> K;
  matrix[N, K] X;
  vector[N] y;
  vector[2] intercept_prior;
  vector[K] b_sd;
  real<lower=0> sigma_rate;
  int<lower=1> J_county;
  array[N] int<lower=1> county;
  vector[N] x_county;
  vector[2] sd_county_sd;
}
transformed data {
  vector[K] means;
  matrix[N, K] Xc;
  for (k in 1:K) {
    means[k] = mean(X[, k]);
    Xc[, k] = X[, k] - means[k];
  }
}
parameters {
  real intercept_centred;
  vector[K] b;
  real<lower=0> sigma;
  vector<lower=0>[2] sd_county;
  cholesky_factor_corr[2] L_county;
  matrix[2, J_county] z_county;
}
transformed parameters {
  matrix[J_county, 2] r_county = (diag_pre_multiply(sd_county, L_county) * z_county)';
  vector[J_county] intercept_county = r_county[, 1];
  vector[J_county] slope_county = r_county[, 2];
  vector[1] cor_county = [L_county[2, 1]]';
  real intercept = intercept_centred - dot_product(means, b);
}
model {
  vector[N] eta = rep_vector(intercept_centred, N);
  for (n in 1:N) eta[n] += intercept_county[county[n]] + slope_county[county[n]] * x_county[n];
  y ~ normal_id_glm(Xc, eta, b, sigma);
  intercept_centred ~ normal(intercept_prior[1], intercept_prior[2]);
  b ~ normal(0, b_sd);
  sigma ~ exponential(sigma_rate);
  sd_county ~ normal(0, sd_county_sd);
  L_county ~ lkj_corr_cholesky(1);
  to_vector(z_county) ~ std_normal();
}
