data {
  int N;
  int K;
  int H;
  int P;
  matrix[N, K] x;
  vector[N] y;
  matrix[P, K] at;
}
parameters {
  matrix[K, H] u;
  row_vector[H] b;
  vector[H] w;
  real a;
  real<lower=0> sigma;
}
transformed parameters {
  vector[P] f = tanh(at * u + rep_matrix(b, P)) * w + a;
}
model {
  to_vector(u) ~ normal(0, 1);
  b ~ normal(0, 1);
  w ~ normal(0, 1 / sqrt(H));
  a ~ normal(0, 1);
  sigma ~ normal(0, 1);
  y ~ normal(tanh(x * u + rep_matrix(b, N)) * w + a, sigma);
}
