// Special functions without branches, so that loops over them run in vectors. The coefficients were made with 45
// digits: interpolation at Chebyshev nodes.

// One step of the sum of a Chebyshev series at t, from the last term to the second.
#define T(k) d = 2 * t * b - KELVIN_KEEP(c - k); c = b; b = d;

// (log Γ(2+t))/t for |t| <= 1/2.
KELVIN_INLINE double kelvin_lgamma_two(double t) {
  double s = t * t;
  double p = -5.812501250599261e-07;
  p = p * s - 1.9741884532905586e-06;
  p = p * s - 9.456338120610123e-06;
  p = p * s - 4.492371708374659e-05;
  p = p * s - 0.00022315497868931946;
  p = p * s - 0.0011927539009204018;
  p = p * s - 0.007385551028937974;
  p = p * s - 0.0673523010531956;
  p = p * s + 0.42278433509846713;
  double q = 2.7880013392491846e-07;
  q = q * s + 9.199898075671394e-07;
  q = q * s + 4.3847319318293745e-06;
  q = q * s + 2.0505584372896933e-05;
  q = q * s + 9.945767440096764e-05;
  q = q * s + 0.0005096695153484373;
  q = q * s + 0.002890510331036772;
  q = q * s + 0.020580808427780335;
  q = q * s + 0.32246703342411326;
  return p + t * q;
}

// sin(πx).
KELVIN_INLINE double kelvin_sinpi(double x) {
  double r = KELVIN_KEEP(x - 2 * __builtin_rint(x / 2));
  r = r > 0.5 ? 1 - r : r < -0.5 ? -1 - r : r;
  return sin(KELVIN_PI * r);
}

// log |Γ(x)|: from 8.5 on Stirling's series, below that from Γ near 2 by the recurrence, which keeps the zeros at 1 and
// 2 accurate; up to -1/2 by reflection.
KELVIN_INLINE double kelvin_lgamma(double x) {
  double y = x > -0.5 ? x : -x;
  double n = __builtin_rint(y - 2), t = y - KELVIN_KEEP(n + 2);
  double up = n >= 1 ? y - 1 : 1;
  up *= n >= 2 ? y - 2 : 1;
  up *= n >= 3 ? y - 3 : 1;
  up *= n >= 4 ? y - 4 : 1;
  up *= n >= 5 ? y - 5 : 1;
  up *= n >= 6 ? y - 6 : 1;
  double down = __builtin_fabs(n < -1 ? y * (y + 1) : y);
  double large = log(y >= 8.5 ? y : n < 0 ? down : up);
  double r = 1 / y, s = r * r;
  double p = 1.0 / 12 - s * (1.0 / 360 - s * (1.0 / 1260 - s * (1.0 / 1680 - s * (1.0 / 1188 - s * (691.0 / 360360 -
             s * (1.0 / 156 - s * (3617.0 / 122400)))))));
  double stirling = (y - 0.5) * (large - 1) + (0.41893853320467274178 + r * p);
  double near = t * kelvin_lgamma_two(t) + (n < 0 ? -large : large);
  double v = y >= 8.5 ? stirling : near;
  double reflected = log(KELVIN_PI / __builtin_fabs(x * kelvin_sinpi(x))) - v;
  v = x > -0.5 ? v : reflected;
  v = __builtin_fabs(x) == KELVIN_INF ? KELVIN_INF : v;
  return x != x ? x : v;
}

// ψ(x) by the recurrence up to 10 and its asymptotic series (DLMF 5.11.2), up to 0 by reflection. The sum of 1/(x+j)
// is p'/p of p = Π(x+j).
KELVIN_INLINE double kelvin_digamma(double x) {
  double y = KELVIN_KEEP(x > 0 ? x : 1 - x);
  double p = y, d = 1;
#define F(j) d = d * (y + j) + p; p *= y + j;
  F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9)
#undef F
  double z = y < 10 ? y + 10 : y, r = 1 / z, s = r * r;
  double v = log(z) - 0.5 * r - s * (1.0 / 12 - s * (1.0 / 120 - s * (1.0 / 252 - s * (1.0 / 240 - s * (1.0 / 132 - s *
             (691.0 / 32760 - s / 12))))));
  v -= y < 10 ? d / p : 0;
  double cot = KELVIN_PI / tan(KELVIN_PI * KELVIN_KEEP(x - __builtin_rint(x)));
  v -= x > 0 ? 0 : cot;
  v = (x < 0) & (x == __builtin_rint(x)) ? KELVIN_NAN : v;
  return x != x ? x : v;
}

// ψ'(x), likewise (DLMF 5.15.8).
KELVIN_INLINE double kelvin_trigamma(double x) {
  double y = KELVIN_KEEP(x > 0 ? x : 1 - x), sum = 0;
#define F(j) sum += 1 / ((y + j) * (y + j));
  F(9) F(8) F(7) F(6) F(5) F(4) F(3) F(2) F(1) F(0)
#undef F
  double z = y < 10 ? y + 10 : y, r = 1 / z, s = r * r;
  double t = 1.0 / 42 - s * (1.0 / 30 - s * (5.0 / 66 - s * (691.0 / 2730 - s * (7.0 / 6))));
  double v = r + 0.5 * s + r * s * (1.0 / 6 - s * (1.0 / 30 - s * t));
  v += y < 10 ? sum : 0;
  double e = kelvin_sinpi(x), reflected = KELVIN_PI * KELVIN_PI / (e * e) - v;
  return x > 0 ? v : reflected;
}

// (1+2x)·exp(x²)·erfc(x) for x >= 0, in t = (x-3)/(x+3).
KELVIN_INLINE double kelvin_erfcx_series(double t) {
  double b = 0, c = 0, d;
  T(1.0006111691821667e-16) T(2.3514112258781403e-16) T(-1.5169878690228116e-15) T(-7.287943737592673e-15)
  T(1.973425574544739e-14) T(1.8134502003176963e-13) T(-2.07922492859799e-13) T(-4.277340064396911e-12)
  T(1.475715976623473e-12) T(1.0361607445969489e-10) T(-1.460079119939105e-11) T(-2.699519049798364e-09)
  T(1.885668523838603e-09) T(7.549828343825093e-08) T(-1.807522790414837e-07) T(-2.0072285659059913e-06)
  T(1.2841532864056671e-05) T(1.7661719523171593e-05) T(-0.0006335531710553147) T(0.004453426061462712)
  T(-0.018976596707845208) T(0.05436652555744322) T(-0.09377550342284209) T(0.005353904539615676)
  return t * b - c + 1.17756257419656;
}

// exp(x²)·erfc(x). The square of a negative x is taken with its rounding error.
KELVIN_INLINE double kelvin_erfcx(double x) {
  double y = __builtin_fabs(x);
  double v = kelvin_erfcx_series(1 - 6 / (y + 3)) / (1 + 2 * y);
  double s = y * y, e = __builtin_fma(y, y, -s);
  double g = 2 * exp(s);
  g = g < KELVIN_INF ? g + g * e - v : g;
  return x < 0 ? g : v;
}

// erfinv(x)/x in t = w/3 - 1 for 0 <= w <= 6, where w = -log(1-x²).
KELVIN_INLINE double kelvin_erfinv_small(double t) {
  double b = 0, c = 0, d;
  T(9.487880520881664e-17) T(-1.519620539702162e-16) T(-1.6679796813597045e-15) T(1.0213858321281266e-14)
  T(-3.3311728365333843e-16) T(-2.4425065566813935e-13) T(9.765600091051987e-13) T(2.0231645192233355e-12)
  T(-3.174763383548652e-11) T(7.770143484817043e-11) T(4.6386529158896234e-10) T(-3.777038640094083e-09)
  T(3.872092257424227e-09) T(7.78699623588968e-08) T(-4.1754298203284093e-07) T(-2.1707108033382995e-07)
  T(1.1536323222418791e-05) T(-4.472783685679211e-05) T(-0.00010090171263236434) T(0.0017152748065213783)
  T(-0.006322936481916675) T(-0.018563518253529174) T(0.7065114598352629)
  return t * b - c + 1.6032187843614276;
}

// The same in t = (√w - 4.25)/1.85 for 2.4 <= √w <= 6.1.
KELVIN_INLINE double kelvin_erfinv_large(double t) {
  double b = 0, c = 0, d;
  T(2.875806513364217e-16) T(-5.348438153285048e-16) T(-1.9997813272416874e-16) T(7.734540719517132e-15)
  T(-4.249356258226479e-14) T(1.367288917122611e-13) T(-1.7677347915919518e-13) T(-8.509507658438432e-13)
  T(6.475388944645761e-12) T(-2.1250069509484662e-11) T(2.6129573978628817e-11) T(1.124868336925685e-10)
  T(-7.823695007423152e-10) T(2.3436650492198253e-09) T(-2.7049491070457362e-09) T(-1.0167947982673546e-08)
  T(6.896874465625182e-08) T(-2.127326781664725e-07) T(3.5019166074115004e-07) T(2.0457990057986738e-07)
  T(-3.802944231112656e-06) T(1.6357479230863075e-05) T(-5.038501925947853e-05) T(0.00013176741102921164)
  T(-0.0003232965674799316) T(0.0008039841051710436) T(-0.002000190337858234) T(0.0034993070147379267)
  T(1.8637601845335066)
  return t * b - c + 4.095034561443218;
}

KELVIN_INLINE double kelvin_erfinv(double x) {
  double w = -log(KELVIN_KEEP(1 - x) * KELVIN_KEEP(1 + x)), s = __builtin_sqrt(w);
  double small = kelvin_erfinv_small(w * (1.0 / 3) - 1), large = kelvin_erfinv_large((s - 4.25) * (1 / 1.85));
  double v = x * (w < 6 ? small : large);
  double y = __builtin_fabs(x);
  return y < 1 ? v : y == 1 ? x * KELVIN_INF : KELVIN_NAN;
}

// exp(-x)·I0(x) for 0 <= x <= 8, in t = x/4 - 1.
KELVIN_INLINE double kelvin_i0e_small(double t) {
  double b = 0, c = 0, d;
  T(3.3307945188222384e-17) T(-2.431279846547955e-16) T(1.715391285555133e-15) T(-1.1685332877993451e-14)
  T(7.676185498604936e-14) T(-4.856446783111929e-13) T(2.95505266312964e-12) T(-1.726826291441556e-11)
  T(9.675809035373237e-11) T(-5.189795601635263e-10) T(2.6598237246823866e-09) T(-1.300025009986248e-08)
  T(6.046995022541919e-08) T(-2.670793853940612e-07) T(1.1173875391201037e-06) T(-4.4167383584587505e-06)
  T(1.6448448070728896e-05) T(-5.754195010082104e-05) T(0.00018850288509584165) T(-0.0005763755745385824)
  T(0.0016394756169413357) T(-0.004324309995050576) T(0.010546460394594998) T(-0.02373741480589947)
  T(0.04930528423967071) T(-0.09490109704804764) T(0.17162090152220877) T(-0.3046826723431984)
  return t * b - c + 0.33839763720473803;
}

// √x·exp(-x)·I0(x) for x >= 8, in t = 16/x - 1.
KELVIN_INLINE double kelvin_i0e_large(double t) {
  double b = 0, c = 0, d;
  T(-7.23318048787497e-18) T(-4.830504485944022e-18) T(4.465621420296758e-17) T(3.4612228676974575e-17)
  T(-2.827623980516583e-16) T(-3.425485619677219e-16) T(1.7725601330565263e-15) T(3.8116806693526224e-15)
  T(-9.554846698828307e-15) T(-4.150569347287222e-14) T(1.54008621752141e-14) T(3.8527783827421426e-13)
  T(7.180124451383666e-13) T(-1.7941785315068062e-12) T(-1.3215811840447713e-11) T(-3.1499165279632416e-11)
  T(1.1889147107846439e-11) T(4.94060238822497e-10) T(3.3962320257083865e-09) T(2.266668990498178e-08)
  T(2.0489185894690638e-07) T(2.8913705208347567e-06) T(6.889758346916825e-05) T(0.0033691164782556943)
  return t * b - c + 0.4022452055070544;
}

// exp(-x)·I1(x)/x for 0 <= x <= 8, in t = x/4 - 1.
KELVIN_INLINE double kelvin_i1e_small(double t) {
  double b = 0, c = 0, d;
  T(2.7779141127610464e-18) T(-2.111421214358166e-17) T(1.5536319577362005e-16) T(-1.1055969477353862e-15)
  T(7.600684294735408e-15) T(-5.042185504727912e-14) T(3.223793365945575e-13) T(-1.9839743977649436e-12)
  T(1.1736186298890901e-11) T(-6.663489723502027e-11) T(3.625590281552117e-10) T(-1.8872497517228294e-09)
  T(9.381537386495773e-09) T(-4.445059128796328e-08) T(2.0032947535521353e-07) T(-8.568720264695455e-07)
  T(3.4702513081376785e-06) T(-1.3273163656039436e-05) T(4.781565107550054e-05) T(-0.00016176081582589674)
  T(0.0005122859561685758) T(-0.0015135724506312532) T(0.004156422944312888) T(-0.010564084894626197)
  T(0.024726449030626516) T(-0.05294598120809499) T(0.1026436586898471) T(-0.17641651835783406)
  return t * b - c + 0.12629359322181682;
}

// √x·exp(-x)·I1(x) for x >= 8, in t = 16/x - 1.
KELVIN_INLINE double kelvin_i1e_large(double t) {
  double b = 0, c = 0, d;
  T(7.517296310842329e-18) T(4.414348323071546e-18) T(-4.650305368489357e-17) T(-3.20952592199342e-17)
  T(2.96262899764595e-16) T(3.3082023109209285e-16) T(-1.8803547755107825e-15) T(-3.8144030724370075e-15)
  T(1.0420276984128802e-14) T(4.272440016711951e-14) T(-2.1015418427726643e-14) T(-4.0835511110921974e-13)
  T(-7.198551776245908e-13) T(2.0356285441470896e-12) T(1.4125807436613782e-11) T(3.2526035830154884e-11)
  T(-1.8974958123505413e-11) T(-5.589743462196584e-10) T(-3.835380385964237e-09) T(-2.6314688468895196e-08)
  T(-2.512236237870209e-07) T(-3.882564808877691e-06) T(-0.00011058893876262371) T(-0.009761097491361469)
  return t * b - c + 0.38928811750914005;
}

// exp(-|x|)·I0(x) and exp(-|x|)·I1(x).
KELVIN_INLINE double kelvin_i0e(double x) {
  double y = __builtin_fabs(x);
  double small = kelvin_i0e_small(y / 4 - 1), large = kelvin_i0e_large(16 / y - 1) / __builtin_sqrt(y);
  return y <= 8 ? small : large;
}

KELVIN_INLINE double kelvin_i1e(double x) {
  double y = __builtin_fabs(x);
  double small = y * kelvin_i1e_small(y / 4 - 1), large = kelvin_i1e_large(16 / y - 1) / __builtin_sqrt(y);
  return __builtin_copysign(y <= 8 ? small : large, x);
}
#undef T

// exp(x) for 0 <= x <= 40, with the polynomial of the virtual machine: x = k·log 2 + r. A sum with 1.5·2^52 has k in
// its low bits.
KELVIN_INLINE double kelvin_exp_part(double x) {
  double k = __builtin_rint(x * 0x1.71547652b82fep+0);
  union {
    double d;
    int64_t i;
  } t = {k + 0x1.8p52};
  double r = KELVIN_KEEP(x - k * 0x1.62e42fefa39efp-1) - k * 0x1.abc9e3b39803fp-56;
  double s = r * r, p = 0x1.1f73102e57f8bp-29, q = 0x1.af4e000e84be8p-26;
  p = p * s + 0x1.27e4db5e389d2p-22, q = q * s + 0x1.71de0226bd07ap-19;
  p = p * s + 0x1.a01a01a6da7e2p-16, q = q * s + 0x1.a01a01abeb69fp-13;
  p = p * s + 0x1.6c16c16c162d1p-10, q = q * s + 0x1.11111111100d5p-7;
  p = p * s + 0x1.5555555555556p-5, q = q * s + 0x1.5555555555557p-3;
  p = p * s + 0.5;
  t.i = (t.i + 1023) << 52;
  return KELVIN_KEEP(1 + KELVIN_KEEP(r + s * KELVIN_KEEP(p + r * q))) * t.d;
}

// tanh(x): up to 0.55 by a polynomial, then 1 - 2/(exp(2x) + 1), which is 1 from 20 on.
KELVIN_INLINE double kelvin_tanh(double x) {
  double y = __builtin_fabs(x), z = x * x, s = z * z;
  double p = -0x1.59a834187ce22p-16, q = 0x1.64fd88e9900a5p-14;
  p = p * s - 0x1.ec1091436eb2ap-13, q = q * s + 0x1.34c5a8a996cd4p-11;
  p = p * s - 0x1.7d97cfd138c28p-10, q = q * s + 0x1.d6d339333f329p-9;
  p = p * s - 0x1.226e32f00cf0cp-7, q = q * s + 0x1.664f487713373p-6;
  p = p * s - 0x1.ba1ba1b9fec84p-5, q = q * s + 0x1.1111111111032p-3;
  p = p * s - 0x1.5555555555555p-2;
  double near = y + y * z * KELVIN_KEEP(p + z * q);
  double far = 1 - 2 / KELVIN_KEEP(kelvin_exp_part(y > 20 ? 40 : 2 * y) + 1);
  double v = y < 0.55 ? near : far;
  return x != x ? x : __builtin_copysign(v, x);
}

// The same for single numbers, as calls: there is no loop to be part of.
#define ONE(f) \
  static __attribute__((noinline, unused)) double f##_one(double x) { return f(x); }
ONE(kelvin_lgamma)
ONE(kelvin_digamma)
ONE(kelvin_trigamma)
ONE(kelvin_erfcx)
ONE(kelvin_erfinv)
ONE(kelvin_i0e)
ONE(kelvin_i1e)
#undef ONE
