// Special functions of one number that the C library lacks, or has with a global state.
__attribute__((noinline)) static double kvm_lgamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

// ψ: the recurrence up to 15, then the asymptotic expansion (DLMF 5.11.2); reflection below 0.
__attribute__((noinline)) static double kvm_digamma(double x) {
  double shift = 0;
  if (x == 0) return copysign(INFINITY, -x);
  if (x < 0) {
    double r = x - rint(x);
    if (r == 0) return NAN;
    shift = -M_PI / tan(M_PI * r);
    x = 1 - x;
  }
  if (x == INFINITY) return x;
  for (; x < 15; x++) shift -= 1 / x;
  double y = 1 / (x * x);
  double s = y * (691.0 / 32760 - y / 12);
  s = y * (1.0 / 240 - y * (1.0 / 132 - s));
  s = y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - s)));
  return shift + log(x) - 0.5 / x - s;
}

// ψ': likewise (DLMF 5.15.8).
__attribute__((noinline)) static double kvm_trigamma(double x) {
  double shift = 0, sign = 1;
  if (x <= 0) {
    double s = sin(M_PI * (x - floor(x)));
    shift = M_PI * M_PI / (s * s);
    sign = -1;
    x = 1 - x;
  }
  double sum = 0;
  for (; x < 15; x++) sum += 1 / (x * x);
  double y = 1 / (x * x);
  double s = y * (5.0 / 66 - y * (691.0 / 2730 - y * 7 / 6));
  s = 1.0 / 6 - y * (1.0 / 30 - y * (1.0 / 42 - y * (1.0 / 30 - s)));
  return shift + sign * (sum + 1 / x + y / 2 + y / x * s);
}

// The inverse of erf: a start from the leading asymptotic term, and Newton steps with the second derivative (Halley) on
// erfc, which keeps its digits near 1.
__attribute__((noinline)) static double kvm_erfinv(double p) {
  double a = fabs(p);
  if (!(a < 1)) return a == 1 ? p * INFINITY : NAN;
  if (a < 1e-8) return p * 0.88622692545275801365 * (1 + p * p * (M_PI / 12));
  double l = log1p(-a * a), t = 2 / (M_PI * 0.147) + l / 2;
  double x = sqrt(sqrt(t * t - l / 0.147) - t);
  for (int i = 0; i < 3; i++) {
    double f = (a < 0.5 ? erf(x) - a : (1 - a) - erfc(x)) * 0.88622692545275801365 * exp(x * x);
    x -= f / (1 + x * f);
  }
  return copysign(x, p);
}

// exp(-|x|)·I_n(|x|): the power series up to 25, then the asymptotic expansion (DLMF 10.25.2, 10.40.1).
__attribute__((noinline)) static double kvm_bessel(double x, int n) {
  long double t = fabs(x);
  if (t <= 25) {
    long double term = (n ? t / 2 : 1) * expl(-t), sum = term;
    for (int k = 1; term > sum * 1e-18L || k < 5; k++) sum += term *= t * t / (4.0L * k * (k + n));
    return (double)sum;
  }
  long double mu = 4 * n, term = 1, sum = 1;
  for (int k = 1; k < 40; k++) {
    long double odd = 2 * k - 1, next = -term * (mu - odd * odd) / (8 * t * k);
    if (!(fabsl(next) < fabsl(term)) || fabsl(next) < 1e-18L) break;
    sum += term = next;
  }
  return (double)(sum / sqrtl(2 * 3.14159265358979323846264L * t));
}
__attribute__((noinline)) static double kvm_i0e(double x) { return kvm_bessel(x, 0); }
__attribute__((noinline)) static double kvm_i1e(double x) { return copysign(kvm_bessel(x, 1), x); }

// a - b·floor(a/b)
__attribute__((noinline)) static double kvm_rem(double a, double b) {
  double r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
