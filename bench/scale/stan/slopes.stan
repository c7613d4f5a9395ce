data {
  int n;
  int k;
  array[n] int g;
  vector[n] x;
  vector[n] y;
}
transformed data {
  array[n] int group;
  for (i in 1:n) group[i] = g[i] + 1;
}
parameters {
  vector[2] mu;
  vector<lower=0>[2] tau;
  vector[k] a;
  vector[k] b;
  real<lower=0> sigma;
}
model {
  mu ~ normal(0, 5);
  tau ~ normal(0, 1);
  a ~ normal(mu[1], tau[1]);
  b ~ normal(mu[2], tau[2]);
  sigma ~ normal(0, 1);
  y ~ normal(a[group] + b[group] .* x, sigma);
}
