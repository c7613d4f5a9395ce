data {
  int T;
  vector[T] y;
}
parameters {
  real mu;
  real phi;
  real theta;
  real<lower=0> sigma;
}
model {
  vector[T] e;
  e[1] = y[1] - (mu + phi * mu);
  for (t in 2:T) e[t] = y[t] - (mu + phi * y[t - 1] + theta * e[t - 1]);
  mu ~ normal(0, 10);
  phi ~ normal(0, 2);
  theta ~ normal(0, 2);
  sigma ~ cauchy(0, 2.5);
  e ~ normal(0, sigma);
}
