data {
  int N;
  int K;
  matrix[N, K] x;
  vector[N] y;
}
parameters {
  vector[K] beta;
  real<lower=0> sigma;
}
model {
  y ~ normal_id_glm(x, 0, beta, sigma);
}
