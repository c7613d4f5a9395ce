data {
  int N;
  int K;
  matrix[N, K] x;
  array[N] int y;
}
parameters {
  real a;
  vector[K] b;
}
model {
  a ~ normal(0, 10);
  b ~ normal(0, 10);
  y ~ bernoulli_logit_glm(x, a, b);
}
