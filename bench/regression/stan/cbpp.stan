// Binomial counts, with intercepts of herds.
data {
  int<lower=1> N;
  int<lower=1> K;
  matrix[N, K] X;
  array[N] int<lower=0> trials;
  array[N] int<lower=0> y;
  vector[2] intercept_prior;
  vector[K] b_sd;
  int<lower=1> J_herd;
  array[N] int<lower=1> herd;
  vector[1] sd_herd_sd;
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
  vector<lower=0>[1] sd_herd;
  vector[J_herd] z_herd;
}
transformed parameters {
  vector[J_herd] r_herd = sd_herd[1] * z_herd;
  real intercept = intercept_centred - dot_product(means, b);
}
model {
  vector[N] eta = intercept_centred + Xc * b;
  for (n in 1:N) eta[n] += r_herd[herd[n]];
  y ~ binomial_logit(trials, eta);
  intercept_centred ~ normal(intercept_prior[1], intercept_prior[2]);
  b ~ normal(0, b_sd);
  sd_herd ~ normal(0, sd_herd_sd);
  z_herd ~ std_normal();
}
