data {
  int n;
  matrix[1, n] y;
}
transformed data {
  matrix[5, 1] see = [[1], [0], [1], [0], [0]];
  matrix[5, 5] move = [[1, 1, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, -1, -1, -1], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0]];
}
parameters {
  real<lower=0> noise;
  real<lower=0> scale;
}
model {
  noise ~ normal(0, 1);
  scale ~ normal(0, 1);
  y ~ gaussian_dlm_obs(see, move, [square(noise)]',
                       diag_matrix([square(scale), 0.01, square(scale), 0, 0]'), rep_vector(0, 5),
                       identity_matrix(5));
}
