"""Makes tails.csv.gz: both tails of the distributions of dist, and their derivatives, in 60 digits.

    python3 tails.py                (needs mpmath; some minutes)

A family is a row of FAMILIES: the logarithm of one tail or of both as an expression of the value and the parameters, and
settings of these. Each setting has points at which the logarithm of a tail is about 0.3, 2, 30, 1e3, 1e5 and 1e6 below
0, found by bisection, where the family has such points. Derivatives are central differences with a step of 1e-20 of the
argument.

A row of the file is a family, the parameters, the value, log P(X <= x), log P(X > x), and then the derivatives of the
two by the value and by each parameter, "-" for counts.
"""

import gzip
import random

import mpmath as mp
from mpmath import exp, expm1, inf, log, log1p, mpf, pi, sqrt

mp.mp.dps = 60
TARGETS = (0.3, 2, 30, 1e3, 1e5, 1e6)
STEP = mpf(10) ** -20
lgamma = mp.loggamma


def other(v):
    """log(1 - e^v)."""
    if v < -mpf(10) ** 8:
        return mpf(0)
    if v > -mpf(10) ** -40:
        return log(-v - v * v / 2) if v < 0 else -inf
    return log(-expm1(v)) if v > -1 else log1p(-exp(v))


def down(v):
    return v, other(v)


def up(v):
    return other(v), v


def series(ratio):
    """1 + r1 + r1 r2 + ... for positive ratios that end below 1."""
    total = term = mpf(1)
    n = 0
    while True:
        r = ratio(n)
        term *= r
        total += term
        n += 1
        if r < 1 and term < total * (1 - r) * mp.eps:
            return total
        if n > 400000:
            raise ArithmeticError("a series is too long")


def gamma_tails(a, t):
    """log P(a, t) and log Q(a, t): the series of P below a + 1, else Lentz's continued fraction of Q."""
    if t <= 0:
        return -inf, mpf(0)
    head = a * log(t) - t - lgamma(a)
    if t < a + 1:
        return down(head - log(a) + log(series(lambda n: t / (a + 1 + n))))
    b, tiny = t + 1 - a, mpf(10) ** -200
    c, d = 1 / tiny, 1 / b
    h = d
    for i in range(1, 400000):
        an = -i * (i - a)
        b += 2
        d = an * d + b
        c = b + an / c
        d = 1 / (d if d else tiny)
        h *= d * c
        if abs(d * c - 1) < mp.eps * 16:
            return up(head + log(h))
    raise ArithmeticError("a continued fraction is too long")


def beta_tails(a, b, x, y):
    """log I_x(a, b) and log of the rest, y = 1 - x, by the series with positive terms on the side away from the mode."""
    if x <= 0 or y <= 0:
        return (-inf, mpf(0)) if x <= 0 else (mpf(0), -inf)
    flip = a * y < b * x
    if flip:
        a, b, x, y = b, a, y, x
    head = a * log(x) + b * log(y) - lgamma(a) - lgamma(b) + lgamma(a + b) - log(a)
    v = head + log(series(lambda n: (a + b + n) / (a + 1 + n) * x))
    return up(v) if flip else down(v)


def lphi(z):
    """log Phi."""
    if abs(z) > 10**6:
        raise ValueError("too far out")
    return log(mp.erfc(-z / sqrt(mpf(2))) / 2)


def normal(z):
    return down(lphi(z)) if z < 0 else up(lphi(-z))


def student(n, z):
    half = beta_tails(n / 2, mpf(1) / 2, n / (n + z * z), z * z / (n + z * z))[0] - log(mpf(2))
    return down(half) if z < 0 else up(half)


def skew(z, al):
    """The integral of the density away from the mode, over pieces of its own length; in 38 digits."""
    with mp.workdps(38):
        return skewed(z, al)


def skewed(z, al):
    dens = lambda t: -t * t / 2 + lphi(al * t)
    slope = -z + al * exp(-(al * z) ** 2 / 2 - lphi(al * z)) / sqrt(2 * pi)
    away = -1 if slope > 0 else 1
    top = dens(z)
    width = 1 / (abs(slope) + sqrt(1 + al * al))
    total, at = mpf(0), z
    while True:
        to = at + away * width
        part = mp.quad(lambda t: exp(dens(t) - top), sorted([at, to]))
        total += part
        at, width = to, width * 1.5
        if part < total * mp.eps * 1000:
            break
    v = log(2 / sqrt(2 * pi)) + top + log(total)
    return down(v) if away < 0 else up(v)


def inverse_gaussian(x, m, s):
    r = sqrt(s / x)
    low = log(exp(lphi(r * (x / m - 1))) + exp(2 * s / m + lphi(-r * (x / m + 1))))
    if low < -log(mpf(2)):
        return down(low)
    return up(log(exp(lphi(-r * (x / m - 1))) - exp(2 * s / m + lphi(-r * (x / m + 1)))))


def both(parts):
    """Tails of a mixture, from weights and tails."""
    low = log(sum(w * exp(t[0]) for w, t in parts))
    high = log(sum(w * exp(t[1]) for w, t in parts))
    return down(low) if low < high else up(high)


def cut(tails, x, low, high):
    """Tails of what is truncated."""
    at = [tails(v) for v in (low, x, high)]
    mass = lambda p, q: exp(q[0]) - exp(p[0]) if p[0] < -1 else exp(p[1]) - exp(q[1])
    whole = mass(at[0], at[2])
    a, b = mass(at[0], at[1]) / whole, mass(at[1], at[2]) / whole
    return down(log(a)) if a < b else up(log(b))


def generalised(x, m, s, k):
    z = (x - m) / s
    half = gamma_tails(1 / k, abs(z) ** k)[1] - log(mpf(2))
    return down(half) if z < 0 else up(half)


def beta_binomial(x, n, a, b):
    mass = lambda k: exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + lgamma(k + a) + lgamma(n - k + b)
                         - lgamma(n + a + b) - lgamma(a) - lgamma(b) + lgamma(a + b))
    low, high = sum(map(mass, range(int(x) + 1))), sum(map(mass, range(int(x) + 1, int(n) + 1)))
    return down(log(low)) if low < high else up(log(high))


def zero_inflated(x, g, rate):
    high = log1p(-g) + poisson(x, rate)[1]
    return up(high) if high < -1 else down(log(g + (1 - g) * exp(poisson(x, rate)[0])))


def poisson(x, rate):
    q = gamma_tails(x + 1, rate)
    return q[1], q[0]


def failures(x, r, p):
    """The negative binomial, with the probability p of what is counted."""
    return beta_tails(r, x + 1, 1 - p, p)


sigmoid = lambda v: 1 / (1 + exp(-v))

# name: kind of the value (r real, c count), tails, settings. Counts that are parameters have no derivative: they are
# named by their place.
FAMILIES = {
    "Normal": ("r", lambda x, m, s: normal((x - m) / s), [(0, 1), (3, 0.1), (-2, 50), (1e3, 1e-3), (0, 1e6)], ()),
    "LogNormal": ("r", lambda x, m, s: normal((log(x) - m) / s), [(0, 1), (2, 0.25), (-3, 0.05), (1, 0.4)], ()),
    "HalfNormal": ("r", lambda x, s: up(log(mp.erfc(x / s / sqrt(mpf(2))))), [(1,), (0.01,), (300,)], ()),
    "Exponential": ("r", lambda x, l: up(-l * x), [(1,), (0.003,), (5e4,)], ()),
    "Weibull": ("r", lambda x, s, k: up(-(x / s) ** k), [(1, 1), (2, 0.5), (10, 3), (0.1, 12), (500, 1.4)], ()),
    "Gumbel": ("r", lambda x, m, s: down(-exp(min(-(x - m) / s, mpf(100)))), [(0, 1), (4, 0.2), (-10, 30)], ()),
    "Pareto": ("r", lambda x, s, k: up(-k * log(x / s)), [(1, 2), (3, 300), (0.1, 2e4)], ()),
    "Laplace": ("r", lambda x, m, s: down((x - m) / s - log(mpf(2))) if x < m else up((m - x) / s - log(mpf(2))),
                [(0, 1), (5, 0.01), (-3, 40)], ()),
    "Logistic": ("r", lambda x, m, s: down(-log1p(exp(-(x - m) / s))) if x < m else up(-log1p(exp((x - m) / s))),
                 [(0, 1), (5, 0.01), (-3, 40)], ()),
    "Cauchy": ("r", lambda x, m, s: down(log(mp.atan2(s, m - x) / pi)) if x < m else up(log(mp.atan2(s, x - m) / pi)),
               [(0, 1), (5, 0.01), (-3, 40)], ()),
    "HalfCauchy": ("r", lambda x, s: up(log(2 * mp.atan2(s, x) / pi)), [(1,), (0.01,), (40,)], ()),
    "Uniform": ("r", lambda x, a, b: up(log((b - x) / (b - a))) if 2 * x > a + b else down(log((x - a) / (b - a))),
                [(0, 1), (-3, 5), (1e3, 1001)], ()),
    "Gamma": ("r", lambda x, a, l: gamma_tails(a, l * x), [
        (1, 1), (0.5, 2), (2, 3), (0.01, 1), (1e-3, 5), (7.9, 1), (8.1, 0.1), (9, 1), (20, 4), (100, 0.5), (500, 2),
        (5e3, 10), (2e4, 1)], ()),
    "Chi2": ("r", lambda x, n: gamma_tails(n / 2, x / 2), [(1,), (3,), (15,), (40,), (2e3,)], ()),
    "InverseGamma": ("r", lambda x, a, s: gamma_tails(a, s / x)[::-1],
                     [(2, 1), (0.3, 3), (9, 0.2), (60, 100), (3e3, 1)], ()),
    "InverseGaussian": ("r", inverse_gaussian, [(1, 1), (3, 0.6), (0.2, 5), (10, 400), (2, 1e3)], ()),
    "StudentT": ("r", lambda x, n, m, s: student(n, (x - m) / s), [
        (1, 0, 1), (0.3, 2, 1), (3, -1, 0.2), (4.5, 0, 10), (30, 1, 2), (250, 0, 1), (999, 0, 1), (1001, 2, 3),
        (3e4, 0, 1)], ()),
    "SkewNormal": ("r", lambda x, m, s, k: skew((x - m) / s, k), [
        (0, 1, 1), (2, 3, -1), (1, 0.1, -5), (0, 2, 20), (5, 1, 1e-3)], ()),
    "GeneralizedNormal": ("r", generalised, [(0, 1, 1), (0, 1, 2), (3, 2, 0.5), (-1, 0.1, 1.3), (0, 1, 8)], ()),
    "Beta": ("r", lambda x, a, b: beta_tails(a, b, x, 1 - x), [
        (1, 1), (2, 3), (0.5, 0.5), (0.1, 2), (3, 0.05), (1e-3, 1e-3), (9.9, 10.1), (10, 300), (50, 2), (200, 0.3),
        (1e3, 1e3)], ()),
    "TruncatedNormal": ("r", lambda x, m, s, a, b: cut(lambda v: normal((v - m) / s), x, a, b),
                        [(0, 1, -1, 2), (0, 1, -2, 40), (3, 0.5, -20, 3), (0, 1, 10, 1500), (0, 2, 5, 6)], ()),
    "TruncatedGamma": ("r", lambda x, a, l: cut(lambda v: gamma_tails(a, l * v), x, mpf(1), mpf(4000)),
                       [(2, 1), (0.5, 3), (30, 0.5)], ()),
    "Mixture": ("r", lambda x, m, s, n: both([(mpf(1) / 4, normal((x - m) / s)), (mpf(3) / 4, student(n, x))]),
                [(1, 2, 4), (-3, 0.5, 60), (10, 1, 500)], ()),
    "Transformed": ("r", lambda x, m, s: down(-log1p(exp(-(log(x) - m) / s))) if log(x) < m else
                    up(-log1p(exp((log(x) - m) / s))), [(0, 1), (2, 0.25), (-1, 0.02)], ()),
    "Poisson": ("c", poisson, [(0.01,), (0.5,), (3,), (7.5,), (20,), (300,), (1e4,), (2e5,)], ()),
    "PoissonLog": ("c", lambda x, l: poisson(x, exp(l)), [(-3,), (0,), (2,), (6,), (10,)], ()),
    "Binomial": ("c", lambda x, n, p: beta_tails(n - x, x + 1, 1 - p, p), [
        (1, 0.3), (10, 0.5), (10, 0.01), (200, 0.9), (1000, 0.2), (5e3, 0.01)], (0,)),
    "BinomialLogits": ("c", lambda x, n, l: beta_tails(n - x, x + 1, sigmoid(-l), sigmoid(l)), [
        (3, 0), (10, -4), (200, 2), (1000, -1)], (0,)),
    "NegativeBinomial": ("c", lambda x, m, r: failures(x, r, m / (m + r)), [
        (2, 1), (0.1, 5), (30, 0.2), (100, 50)], ()),
    "NegativeBinomialProbs": ("c", failures, [(1, 0.5), (0.3, 0.9), (20, 0.05), (300, 0.6)], ()),
    "NegativeBinomialLogits": ("c", lambda x, r, l: failures(x, r, sigmoid(l)), [(1, 0), (0.3, 3), (20, -4), (300, 1)], ()),
    "Geometric": ("c", lambda x, p: up((x + 1) * log1p(-p)), [(0.5,), (0.01,), (0.999,), (1e-5,)], ()),
    "BetaBinomial": ("c", beta_binomial, [(5, 2, 3), (40, 0.5, 0.5), (40, 300, 2), (60, 8, 1e3)], (0,)),
    "ZeroInflated": ("c", zero_inflated, [(0.3, 2), (0.9, 40), (1e-6, 7), (0.5, 1e3)], ()),
}

# Five more settings by chance: r real, p from 0.1 to 100, s from 0.1 to 10, u from 0 to 1, n a count.
MORE = {
    "Normal": "rp", "LogNormal": "rs", "Weibull": "ps", "Gumbel": "rp", "Pareto": "pp", "Laplace": "rp", "Logistic": "rp",
    "Cauchy": "rp", "Gamma": "pp", "Chi2": "p", "InverseGamma": "pp", "InverseGaussian": "pp", "StudentT": "prp",
    "TruncatedGamma": "pp", "Mixture": "rpp",
    "Transformed": "rs", "Poisson": "p", "PoissonLog": "r", "Binomial": "nu", "BinomialLogits": "nr",
    "NegativeBinomialLogits": "pr", "Geometric": "u",
    "BetaBinomial": "npp", "ZeroInflated": "up", "Exponential": "p", "HalfNormal": "p", "HalfCauchy": "p",
    "NegativeBinomialProbs": "pu", "GeneralizedNormal": "rps",
}


def more(name):
    rng = random.Random(name)
    draw = {"r": lambda: rng.uniform(-5, 5), "p": lambda: 10 ** rng.uniform(-1, 2), "s": lambda: 10 ** rng.uniform(-1, 1),
            "u": rng.random, "n": lambda: rng.randint(2, 60)}
    return [tuple(float("%.4g" % draw[k]()) for k in MORE.get(name, "")) for _ in range(5) if name in MORE]


POSITIVE = {"LogNormal", "HalfNormal", "Exponential", "Weibull", "Gamma", "Chi2", "InverseGamma", "InverseGaussian",
            "HalfCauchy", "Transformed"}


def ends(name, p):
    """An interval that holds all points, and its middle, in which one looks for them."""
    if name in ("Uniform", "TruncatedNormal"):
        return p[-2], p[-1]
    if name == "Beta":
        return mpf(0), mpf(1)
    if name == "TruncatedGamma":
        return mpf(1), mpf(4000)
    if name == "Pareto":
        return p[0], mpf(10) ** 300
    if name in POSITIVE:
        return mpf(10) ** -300, mpf(10) ** 300
    return -mpf(10) ** 300, mpf(10) ** 300


def points(name, kind, tails, p):
    """Doubles at which a tail has about the logarithms that are asked for."""
    if name == "SkewNormal":  # whose integral is slow, by what its tails are like
        m, s, k = p
        steep = lambda side: 1 + k * k if side * k < 0 else 1
        return [float(m + s * side * sqrt(2 * mpf(t) / steep(side))) for t in (0.3, 30, 1e5) for side in (-1, 1)]
    found = []
    mp.mp.dps = 25
    for side in (0, 1):
        for target in TARGETS:
            try:
                x = search(name, kind, tails, p, side, mpf(-target))
            except (ArithmeticError, ValueError, ZeroDivisionError):
                x = None
            if x is not None and x not in found:
                found.append(x)
    mp.mp.dps = 60
    return found


def search(name, kind, tails, p, side, target):
    if kind == "c":
        low, high = mpf(-1), mpf(1)
        top = p[0] - 1 if "Binomial" in name and "Negative" not in name else mpf(10) ** 9
        f = lambda k: tails(k, *p)[side]
        if side == 0:
            if f(mpf(0)) > target:
                return None
        while high < top and (f(high) < target if side == 0 else f(high) > target):
            high *= 2
        high = min(high, top)
        while high - low > 1:
            mid = mp.floor((low + high) / 2)
            if mid < 0:
                break
            if (f(mid) < target) == (side == 0):
                low = mid
            else:
                high = mid
        return float(low) if 0 <= low < top and abs(f(low) / target) < 3 and abs(f(low) / target) > 0.3 else None
    low, high = ends(name, p)
    # A scale on which numbers of all sizes are near: from the end, or both ways from 0.
    if name == "Beta":
        to, back = (lambda x: log(x / (1 - x))), (lambda s: sigmoid(s))
        a, b = mpf(-600), mpf(36)
    elif name in POSITIVE or name == "Pareto":
        to, back = log, exp
        a, b = log(low), log(high)
    elif name in ("Uniform", "TruncatedNormal", "TruncatedGamma"):
        back = lambda s: low + (high - low) * sigmoid(s)
        # Of an interval with a difference of tails nothing is left at its ends, nor is it promised.
        a, b = (mpf(-8), mpf(8)) if name == "TruncatedGamma" else (mpf(-30), mpf(30))
    else:
        back, a, b = mp.sinh, mpf(-300), mpf(300)
        if name in ("Gumbel", "Normal"):
            a, b = mpf(-30), mpf(30)
    f = lambda s: tails(back(s), *p)[side]
    for _ in range(40):
        mid = (a + b) / 2
        try:
            below = f(mid) < target
        except (ValueError, ZeroDivisionError):  # beyond what the formulas can do: on the far side
            below = (mid < 0) == (side == 0)
        if below == (side == 0):
            a = mid
        else:
            b = mid
    x = float(back((a + b) / 2))
    if not low < x < high or x in (0, float(high)):
        return None
    v = tails(mpf(x), *p)[side]
    return x if 0.5 < v / target < 2 else None


def differences(tails, args, skipped, lost):
    """The derivatives of both tails by each argument: numbers, or "-" for one that is a count."""
    out = []
    for i, v in enumerate(args):
        if i in skipped:
            out += ["-", "-"]
            continue
        h = (abs(v) if v else mpf(1)) * STEP
        low, high = [tails(*[a + s * h if j == i else a for j, a in enumerate(args)]) for s in (-1, 1)]
        # A difference that is lost in the digits tells nothing.
        out += [mp.nstr((b - a) / (2 * h), 20) if abs(b - a) > abs(a) * lost or a == b == 0 else "-"
                for a, b in zip(low, high)]
    return out


def main():
    with gzip.GzipFile("tails.csv.gz", "wb", mtime=0) as f:
        for name, (kind, tails, settings, counts) in FAMILIES.items():
            rows = 0
            for setting in [*settings, *more(name)]:
                p = [mpf(float(v)) for v in setting]
                for x in points(name, kind, tails, p):
                    try:
                        v = tails(mpf(x), *p)
                        skipped = {c + 1 for c in counts} | ({0} if kind == "c" else set())
                        lost = mpf(10) ** (-28 if name == "SkewNormal" else -38)
                        d = differences(tails, [mpf(x), *p], skipped, lost)
                    except ArithmeticError:
                        continue
                    numbers = [repr(float(q)) for q in p] + [repr(x)] + [mp.nstr(t, 20) for t in v]
                    f.write((",".join([name, *numbers, *d]) + "\n").encode())
                    rows += 1
            print(name, len(settings) + len(more(name)), rows, flush=True)


if __name__ == "__main__":
    main()
