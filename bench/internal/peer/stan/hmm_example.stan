// A hidden Markov chain seen through normal noise; its first state has no weight.
data {
  int<lower=1> N;
  int<lower=1> K;
  vector[N] y;
}
parameters {
  simplex[K] theta1;
  simplex[K] theta2;
  positive_ordered[K] mu;
}
model {
  array[K] vector[K] log_to; // log_to[k][j]: from j to k
  vector[K] forward;
  for (k in 1:K) log_to[k] = [log(theta1[k]), log(theta2[k])]';
  mu[1] ~ normal(3, 1);
  mu[2] ~ normal(10, 1);
  for (k in 1:K) forward[k] = normal_lpdf(y[1] | mu[k], 1);
  for (t in 2:N) {
    vector[K] next;
    for (k in 1:K) next[k] = log_sum_exp(forward + log_to[k]) + normal_lpdf(y[t] | mu[k], 1);
    forward = next;
  }
  target += log_sum_exp(forward);
}
