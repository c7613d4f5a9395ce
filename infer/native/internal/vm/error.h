// The error function and its complements. Error at most 2 ulp, 2.75 without fused multiplication.

// exp(x²)·erfc(x) for x >= ½, by a polynomial in (x-4)/(x+4).
FN V erfcx_part(V x) {
  V t = (x - splat(4)) / (x + splat(4));
  V w = poly(t, c_erfcx, 24), d = fma_(splat(2), x, splat(1));
  V inverse = splat(1) / d;
#if KVM_FMA // one step of correction, with what the sum 1 + w and d have lost
  V sum = splat(1) + w, q = sum * inverse;
  V left = fnma_(q, d, sum) + (w - (sum - splat(1)));
  V lost = fma_(splat(2), x, splat(1) - d);
  return fma_(fnma_(q, lost, left), inverse, q);
#else
  return w / d + inverse;
#endif
}

// q·exp(±x²), where x² is a sum of two numbers: x = a + b with a of 26 bits.
FN V exp_square(V x, double sign, V q) {
  V a = real(bits(x) & ~0x7ffffffLL), b = x - a;
  V k, p = exp_part(clamp(splat(sign) * a * a, -746, 710), splat(sign) * b * (x + a), &k);
  V hi = splat(1) + p;
#if KVM_FMA
  return scale_(fma_(hi, q, (p - (hi - splat(1))) * q), k);
#else
  return scale_(hi * q, k);
#endif
}

FN V erf_part(V x) { // |x| up to 0.85
  return fma_(x, poly(x * x, c_erf, 14), x);
}

FN V verf(V x) {
  V a = abs_(x);
  V bounded = clamp(a, 0.5, 6);
  V far = splat(1) - exp_square(bounded, -1, erfcx_part(bounded));
  return sel(lt(a, splat(0.85)), erf_part(x), sel(nan_(x), x, sign_of(far, x)));
}

FN V verfc(V x) {
  V a = abs_(x), bounded = clamp(a, 0.5, 28);
  V far = exp_square(bounded, -1, erfcx_part(bounded));
  far = sel(lt(x, splat(0)), splat(2) - far, far);
  return sel(lt(a, splat(0.5)), splat(1) - erf_part(x), sel(nan_(x), x, far));
}

FN V verfcx(V x) {
  V a = abs_(x), above = sel(lt(a, splat(0.5)), splat(0.5), a);
  V far = erfcx_part(above), square = clamp(a, 0, 27);
  square = exp_square(square, 1, splat(1));
  far = sel(lt(x, splat(0)), fms_(splat(2), square, far), far);
  far = sel(lt(x, splat(-26.7)), splat(INF), far);
  V near = square * (splat(1) - erf_part(x));
  return sel(lt(a, splat(0.5)), near, sel(eq(x, splat(INF)), splat(0), sel(nan_(x), x, far)));
}
