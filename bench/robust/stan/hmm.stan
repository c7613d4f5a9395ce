data {
  int T;
  vector[T] y;
  vector[T] v;
  int exponential;
}
parameters {
  vector<lower=0, upper=1>[2] stay;
  positive_ordered[2] a;
  positive_ordered[2] b;
}
model {
  matrix[2, 2] rows = log([[stay[1], 1 - stay[1]], [1 - stay[2], stay[2]]]);
  matrix[T, 2] output;
  vector[2] forward;
  for (t in 1:T)
    for (k in 1:2)
      output[t, k] = exponential ? exponential_lpdf(y[t] | a[k]) + exponential_lpdf(v[t] | b[k])
                                 : normal_lpdf(y[t] | a[k], 0.5) + normal_lpdf(v[t] | b[k], 0.5);
  stay ~ beta(8, 2);
  a ~ normal(0, 2);
  b ~ normal(0, 2);
  forward = log(0.5) + output[1]';
  for (t in 2:T) {
    vector[2] next;
    for (k in 1:2) next[k] = log_sum_exp(forward + rows[:, k]) + output[t, k];
    forward = next;
  }
  target += log_sum_exp(forward);
}
