// Linear regression with flat coefficients whose columns q are orthogonal: X beta = q theta.
data {
  int<lower=0> N;
  int<lower=0> K;
  matrix[N, K] q;
  matrix[K, K] back; // beta = back theta
  vector[N] y;
  real<lower=0> scale; // of the half-Cauchy prior of sigma; 0: flat
}
parameters {
  vector[K] theta;
  real<lower=0> sigma;
}
transformed parameters {
  vector[K] beta = back * theta;
}
model {
  if (scale > 0) sigma ~ cauchy(0, scale);
  y ~ normal(q * theta, sigma);
}
