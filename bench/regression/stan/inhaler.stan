// Ordered categories, with intercepts of subjects.
data {
  int<lower=1> N;
  int<lower=1> K;
  matrix[N, K] X;
  int<lower=2> C;
  array[N] int<lower=1, upper=C> y;
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
  vector[K] b;
  ordered[C - 1] thresholds_centred;
  vector<lower=0>[1] sd_subject;
  vector[J_subject] z_subject;
}
transformed parameters {
  vector[J_subject] r_subject = sd_subject[1] * z_subject;
  vector[C - 1] thresholds = thresholds_centred + dot_product(means, b);
}
model {
  vector[N] eta = Xc * b;
  for (n in 1:N) eta[n] += r_subject[subject[n]];
  for (n in 1:N) y[n] ~ ordered_logistic(eta[n], thresholds_centred);
  b ~ normal(0, b_sd);
  thresholds_centred ~ normal(0, 2.5);
  sd_subject ~ normal(0, sd_subject_sd);
  z_subject ~ std_normal();
}
