"""Derives the polynomials of the machine's functions and prints coefficients.h.

Each is the Chebyshev interpolation of a function on an interval, in 60 digits; its error is within a factor of two of
the best polynomial's. The comment of an array states the largest error. Run:

    python3 gen/coefficients.py > coefficients.h
"""

import mpmath as mp

mp.mp.dps = 60


def fit(name, what, f, lo, hi, n, scale=lambda x: mp.mpf(1)):
    """Coefficients of x^0 to x^(n-1), and the largest error times scale on a grid."""
    c = mp.chebyfit(f, [lo, hi], n)[::-1]
    worst = mp.mpf(0)
    for i in range(401):
        x = lo + (hi - lo) * mp.mpf(i) / 400
        worst = max(worst, abs((mp.polyval([mp.mpf(float(v)) for v in c[::-1]], x) - f(x)) * scale(x)))
    print(f"// {what}, on [{mp.nstr(mp.mpf(lo), 5)}, {mp.nstr(mp.mpf(hi), 5)}]. Error {mp.nstr(worst, 2)}.")
    print(f"static const double {name}[{n}] = {{")
    line = "   "
    for v in c:
        word = f" {float(v).hex()},"
        if len(line) + len(word) > 118:
            print(line)
            line = "   "
        line += word
    print(line + "\n};")


def limit(f, at, value):
    """f, but value at a point where f is 0/0."""
    return lambda x: value if abs(x - at) < mp.mpf(10) ** -25 else f(x)


def root(f):
    """f of a square root."""
    return lambda z: f(mp.sqrt(z))


def parts(name, value, *bits):
    """A number as a sum of numbers of so many bits, the last one rounded."""
    words = []
    for b in bits:
        scale = mp.mpf(2) ** (b - 1 - mp.floor(mp.log(abs(value), 2)))
        part = mp.nint(value * scale) / scale if b < 53 else mp.mpf(float(value))
        words.append(float(part).hex())
        value -= part
    for i, w in enumerate(words):
        print(f"#define {name}_{i} {w}")


print("// Made by gen/coefficients.py.")
parts("LN2", mp.log(2), 32, 53)
parts("HALF_PI", mp.pi / 2, 33, 33, 33, 53)
ln2 = mp.log(2) / 2 + mp.mpf("1e-4")
fit("c_exp", "(e^r - 1 - r)/r^2", limit(lambda r: (mp.expm1(r) - r) / r**2, 0, mp.mpf("0.5")), -ln2, ln2, 11,
    lambda r: r * r)
edge = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)
fit("c_log", "(2 atanh(s)/s - 2)/s^2 in s^2", limit(root(lambda s: (2 * mp.atanh(s) / s - 2) / s**2), 0, mp.mpf(2) / 3),
    0, (edge + mp.mpf("1e-4")) ** 2, 7, lambda z: z)
quarter = (mp.pi / 4 + mp.mpf("1e-3")) ** 2
fit("c_sin", "(sin(r) - r)/r^3 in r^2", limit(root(lambda r: (mp.sin(r) - r) / r**3), 0, -mp.mpf(1) / 6), 0, quarter, 7,
    lambda z: z)
fit("c_cos", "(cos(r) - 1 + r^2/2)/r^4 in r^2",
    limit(root(lambda r: (mp.cos(r) - 1 + r * r / 2) / r**4), 0, mp.mpf(1) / 24), 0, quarter, 7, lambda z: z * z)
fit("c_tanh", "(tanh(x)/x - 1)/x^2 in x^2", limit(root(lambda x: (mp.tanh(x) / x - 1) / x**2), 0, -mp.mpf(1) / 3), 0,
    mp.mpf("0.3025"), 11, lambda z: z)
fit("c_erf", "erf(x)/x - 1 in x^2", limit(root(lambda x: mp.erf(x) / x - 1), 0, 2 / mp.sqrt(mp.pi) - 1), 0,
    mp.mpf("0.7225"), 14)


def erfcx(t):
    if t >= 1:
        return 2 / mp.sqrt(mp.pi) - 1
    x = 4 * (1 + t) / (1 - t)
    mp.mp.dps = 60 + int(x * x / 2.3) if x < 30 else 60
    if x < 30:
        v = mp.exp(x * x) * mp.erfc(x)
    else:
        v = sum((-1) ** k * mp.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(30)) / (x * mp.sqrt(mp.pi))
    mp.mp.dps = 60
    return (1 + 2 * x) * v - 1


fit("c_erfcx", "(1 + 2x) e^(x^2) erfc(x) - 1 in (x-4)/(x+4), for x >= 1/2", erfcx,
    -mp.mpf(7) / 9 - mp.mpf("1e-6"), 1, 24)
fit("c_lgamma", "lgamma(2 + t)/t", limit(lambda t: mp.loggamma(2 + t) / t, 0, mp.digamma(2)), 0, 1, 18)


def above(n):
    """1/y^2 from y = n on."""
    return mp.mpf(1) / (n * n)


def tail(f, order):
    """A function of 1/y^2 with its value at infinity."""
    return lambda u: order if u < mp.mpf(10) ** -14 else f(1 / mp.sqrt(u))


mp.mp.dps = 80
fit("c_stirling", "y (lgamma(y) - (y - 1/2) log(y) + y - log(2 pi)/2) in 1/y^2, for y >= 8",
    tail(lambda y: y * (mp.loggamma(y) - (y - 0.5) * mp.log(y) + y - mp.log(2 * mp.pi) / 2), mp.mpf(1) / 12),
    0, above(8), 8)
x0 = mp.findroot(mp.digamma, 1.46)
parts("DIGAMMA_ROOT", x0, 53, 53)
fit("c_digamma", "digamma(x)/(x - root) in x - 3/2",
    limit(lambda t: mp.digamma(t + 1.5) / (t + 1.5 - x0), x0 - 1.5, mp.polygamma(1, x0)), -0.5, 0.5, 22)
fit("c_digamma_tail", "y^2 (log(y) - 1/(2y) - digamma(y)) in 1/y^2, for y >= 6",
    tail(lambda y: y * y * (mp.log(y) - 1 / (2 * y) - mp.digamma(y)), mp.mpf(1) / 12), 0, above(6), 9, lambda u: u)
fit("c_trigamma_tail", "y^3 (trigamma(y) - 1/y - 1/(2 y^2)) in 1/y^2, for y >= 8",
    tail(lambda y: y**3 * (mp.polygamma(1, y) - 1 / y - 1 / (2 * y * y)), mp.mpf(1) / 6), 0, above(8), 8, lambda u: u)
