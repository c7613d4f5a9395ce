data {
  int n;
  matrix[n, 8] x;
  vector[n] y;
}
parameters {
  matrix[8, 50] w1;
  row_vector[50] b1;
  matrix[50, 50] w2;
  row_vector[50] b2;
  vector[50] w3;
  real b3;
  real<lower=0> sigma;
}
model {
  matrix[n, 50] h = tanh(tanh(x * w1 + rep_matrix(b1, n)) * w2 + rep_matrix(b2, n));
  to_vector(w1) ~ normal(0, inv_sqrt(8));
  to_vector(w2) ~ normal(0, inv_sqrt(50));
  w3 ~ normal(0, inv_sqrt(50));
  b1 ~ normal(0, 1);
  b2 ~ normal(0, 1);
  b3 ~ normal(0, 1);
  sigma ~ normal(0, 1);
  y ~ normal(h * w3 + b3, sigma);
}
