// An epidemic among N people, seen through counts of the infected; one person is infected at the start.
functions {
  vector sir(real t, vector y, real beta, real gamma, real N) {
    real infections = beta * y[1] * y[2] / N;
    real recoveries = gamma * y[2];
    return [-infections, infections - recoveries, recoveries]';
  }
}
data {
  int<lower=1> T;
  real<lower=1> N;
  array[T] real<lower=0> times;
  array[T] int<lower=0> cases;
}
parameters {
  real<lower=0> beta;
  real<lower=0> gamma;
  real<lower=0> phi_inv;
}
model {
  array[T] vector[3] y = ode_rk45_tol(sir, [N - 1, 1, 0]', 0.0, times, 1e-6, 1e-8, 10000, beta, gamma, N);
  beta ~ normal(2, 1);
  gamma ~ normal(0.4, 0.5);
  phi_inv ~ exponential(5);
  cases ~ neg_binomial_2(y[, 2], 1 / phi_inv);
}
