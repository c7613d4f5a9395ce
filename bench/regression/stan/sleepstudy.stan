// Gaussian, with intercepts and slopes of subjects.
data {
  int<lower=1> N;
  int<lower=1> K;
  matrix[N, K] X;
  vector[N] y;
  vector[2] intercept_prior;
  vector[K] b_sd;
  real<lower=0> sigma_rate;
  int<lower=1> J_subject;
  array[N] int<lower=1> subject;
  vector[N] x_subject;
  vector[2] sd_subject_sd;
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
  vector<lower=0>[2] sd_subject;
  cholesky_factor_corr[2] L_subject;
  matrix[2, J_subject] z_subject;
}
transformed parameters {
  matrix[J_subject, 2] r_subject = (diag_pre_multiply(sd_subject, L_subject) * z_subject)';
  vector[J_subject] intercept_subject = r_subject[, 1];
  vector[J_subject] slope_subject = r_subject[, 2];
  vector[1] cor_subject = [L_subject[2, 1]]';
  real intercept = intercept_centred - dot_product(means, b);
}
model {
  vector[N] eta = rep_vector(intercept_centred, N);
  for (n in 1:N) eta[n] += intercept_subject[subject[n]] + slope_subject[subject[n]] * x_subject[n];
  y ~ normal_id_glm(Xc, eta, b, sigma);
  intercept_centred ~ normal(intercept_prior[1], intercept_prior[2]);
  b ~ normal(0, b_sd);
  sigma ~ exponential(sigma_rate);
  sd_subject ~ normal(0, sd_subject_sd);
  L_subject ~ lkj_corr_cholesky(1);
  to_vector(z_subject) ~ std_normal();
}
