data {
  int N;
  real low;
  real high;
}
parameters {
  real<lower=0, upper=1> p;
  real<lower=0> theta;
  real<lower=0, upper=1> u;
}
model {
  0 ~ binomial(1000, p);
  low ~ normal(theta, 1 / sqrt(N));
  high ~ normal(u, 1 / sqrt(N));
}
