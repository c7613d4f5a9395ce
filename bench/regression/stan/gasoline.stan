// Shares, with intercepts of batches.
data {
  int<lower=1> N;
  int<lower=1> K;
  matrix[N, K] X;
  vector<lower=0, upper=1>[N] y;
  vector[2] intercept_prior;
  vector[K] b_sd;
  int<lower=1> J_batch;
  array[N] int<lower=1> batch;
  vector[1] sd_batch_sd;
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
  real<lower=0> phi;
  vector<lower=0>[1] sd_batch;
  vector[J_batch] z_batch;
}
transformed parameters {
  vector[J_batch] r_batch = sd_batch[1] * z_batch;
  real intercept = intercept_centred - dot_product(means, b);
}
model {
  vector[N] eta = intercept_centred + Xc * b;
  for (n in 1:N) eta[n] += r_batch[batch[n]];
  eta = inv_logit(eta);
  y ~ beta(eta * phi, (1 - eta) * phi);
  intercept_centred ~ normal(intercept_prior[1], intercept_prior[2]);
  b ~ normal(0, b_sd);
  phi ~ cauchy(0, 1);
  sd_batch ~ normal(0, sd_batch_sd);
  z_batch ~ std_normal();
}
