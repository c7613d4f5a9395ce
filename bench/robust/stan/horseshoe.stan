data {
  int N;
  int P;
  matrix[N, P] x;
  vector[N] y;
}
parameters {
  real<lower=0> tau;
  vector<lower=0>[P] lambda;
  vector[P] z;
  real<lower=0> sigma;
}
transformed parameters {
  real log_tau = log(tau);
  vector[P] log_lambda = log(lambda);
  vector[P] beta = z .* lambda * tau;
}
model {
  tau ~ cauchy(0, 1);
  lambda ~ cauchy(0, 1);
  z ~ normal(0, 1);
  sigma ~ normal(0, 2);
  y ~ normal_id_glm(x, 0, beta, sigma);
}
