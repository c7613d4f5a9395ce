data {
  int n;
  int k;
  array[n, k] int y;
}
parameters {
  vector[n] theta;
  vector<lower=0>[k] a;
  vector[k] b;
}
model {
  theta ~ normal(0, 1);
  a ~ lognormal(0, 0.5);
  b ~ normal(0, 1.5);
  for (j in 1:k) y[:, j] ~ bernoulli_logit(a[j] * (theta - b[j]));
}
