data {
  int K;
  array[K] int y;
}
parameters {
  simplex[K] p;
}
model {
  y ~ multinomial(p);
}
