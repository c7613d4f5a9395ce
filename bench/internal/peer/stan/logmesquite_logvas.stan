// Linear regression of log weights on logarithms of measures.
data {
  int<lower=0> N;
  vector[N] weight;
  vector[N] diam1;
  vector[N] diam2;
  vector[N] canopy_height;
  vector[N] total_height;
  vector[N] density;
  vector[N] group;
}
transformed data {
  vector[N] y = log(weight);
  matrix[N, 7] x;
  x[, 1] = rep_vector(1, N);
  x[, 2] = log(diam1 .* diam2 .* canopy_height);
  x[, 3] = log(diam1 .* diam2);
  x[, 4] = log(diam1 ./ diam2);
  x[, 5] = log(total_height);
  x[, 6] = log(density);
  x[, 7] = group;
}
parameters {
  vector[7] beta;
  real<lower=0> sigma;
}
model {
  y ~ normal(x * beta, sigma);
}
