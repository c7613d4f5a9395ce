data {
  int N;
  array[N] int y;
}
parameters {
  real mu;
  real<lower=0> phi;
}
model {
  mu ~ normal(0, 10);
  phi ~ cauchy(0, 100);
  y ~ neg_binomial_2_log(mu, phi);
}
