"""Makes testdata/functions.txt: values of the machine's functions in 60 digits at chosen and random points.

A line is: the function, the arguments, and the value as a sum of two numbers. Run: python3 gen/reference.py >
testdata/functions.txt
"""

import math
import random

import mpmath as mp

mp.mp.dps = 60
rng = random.Random(7)
TINY, HUGE = 2.0**-1074, 1.7976931348623157e308


def around(*centres):
    """Points on both sides of each."""
    out = []
    for c in centres:
        out += [c, math.nextafter(c, -math.inf), math.nextafter(c, math.inf)]
        out += [c + rng.uniform(-1, 1) * 10.0 ** rng.uniform(-12, 0) for _ in range(3)]
    return out


def spread(lo, hi, n):
    """Points of all sizes between two positive numbers."""
    return [math.exp(rng.uniform(math.log(lo), math.log(hi))) for _ in range(n)]


def both(v):
    return v + [-x for x in v]


def erfcx(x):
    if x > 200:
        return sum((-1) ** k * mp.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(12)) / (x * mp.sqrt(mp.pi))
    with mp.workdps(80 + int(x * x / 2)):
        return mp.exp(x * x) * mp.erfc(x)


def scaled_bessel(n):
    return lambda x: mp.besseli(n, x) * mp.exp(-abs(x))


everywhere = both(spread(1e-300, 1e-3, 8) + spread(1e-3, 30, 40))
positive = spread(TINY, 1e-3, 10) + spread(1e-3, 1e3, 60) + spread(1e3, 1e300, 10) + [TINY, HUGE]
gammas = positive[:-1] + around(0.5, 1.0, 1.4616321449683623, 2.0, 3.0, 6.0, 8.0) + spread(0.5, 9, 60)
FUNCTIONS = {
    "exp": (mp.exp, everywhere + around(0, 709.7, -708.4, -745) + both(spread(30, 700, 10))),
    "expm1": (mp.expm1, everywhere + around(0, 0.3466, -0.3466, 709.7, -37) + spread(30, 700, 10)),
    "log": (mp.log, positive + around(1.0, 0.7071067811865476, 1.4142135623730951)),
    "log1p": (mp.log1p, spread(TINY, HUGE, 40) + both(spread(1e-20, 0.999, 40)) + around(0, -0.29289, 0.41421)),
    "sin": (mp.sin, everywhere + both(spread(30, 1e6, 20)) + [1e22] + around(math.pi)),
    "cos": (mp.cos, everywhere + both(spread(30, 1e6, 20)) + [1e22] + around(math.pi / 2)),
    "tan": (mp.tan, everywhere + spread(30, 1e6, 10)),
    "asin": (mp.asin, both(spread(1e-10, 1, 30))),
    "acos": (mp.acos, both(spread(1e-10, 1, 30))),
    "atan": (mp.atan, both(spread(1e-10, 1e10, 30))),
    "sinh": (mp.sinh, everywhere),
    "cosh": (mp.cosh, everywhere),
    "tanh": (mp.tanh, everywhere + around(0.55, 20) + spread(0.1, 2, 30)),
    "lgamma": (mp.loggamma, gammas),
    "digamma": (mp.digamma, gammas),
    "trigamma": (lambda x: mp.polygamma(1, x), [x for x in gammas if 1e-150 < x < 1e150]),
    "erf": (mp.erf, everywhere + around(0.85, 5.9) + spread(0.1, 6, 30)),
    "erfc": (mp.erfc, [x for x in everywhere if x < 26.5] + around(0.5, 0.85, 26) + spread(0.1, 26, 40)),
    "erfcx": (erfcx, [x for x in everywhere if x > -26.6] + around(0.5, -0.5) + spread(0.1, 1e8, 40)),
    "erfinv": (mp.erfinv, both(spread(1e-10, 1, 40)) + [1 - 2.0**-k for k in range(1, 54, 4)]),
    "i0e": (scaled_bessel(0), both(spread(1e-5, 1e4, 25)) + around(30.0)),
    "i1e": (scaled_bessel(1), both(spread(1e-5, 1e4, 25)) + around(30.0)),
}
PAIRS = {
    "pow": (mp.power, [(x, y) for x in spread(1e-5, 1e5, 15) for y in both(spread(1e-3, 50, 4))] +
            [(1 + d, y) for d in both(spread(1e-12, 1e-3, 4)) for y in both(spread(1, 1e6, 4))] +
            [(-x, float(k)) for x in spread(0.1, 10, 4) for k in (-3, -2, 2, 3, 17)]),
    "hypot": (mp.hypot, [(x, y) for x in spread(1e-3, 1e3, 12) for y in both(spread(1e-3, 1e3, 4))] +
              [(x * 1e300, y * 1e300) for x in spread(0.1, 10, 4) for y in spread(0.1, 10, 4)] +
              [(x * 1e-300, y * 1e-300) for x in spread(0.1, 10, 4) for y in spread(0.1, 10, 4)]),
    "atan2": (mp.atan2, [(y, x) for x in both(spread(1e-3, 1e3, 6)) for y in both(spread(1e-3, 1e3, 6))]),
}


def line(name, value, *args):
    hi = float(value)
    if math.isinf(hi):
        lo = 0.0
    else:
        lo = float(value - mp.mpf(hi))
    print(name, *(float(v).hex() for v in (*args, hi, lo)))


for name, (f, points) in FUNCTIONS.items():
    for x in points:
        if x != 0:
            line(name, f(mp.mpf(x)), x)
for name, (f, points) in PAIRS.items():
    for x, y in points:
        line(name, f(mp.mpf(x), mp.mpf(y)), x, y)
