data {
  int n;
  int k;
  row_vector[n] y;
}
parameters {
  array[k] simplex[k] transition;
  vector[k] mu;
}
model {
  matrix[k, k] rows;
  matrix[k, n] seen;
  mu ~ normal(0, 3);
  for (i in 1:k) {
    rows[i] = transition[i]';
    seen[i] = -0.5 * square(y - mu[i]) - 0.5 * log(2 * pi());
  }
  target += hmm_marginal(seen, rows, rep_vector(inv(k), k));
}
