// Weibull times, some of them censored from the right, with intercepts of patients.
data {
  int<lower=1> N;
  int<lower=1> K;
  matrix[N, K] X;
  vector<lower=0>[N] y;
  array[N] int<lower=0, upper=1> censored;
  vector[2] intercept_prior;
  vector[K] b_sd;
  int<lower=1> J_patient;
  array[N] int<lower=1> patient;
  vector[1] sd_patient_sd;
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
  vector<lower=0>[1] sd_patient;
  vector[J_patient] z_patient;
}
transformed parameters {
  vector[J_patient] r_patient = sd_patient[1] * z_patient;
  real intercept = intercept_centred - dot_product(means, b);
}
model {
  vector[N] eta = intercept_centred + Xc * b;
  for (n in 1:N) eta[n] += r_patient[patient[n]];
  vector[N] scale;
  eta = exp(eta);
  scale = eta / tgamma(1 + 1 / shape);
  for (n in 1:N) {
    if (censored[n] == 0) target += weibull_lpdf(y[n] | shape, scale[n]);
    else target += weibull_lccdf(y[n] | shape, scale[n]);
  }
  intercept_centred ~ normal(intercept_prior[1], intercept_prior[2]);
  b ~ normal(0, b_sd);
  shape ~ cauchy(0, 1);
  sd_patient ~ normal(0, sd_patient_sd);
  z_patient ~ std_normal();
}
