data {
  int K;
  real alpha;
}
parameters {
  simplex[K] p;
}
model {
  p ~ dirichlet(rep_vector(alpha, K));
}
