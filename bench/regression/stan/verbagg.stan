// Binary answers, with intercepts of persons and of items.
data {
  int<lower=1> N;
  int<lower=1> K;
  matrix[N, K] X;
  array[N] int<lower=0, upper=1> y;
  vector[2] intercept_prior;
  vector[K] b_sd;
  int<lower=1> J_id;
  array[N] int<lower=1> id;
  vector[1] sd_id_sd;
  int<lower=1> J_item;
  array[N] int<lower=1> item;
  vector[1] sd_item_sd;
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
  vector<lower=0>[1] sd_id;
  vector[J_id] z_id;
  vector<lower=0>[1] sd_item;
  vector[J_item] z_item;
}
transformed parameters {
  vector[J_id] r_id = sd_id[1] * z_id;
  vector[J_item] r_item = sd_item[1] * z_item;
  real intercept = intercept_centred - dot_product(means, b);
}
model {
  vector[N] eta = rep_vector(intercept_centred, N);
  for (n in 1:N) eta[n] += r_id[id[n]] + r_item[item[n]];
  y ~ bernoulli_logit_glm(Xc, eta, b);
  intercept_centred ~ normal(intercept_prior[1], intercept_prior[2]);
  b ~ normal(0, b_sd);
  sd_id ~ normal(0, sd_id_sd);
  z_id ~ std_normal();
  sd_item ~ normal(0, sd_item_sd);
  z_item ~ std_normal();
}
