data {
  int N;
  int K;
  int C;
  matrix[N, K] x;
  array[N] int y;
}
parameters {
  vector[K] b;
  ordered[C] cut;
}
model {
  b ~ normal(0, 2);
  cut ~ normal(0, 5);
  for (i in 1:N) y[i] + 1 ~ ordered_logistic(x[i] * b, cut);
}
