data {
  int T;
  vector[T] y;
}
parameters {
  real mu;
  real<lower=-1, upper=1> phi;
  real<lower=0> sigma;
  vector[T] z;
}
model {
  vector[T] h = z * sigma;
  h[1] /= sqrt(1 - square(phi));
  for (t in 2:T) h[t] += phi * h[t - 1];
  mu ~ cauchy(0, 10);
  sigma ~ cauchy(0, 5);
  z ~ normal(0, 1);
  y ~ normal(0, exp((mu + h) / 2));
}
