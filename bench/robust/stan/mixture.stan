data {
  int N;
  int K;
  vector[N] y;
}
parameters {
  simplex[K] w;
  ordered[K] mu;
  vector<lower=0>[K] sigma;
}
model {
  w ~ dirichlet(rep_vector(2, K));
  mu ~ normal(0, 5);
  sigma ~ lognormal(0, 0.5);
  for (i in 1:N) {
    vector[K] terms = log(w);
    for (k in 1:K) terms[k] += normal_lpdf(y[i] | mu[k], sigma[k]);
    target += log_sum_exp(terms);
  }
}
