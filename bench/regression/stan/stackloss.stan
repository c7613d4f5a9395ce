// Student's t, without groups.
data {
  int<lower=1> N;
  int<lower=1> K;
  matrix[N, K] X;
  vector[N] y;
  vector[2] intercept_prior;
  vector[K] b_sd;
  real<lower=0> sigma_rate;
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
  real<lower=0> nu;
}
transformed parameters {
  real intercept = intercept_centred - dot_product(means, b);
}
model {
  vector[N] eta = intercept_centred + Xc * b;
  y ~ student_t(nu, eta, sigma);
  intercept_centred ~ normal(intercept_prior[1], intercept_prior[2]);
  b ~ normal(0, b_sd);
  sigma ~ exponential(sigma_rate);
  nu ~ gamma(2, 0.1);
}
