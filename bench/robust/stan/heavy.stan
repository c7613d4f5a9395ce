data {
  int D;
}
parameters {
  vector[D] x;
}
transformed parameters {
  vector[D] bounded = x ./ sqrt(1 + square(x));
}
model {
  x ~ student_t(1.5, 0, 1);
}
