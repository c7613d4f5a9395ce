data {
  int N;
  vector[N] x;
  vector[N] y;
}
parameters {
  real a;
  real b;
  real<lower=0> sigma;
  real<lower=0> nu;
}
model {
  nu ~ gamma(2, 0.1);
  y ~ student_t(nu, a + b * x, sigma);
}
