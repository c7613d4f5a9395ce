data {
  int T;
  vector[T] y;
}
parameters {
  real<lower=0> step;
  real<lower=0> noise;
  vector[T] level;
}
model {
  step ~ normal(0, 1);
  noise ~ normal(0, 1);
  level[1] ~ normal(0, step);
  level[2:T] ~ normal(level[1:(T - 1)], step);
  y ~ normal(level, noise);
}
