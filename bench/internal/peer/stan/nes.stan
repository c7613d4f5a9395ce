// Linear regression with a factor of four levels.
data {
  int<lower=0> N;
  vector[N] partyid7;
  vector[N] real_ideo;
  vector[N] race_adj;
  vector[N] educ1;
  vector[N] gender;
  vector[N] income;
  array[N] int age_discrete;
}
transformed data {
  matrix[N, 9] x = rep_matrix(0, N, 9);
  x[, 1] = rep_vector(1, N);
  x[, 2] = real_ideo;
  x[, 3] = race_adj;
  for (n in 1:N) {
    if (age_discrete[n] > 1) x[n, 2 + age_discrete[n]] = 1;
  }
  x[, 7] = educ1;
  x[, 8] = gender;
  x[, 9] = income;
}
parameters {
  vector[9] beta;
  real<lower=0> sigma;
}
model {
  partyid7 ~ normal(x * beta, sigma);
}
