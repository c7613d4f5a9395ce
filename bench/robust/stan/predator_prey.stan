functions {
  vector rates(real t, vector y, real a, real b, real g, real d) {
    return [(a - b * y[2]) * y[1], (d * y[1] - g) * y[2]]';
  }
}
data {
  int T;
  array[T] real times;
  array[T] vector[2] y;
  vector[2] first;
}
parameters {
  real<lower=0> a;
  real<lower=0> b;
  real<lower=0> g;
  real<lower=0> d;
  vector<lower=0>[2] start;
  vector<lower=0>[2] sigma;
}
model {
  array[T] vector[2] z = ode_rk45_tol(rates, start, 0.0, times, 1e-6, 1e-8, 10000, a, b, g, d);
  a ~ normal(1, 0.5);
  g ~ normal(1, 0.5);
  b ~ normal(0.05, 0.05);
  d ~ normal(0.05, 0.05);
  start ~ lognormal(log(10), 1);
  sigma ~ lognormal(-1, 1);
  first ~ lognormal(log(start), sigma);
  for (t in 1:T) y[t] ~ lognormal(log(fmax(z[t], 1e-8)), sigma);
}
