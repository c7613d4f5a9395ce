// Linear regression of log earnings with an interaction.
data {
  int<lower=0> N;
  vector[N] earn;
  vector[N] height;
  vector[N] male;
}
transformed data {
  vector[N] y = log(earn);
  vector[N] both = height .* male;
}
parameters {
  vector[4] beta;
  real<lower=0> sigma;
}
model {
  y ~ normal(beta[1] + beta[2] * height + beta[3] * male + beta[4] * both, sigma);
}
