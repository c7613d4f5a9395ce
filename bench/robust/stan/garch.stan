data {
  int T;
  vector[T] y;
}
parameters {
  real<lower=0> base;
  simplex[3] w;
}
model {
  vector[T] v;
  v[1] = base;
  for (t in 2:T) v[t] = base * w[3] + w[1] * square(y[t - 1]) + w[2] * v[t - 1];
  base ~ normal(0, 1);
  y ~ normal(0, sqrt(v));
}
