data {
  int D;
  vector[D] scale;
}
parameters {
  vector[D] x;
}
model {
  x ~ normal(0, scale);
}
