// Autoregression of order K.
data {
  int<lower=1> K;
  int<lower=K + 1> T;
  vector[T] y;
}
transformed data {
  matrix[T - K, K] lags;
  for (k in 1:K) lags[, k] = y[(K + 1 - k):(T - k)];
}
parameters {
  real alpha;
  vector[K] beta;
  real<lower=0> sigma;
}
model {
  alpha ~ normal(0, 10);
  beta ~ normal(0, 10);
  sigma ~ cauchy(0, 2.5);
  y[(K + 1):T] ~ normal(alpha + lags * beta, sigma);
}
