data {
  int D;
  matrix[D, D] L;
}
parameters {
  vector[D] x;
}
model {
  x ~ multi_normal_cholesky(rep_vector(0, D), L);
}
