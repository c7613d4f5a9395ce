// Negative binomial counts, with intercepts of subjects.
data {
  int<lower=1> N;
  int<lower=1> K;
  matrix[N, K] X;
  array[N] int<lower=0> y;
  vector[2] intercept_prior;
  vector[K] b_sd;
  int<lower=1> J_subject;
  array[N] int<lower=1> subject;
  vector[1] sd_subject_sd;
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
  real<lower=0> shape;
  vector<lower=0>[1] sd_subject;
  vector[J_subject] z_subject;
}
transformed parameters {
  vector[J_subject] r_subject = sd_subject[1] * z_subject;
  real intercept = intercept_centred - dot_product(means, b);
}
model {
  vector[N] eta = rep_vector(intercept_centred, N);
  for (n in 1:N) eta[n] += r_subject[subject[n]];
  y ~ neg_binomial_2_log_glm(Xc, eta, b, shape);
  intercept_centred ~ normal(intercept_prior[1], intercept_prior[2]);
  b ~ normal(0, b_sd);
  shape ~ cauchy(0, 1);
  sd_subject ~ normal(0, sd_subject_sd);
  z_subject ~ std_normal();
}
