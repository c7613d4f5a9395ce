// The logarithm of the gamma function and its derivatives. Error at most 2 ulp, 2.25 without fused
// multiplication; near zeros of the function relative to 1.
// Arguments below 0, which are rare, are left to functions of one number.
// Of a vector only those lanes are, so that a number's result does not depend on its neighbours.
FN M negative(V x) { return mnot(lt(splat(0), x)); } // also 0 and NaN

// Up to 8, a polynomial between 2 and 3 and the logarithm of a product, Γ(x+1) = xΓ(x); from there on Stirling's
// series.
FN V lgamma_part(V x) {
  M below = lt(x, splat(2));
  V product = sel(lt(x, splat(1)), fma_(x, x, x), sel(below, x, splat(1)));
  V t = sel(lt(x, splat(1)), x, sel(below, x - splat(1), x - splat(2)));
#pragma GCC unroll 5
  for (int i = 0; i < 5; i++) {
    M more = lt(splat(1), t);
    t = sel(more, t - splat(1), t);
    product = sel(more, product * (t + splat(2)), product);
  }
  M large = le(splat(8), x);
  V l = vlog(sel(large, x, product));
  V small = fma_(t, poly(t, c_lgamma, 18), sel(below, -l, l));
  V w = splat(1) / x;
  V series = w * poly(w * w, c_stirling, 8);
  V big = fma_(x - splat(0.5), l - splat(1), series + splat(0.41893853320467274178));
  big = sel(eq(x, splat(INF)), x, big);
  return sel(large, big, small);
}

// Up to 6 a polynomial between 1 and 2, with the root apart, and the recurrence ψ(x+1) = ψ(x) + 1/x; from there on the
// asymptotic series.
FN V digamma_part(V x) {
  M large = le(splat(6), x);
  V y = x, sum = splat(0);
  M below = lt(x, splat(1));
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    M more = mand(lt(splat(2), y), mnot(large));
    y = sel(more, y - splat(1), y);
    sum = sum + sel(more, splat(1) / y, splat(0));
  }
  sum = sel(below, splat(-1) / x, sum);
  V root = sel(below, x - splat(DIGAMMA_ROOT_0 - 1), y - splat(DIGAMMA_ROOT_0)) - splat(DIGAMMA_ROOT_1);
  V middle = y - sel(below, splat(0.5), splat(1.5));
  V small = fma_(root, poly(middle, c_digamma, 22), sum);
  V w = splat(1) / x;
  V big = vlog(x) - fma_(w * w, poly(w * w, c_digamma_tail, 9), splat(0.5) * w);
  return sel(large, big, small);
}

// The recurrence ψ'(x) = ψ'(x+1) + 1/x² up to 8, smallest terms first, then the asymptotic series.
FN V trigamma_part(V x) {
  V steps = sel(lt(x, splat(8)), ceil_(splat(8) - x), splat(0));
  V w = splat(1) / (x + steps);
  V z = w * w;
  V sum = fma_(z * w, poly(z, c_trigamma_tail, 8), fma_(splat(0.5), z, w)), lost = splat(0);
  for (int k = 7; k >= 0; k--) {
    M here = lt(splat(k), steps);
    if (!any(here)) continue;
    V r = splat(1) / (x + splat(k));
    r = sel(here, r * r, splat(0));
    V s = sum + r, part = s - sum; // what the sum loses
    lost = lost + ((sum - (s - part)) + (r - part));
    sum = s;
  }
  return sum + lost;
}

#define GAMMA_KERNEL(f)                                                                                               \
  FN V v##f(V x) {                                                                                                    \
    V y = f##_part(x);                                                                                                \
    return any(negative(x)) ? sel(negative(x), LANES(kvm_##f, x), y) : y;                                             \
  }
GAMMA_KERNEL(lgamma)
GAMMA_KERNEL(digamma)
GAMMA_KERNEL(trigamma)
