// Poisson counts with more zeros.
functions {
  real inflated_lpmf(int y, real eta, real zi) {
    if (y > 0) return bernoulli_lpmf(0 | zi) + poisson_log_lpmf(y | eta);
    return log_sum_exp(bernoulli_lpmf(1 | zi), bernoulli_lpmf(0 | zi) + poisson_log_lpmf(0 | eta));
  }
}
data {
  int<lower=1> N;
  int<lower=1> K;
  matrix[N, K] X;
  array[N] int<lower=0> y;
  vector[2] intercept_prior;
  vector[K] b_sd;
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
  real<lower=0, upper=1> zi;
}
transformed parameters {
  real intercept = intercept_centred - dot_product(means, b);
}
model {
  vector[N] eta = intercept_centred + Xc * b;
  for (n in 1:N) target += inflated_lpmf(y[n] | eta[n], zi);
  intercept_centred ~ normal(intercept_prior[1], intercept_prior[2]);
  b ~ normal(0, b_sd);
  zi ~ beta(2, 2);
}
