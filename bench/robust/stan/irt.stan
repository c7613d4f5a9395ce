data {
  int N;
  int I;
  int J;
  array[N] int person;
  array[N] int item;
  array[N] int y;
}
parameters {
  vector<lower=0>[J] a;
  vector[J] b;
  vector[I] theta;
}
model {
  vector[N] eta;
  for (i in 1:N) eta[i] = a[item[i] + 1] * (theta[person[i] + 1] - b[item[i] + 1]);
  a ~ lognormal(0, 0.5);
  b ~ normal(0, 1.5);
  theta ~ normal(0, 1);
  y ~ bernoulli_logit(eta);
}
