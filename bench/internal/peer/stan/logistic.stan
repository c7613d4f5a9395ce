// Logistic regression with standard normal weights.
data {
  int<lower=0> N;
  int<lower=0> D;
  matrix[N, D] X;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  vector[D] w;
}
model {
  w ~ std_normal();
  y ~ bernoulli_logit_glm(X, 0, w);
}
