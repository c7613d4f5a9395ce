data {
  int n;
  int k;
  matrix[n, k] x;
  array[n] int y;
}
parameters {
  vector[k] w;
}
model {
  w ~ normal(0, 1);
  y ~ bernoulli_logit_glm(x, 0, w);
}
