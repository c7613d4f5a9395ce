data {
  int N;
  int G;
  array[N] int g;
  vector[N] y;
}
parameters {
  real mu;
  real<lower=0> tau;
  real<lower=0> sigma;
  vector[G] theta;
}
model {
  vector[N] mean_y;
  for (i in 1:N) mean_y[i] = theta[g[i] + 1];
  mu ~ normal(0, 5);
  tau ~ normal(0, 2);
  sigma ~ normal(0, 2);
  theta ~ normal(mu, tau);
  y ~ normal(mean_y, sigma);
}
