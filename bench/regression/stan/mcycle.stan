// Gaussian with a smooth mean and a standard deviation that depends on a column.
data {
  int<lower=1> N;
  int<lower=1> K;
  matrix[N, K] X;
  vector[N] y;
  vector[2] intercept_prior;
  vector[K] b_sd;
  int<lower=1> D;
  matrix[N, D] Z;
  real<lower=0> sd_s_times_sd;
  vector[N] x_sigma;
  vector[2] intercept_sigma_prior;
  real<lower=0> b_sigma_sd;
}
transformed data {
  vector[K] means;
  matrix[N, K] Xc;
  for (k in 1:K) {
    means[k] = mean(X[, k]);
    Xc[, k] = X[, k] - means[k];
  }
  real mean_sigma = mean(x_sigma);
}
parameters {
  real intercept_centred;
  vector[K] b;
  real<lower=0> sd_s_times;
  vector[D] z_s_times;
  real intercept_centred_sigma;
  vector[1] b_sigma;
}
transformed parameters {
  real intercept = intercept_centred - dot_product(means, b);
  real intercept_sigma = intercept_centred_sigma - mean_sigma * b_sigma[1];
}
model {
  vector[N] eta = intercept_centred + Xc * b + Z * (sd_s_times * z_s_times);
  vector[N] sigma = exp(intercept_centred_sigma + (x_sigma - mean_sigma) * b_sigma[1]);
  y ~ normal(eta, sigma);
  intercept_centred ~ normal(intercept_prior[1], intercept_prior[2]);
  b ~ normal(0, b_sd);
  sd_s_times ~ normal(0, sd_s_times_sd);
  z_s_times ~ std_normal();
  intercept_centred_sigma ~ normal(intercept_sigma_prior[1], intercept_sigma_prior[2]);
  b_sigma ~ normal(0, b_sigma_sd);
}
