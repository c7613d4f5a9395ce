"""Makes reference.csv.gz: what the distributions of dist should give, in 160 digits.

    python3 reference.py                (needs mpmath; some minutes)

A family is a row of FAMILIES: the log density as an expression of the value and the parameters, settings, points, and
what else it has. Gradients are differences of that expression, of steps of 1e-50 of the argument.

A row of the file is a family, a number, or several, that are the value, the parameters, and the figures; the line
before a family's first has their names. A figure is v or v~c, where c is the sum over the arguments of |argument ·
derivative of the figure|: what the arguments' own rounding moves. A figure that is not asked for is "-".
"""

import gzip
import random
import zlib

import mpmath as mp
from mpmath import erfc, exp, expm1, inf, log, log1p, mpf, nan, pi, sqrt

mp.mp.dps = 160
SETTINGS, POINTS = 30, 20
STEP = mpf(10) ** -50
lgamma = mp.loggamma
lfact = lambda n: mp.loggamma(n + 1)
Phi = lambda z: erfc(-z / sqrt(mpf(2))) / 2
Z = [s * z for z in (0.003, 0.1, 0.4, 0.8, 1.3, 2.0, 3.0, 5.0, 8.0, 20.0) for s in (-1, 1)]


def settings(rng, kinds):
    """30 settings: 15 ordinary, 10 extreme, 5 near the ends. A kind is a letter a parameter:

    r real, p positive, u in (0, 1), n a count, h above the parameter before, l below its location (two before)
    """
    out = []
    for i in range(SETTINGS):
        far = 0 if i < 15 else 1 if i < 25 else 2
        p = []
        for k in kinds:
            sign = rng.choice((-1, 1))
            size = (10 ** rng.uniform(-1, 1), 10 ** rng.uniform(-6, 6), 10 ** (sign * rng.uniform(8, 10)))[far]
            if k == "r":
                v = rng.choice((-1, 1)) * (0 if i == 3 else min(size, 1e4))
            elif k == "p":
                v = (0.5, 1, 2)[i] if i < 3 else size
            elif k == "u":
                q = (rng.random(), 10 ** rng.uniform(-8, -1), 10 ** rng.uniform(-15, -9))[far]
                v = q if i % 2 else 1 - q
            elif k == "n":
                v = (rng.randint(1, 30), rng.randint(100, 10**6), rng.choice((0, 1, 10**9)))[far]
            elif k == "l":
                v = p[-2] + p[-1] * rng.uniform(-3, 1)
            elif k == "h":
                width = p[-2] if kinds.endswith("lh") else 1 + abs(p[-1])
                v = p[-1] + width * (rng.uniform(0.1, 3), 10 ** rng.uniform(-3, 2), 10 ** rng.uniform(-5, -4))[far]
            p.append(float("%.6g" % v) if k != "u" else float("%.17g" % v))
            if k == "h" and not p[-1] > p[-2]:
                p[-1] = p[-2] + 1
        out.append(p)
    return out


# Points: of a number z to a value, for given parameters.
def around(p, z):
    return p[0] + p[1] * z


def log_around(centre, width):
    """Points that are spread in the logarithm, widely below and less above."""

    def at(p, z):
        s = width(*p) * z / 3
        return centre(*p) * mp.exp(s if z < 0 else min(s, 6))

    return at


def between(low, high):
    return lambda p, z: low(*p) + (high(*p) - low(*p)) * Phi(mpf(z) / 3)


def counts(top=lambda *p: inf, mean=None):
    """The counts 0, 1, the last ones, and some around the mean."""

    def at(p, z):
        i, t = Z.index(z), top(*p)
        m = mean(*p) if mean else mpf(t) / 2
        v = (i, t - i)[i % 2] if i < 4 and t < inf else i if i < 4 else mp.nint(m + (sqrt(m) + 1) * mpf(z))
        return min(max(mp.nint(v), 0), t, 10**12)

    return at


def xlogy(x, y):
    return mpf(0) if x == 0 else x * log(y)


def lbeta(a, b):
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def log_sigmoid(v):
    return -log1p(exp(-v))


def gamma_tails(a, y):
    if a > 2e4:
        return None
    return mp.gammainc(a, 0, y, regularized=True), mp.gammainc(a, y, inf, regularized=True)


def swap(t):
    return t and t[::-1]


def student_tails(df, z):
    if df > 2e4 or df < 1e-4:
        return None
    half = mp.betainc(df / 2, mpf(1) / 2, 0, df / (df + z * z), regularized=True) / 2
    return (half, 1 - half) if z < 0 else (1 - half, half)


def inverse_gaussian_tails(x, m, k):
    r = sqrt(k / x)
    a, b = r * (x / m - 1), exp(2 * k / m) * Phi(-r * (x / m + 1))
    return Phi(a) + b, Phi(-a) - b


def truncated_tails(x, m, s, lo, hi):
    a, z, b = (lo - m) / s, (x - m) / s, (hi - m) / s
    mass = Phi(b) - Phi(a)
    return (Phi(z) - Phi(a)) / mass, (Phi(b) - Phi(z)) / mass


def truncated_moments(m, s, lo, hi):
    a, b = (lo - m) / s, (hi - m) / s
    phi = lambda z: exp(-z * z / 2) / sqrt(2 * pi)
    mass = Phi(b) - Phi(a)
    shift = (phi(a) - phi(b)) / mass
    return m + s * shift, s * s * (1 + (a * phi(a) - b * phi(b)) / mass - shift**2)


def both(f):
    """Tails of a symmetrical law, from its CDF f in a form that is exact for negative arguments."""
    return lambda z: (f(z), f(-z))


def scaled(tails):
    return lambda x, m, s, *rest: tails((x - m) / s, *rest)


def skew_moments(m, s, a):
    d = a / sqrt(1 + a * a)
    return m + s * d * sqrt(2 / pi), s * s * (1 - 2 * d * d / pi)


def pareto_moments(s, a):
    mean = a * s / (a - 1) if a > 1 else inf
    return mean, s * s * a / ((a - 1) ** 2 * (a - 2)) if a > 2 else inf if a > 1 else nan


def inverse_gamma_moments(a, b):
    return b / (a - 1) if a > 1 else inf, b * b / ((a - 1) ** 2 * (a - 2)) if a > 2 else inf if a > 1 else nan


def weibull_moments(s, k):
    one, two = mp.gamma(1 + 1 / k), mp.gamma(1 + 2 / k)
    return s * one, s * s * (two - one * one)


def student_moments(df, m, s):
    return m if df > 1 else nan, s * s * df / (df - 2) if df > 2 else inf if df > 1 else nan


def von_mises_logp(x, m, k):
    return k * mp.cos(x - m) - log(2 * pi * mp.besseli(0, k))


def mixed(logp, gate):
    """ZeroInflated."""
    return lambda x, g, r: log((g if x == 0 else 0) + (1 - g) * exp(logp(x, r)))


def poisson(x, r):
    return xlogy(x, r) - r - lfact(x)


def binomial(x, n, p, q):
    return lfact(n) - lfact(x) - lfact(n - x) + xlogy(x, p) + xlogy(n - x, q)


def negative_binomial(x, r, p, q):
    return lgamma(x + r) - lgamma(r) - lfact(x) + xlogy(r, q) + xlogy(x, p)


def sigmoid(v):
    return 1 / (1 + exp(-v))


def ordered(x, eta, *cut):
    k = int(x)
    if k == 0:
        return log_sigmoid(cut[0] - eta)
    if k == len(cut):
        return log_sigmoid(eta - cut[-1])
    a, b = cut[k] - eta, cut[k - 1] - eta  # σ(a) − σ(b) = σ(a) σ(−b) (1 − exp(b − a))
    return log_sigmoid(a) + log_sigmoid(-b) + log(-expm1(b - a))


def choice_moments(weights):
    total = sum(weights)
    mean = sum(k * w for k, w in enumerate(weights)) / total
    return mean, sum((k - mean) ** 2 * w for k, w in enumerate(weights)) / total


def ordered_moments(eta, *cut):
    return choice_moments([exp(ordered(mpf(k), eta, *cut)) for k in range(len(cut) + 1)])


def beta_binomial_moments(n, a, b):
    return n * a / (a + b), n * a * b * (a + b + n) / ((a + b) ** 2 * (a + b + 1))


root2pi = log(2 * pi) / 2
NORMAL = lambda x, m, s: -(((x - m) / s) ** 2) / 2 - log(s) - root2pi


# name: kinds of the parameters, log density, points; then the tails P(X ≤ x), P(X > x), quantile (whether there is
# one) and moments; end: where the support ends.
def row(kinds, logp, at, tails=None, icdf=False, moments=None, end=None):
    return dict(kinds=kinds, logp=logp, at=at, tails=tails, icdf=icdf, moments=moments, end=end)


FAMILIES = {
    "Normal": row("rp", NORMAL, around, scaled(both(Phi)), True, lambda m, s: (m, s * s)),
    "LogNormal": row(
        "rp", lambda x, m, s: NORMAL(log(x), m, s) - log(x), lambda p, z: exp(p[0] % 7 + min(p[1], mpf(20)) * z / 4),
        lambda x, m, s: both(Phi)((log(x) - m) / s), True,
        lambda m, s: (exp(m + s * s / 2), expm1(s * s) * exp(2 * m + s * s)), 0),
    "HalfNormal": row(
        "p", lambda x, s: NORMAL(x, 0, s) + log(2), lambda p, z: p[0] * abs(z),
        lambda x, s: (1 - 2 * Phi(-x / s), 2 * Phi(-x / s)), True,
        lambda s: (s * sqrt(2 / pi), s * s * (1 - 2 / pi)), 0),
    "Cauchy": row(
        "rp", lambda x, m, s: -log(pi * s * (1 + ((x - m) / s) ** 2)), around,
        scaled(both(lambda z: mp.atan2(1, -z) / pi)), True, lambda m, s: (nan, nan)),
    "HalfCauchy": row(
        "p", lambda x, s: -log(pi / 2 * s * (1 + (x / s) ** 2)), lambda p, z: p[0] * exp(z),
        lambda x, s: (2 / pi * mp.atan(x / s), 2 / pi * mp.atan2(s, x)), True, lambda s: (inf, nan), 0),
    "StudentT": row(
        "prp", lambda x, n, m, s: lgamma((n + 1) / 2) - lgamma(n / 2) - log(pi * n) / 2 - log(s)
        - (n + 1) / 2 * log1p(((x - m) / s) ** 2 / n), lambda p, z: p[1] + p[2] * z,
        lambda x, n, m, s: student_tails(n, (x - m) / s), True, student_moments),
    "Laplace": row(
        "rp", lambda x, m, s: -abs(x - m) / s - log(2 * s), around,
        scaled(both(lambda z: exp(z) / 2 if z < 0 else 1 - exp(-z) / 2)), True, lambda m, s: (m, 2 * s * s)),
    "Logistic": row(
        "rp", lambda x, m, s: -(x - m) / s - 2 * log1p(exp(-(x - m) / s)) - log(s), around, scaled(both(sigmoid)), True,
        lambda m, s: (m, s * s * pi**2 / 3)),
    "Uniform": row(
        "rh", lambda x, a, b: -log(b - a), between(lambda a, b: a, lambda a, b: b),
        lambda x, a, b: ((x - a) / (b - a), (b - x) / (b - a)), True, lambda a, b: ((a + b) / 2, (b - a) ** 2 / 12)),
    "Exponential": row(
        "p", lambda x, r: log(r) - r * x, lambda p, z: exp(z / 3) / p[0],
        lambda x, r: (-expm1(-r * x), exp(-r * x)), True,
        lambda r: (1 / r, 1 / r**2), 0),
    "Gamma": row(
        "pp", lambda x, a, b: a * log(b) + (a - 1) * log(x) - b * x - lgamma(a),
        log_around(lambda a, b: a / b, lambda a, b: min(1 / sqrt(a), 9)), lambda x, a, b: gamma_tails(a, b * x), False,
        lambda a, b: (a / b, a / b**2), 0),
    "InverseGamma": row(
        "pp", lambda x, a, b: a * log(b) - (a + 1) * log(x) - b / x - lgamma(a),
        log_around(lambda a, b: b / a, lambda a, b: min(1 / sqrt(a), 1)), lambda x, a, b: swap(gamma_tails(a, b / x)),
        False, inverse_gamma_moments, 0),
    "Chi2": row(
        "p", lambda x, k: (k / 2 - 1) * log(x) - x / 2 - k / 2 * log(2) - lgamma(k / 2),
        log_around(lambda k: k, lambda k: min(1 / sqrt(k), 9)), lambda x, k: gamma_tails(k / 2, x / 2), False,
        lambda k: (k, 2 * k), 0),
    "Beta": row(
        "pp", lambda x, a, b: (a - 1) * log(x) + (b - 1) * log1p(-x) - lbeta(a, b),
        lambda p, z: sigmoid(log(mpf(p[0]) / p[1]) + min(sqrt(1 / mpf(p[0]) + 1 / mpf(p[1])), 3) * z / 3), None, False,
        lambda a, b: (a / (a + b), a * b / ((a + b) ** 2 * (a + b + 1))), 0),
    "Weibull": row(
        "pp", lambda x, s, k: log(k / s) + (k - 1) * log(x / s) - (x / s) ** k,
        lambda p, z: p[0] * exp(mpf(z) / 4 / max(p[1], 0.05)),
        lambda x, s, k: (-expm1(-((x / s) ** k)), exp(-((x / s) ** k))), True, weibull_moments, 0),
    "Pareto": row(
        "pp", lambda x, s, a: log(a / s) - (a + 1) * log(x / s),
        lambda p, z: p[0] * exp(exp(mpf(z) / 4) / max(p[1], 0.1)),
        lambda x, s, a: (-expm1(-a * log(x / s)), (s / x) ** a), True, pareto_moments),
    "Gumbel": row(
        "rp", lambda x, m, s: -(x - m) / s - exp(-(x - m) / s) - log(s), lambda p, z: p[0] + p[1] * max(z, -5),
        scaled(lambda z: (exp(-exp(-z)), -expm1(-exp(-z)))), True, lambda m, s: (m + s * mp.euler, pi**2 / 6 * s * s)),
    "SkewNormal": row(
        "rpr", lambda x, m, s, a: NORMAL(x, m, s) + log(erfc(-a * (x - m) / s / sqrt(mpf(2)))), around, None, False,
        skew_moments),
    "InverseGaussian": row(
        "pp", lambda x, m, k: log(k / (2 * pi * x**3)) / 2 - k * (x - m) ** 2 / (2 * m * m * x),
        log_around(lambda m, k: m, lambda m, k: min(sqrt(m / k), 2)), inverse_gaussian_tails, False,
        lambda m, k: (m, m**3 / k), 0),
    "GeneralizedNormal": row(
        "rpp", lambda x, m, s, b: log(b / (2 * s)) - lgamma(1 / b) - (abs(x - m) / s) ** b,
        lambda p, z: p[0] + p[1] * mp.sign(z) * abs(mpf(z)) ** (1 / max(p[2], mpf(1) / 4)), None, False,
        lambda m, s, b: (m, s * s * exp(lgamma(3 / b) - lgamma(1 / b)))),
    "VonMises": row(
        "rp", von_mises_logp, lambda p, z: p[0] % 3 + pi * mp.tanh(z / 4 / max(1, sqrt(p[1]))), None, False,
        lambda m, k: (m, 1 - mp.besseli(1, k) / mp.besseli(0, k))),
    "TruncatedNormal": row(
        "rplh", lambda x, m, s, a, b: NORMAL(x, m, s) - log(Phi((b - m) / s) - Phi((a - m) / s)),
        between(lambda m, s, a, b: a, lambda m, s, a, b: b), truncated_tails, True, truncated_moments),
    "Bernoulli": row(
        "u", lambda x, p: log(p if x else 1 - p), counts(lambda p: 1), moments=lambda p: (p, p * (1 - p))),
    "BernoulliLogits": row(
        "r", lambda x, l: log_sigmoid(l if x else -l), counts(lambda l: 1),
        moments=lambda l: (sigmoid(l), sigmoid(l) * sigmoid(-l))),
    "Binomial": row(
        "nu", lambda x, n, p: binomial(x, n, p, 1 - p), counts(lambda n, p: n, lambda n, p: n * p),
        moments=lambda n, p: (n * p, n * p * (1 - p))),
    "BinomialLogits": row(
        "nr", lambda x, n, l: binomial(x, n, sigmoid(l), sigmoid(-l)),
        counts(lambda n, l: n, lambda n, l: n * sigmoid(l)),
        moments=lambda n, l: (n * sigmoid(l), n * sigmoid(l) * sigmoid(-l))),
    "Categorical": row(
        "pppp", lambda x, *w: log(w[int(x)] / sum(w)), counts(lambda *w: 3), moments=lambda *w: choice_moments(w)),
    "CategoricalLogits": row(
        "rrrr", lambda x, *l: l[int(x)] - log(sum(exp(v) for v in l)), counts(lambda *w: 3),
        moments=lambda *l: choice_moments([exp(v) for v in l])),
    "Poisson": row("p", poisson, counts(mean=lambda r: r), moments=lambda r: (r, r)),
    "PoissonLog": row(
        "r", lambda x, l: poisson(x, exp(l)), counts(mean=lambda l: exp(min(l, 25))),
        moments=lambda l: (exp(l), exp(l))),
    "NegativeBinomial": row(
        "pp", lambda x, m, r: negative_binomial(x, r, m / (m + r), r / (m + r)), counts(mean=lambda m, r: m),
        moments=lambda m, r: (m, m + m * m / r)),
    "NegativeBinomialProbs": row(
        "pu", lambda x, r, p: negative_binomial(x, r, p, 1 - p), counts(mean=lambda r, p: r * p / (1 - p)),
        moments=lambda r, p: (r * p / (1 - p), r * p / (1 - p) ** 2)),
    "NegativeBinomialLogits": row(
        "pr", lambda x, r, l: negative_binomial(x, r, sigmoid(l), sigmoid(-l)),
        counts(mean=lambda r, l: r * exp(min(l, 25))),
        moments=lambda r, l: (r * exp(l), r * exp(l) / sigmoid(-l))),
    "Geometric": row(
        "u", lambda x, p: xlogy(x, 1 - p) + log(p), counts(mean=lambda p: (1 - p) / p),
        moments=lambda p: ((1 - p) / p, (1 - p) / p**2)),
    "BetaBinomial": row(
        "npp", lambda x, n, a, b: lfact(n) - lfact(x) - lfact(n - x) + lbeta(x + a, n - x + b) - lbeta(a, b),
        counts(lambda n, a, b: n, lambda n, a, b: n * a / (a + b)), moments=beta_binomial_moments),
    "OrderedLogistic": row("rrhh", ordered, counts(lambda *p: 3), moments=ordered_moments),
    "ZeroInflated": row(
        "up", mixed(poisson, 0), counts(mean=lambda g, r: r),
        moments=lambda g, r: ((1 - g) * r, (1 - g) * r * (1 + g * r))),
}


def derivative(f, args, i):
    h = STEP * (abs(args[i]) or 1)
    low, high = list(args), list(args)
    low[i] -= h
    high[i] += h
    return (f(*high) - f(*low)) / (2 * h)


def moved(f, args, which):
    """|argument · derivative| over the arguments, to a few digits."""
    out, at = mpf(0), f(*args)
    for i in which:
        near = list(args)
        near[i] *= 1 + mpf(10) ** -20
        out += abs(f(*near) - at) * mpf(10) ** 20
    return out


def text(v, moves=None):
    if v is None:
        return "-"
    if mp.isnan(v):
        return "NaN"
    if abs(v) > mpf(2) ** 1023 * (2 - mpf(2) ** -52):
        v = inf * mp.sign(v)
    if mp.isinf(v):
        return "Inf" if v > 0 else "-Inf"
    if abs(v) < mpf(10) ** -300:
        v = mpf(0)
    short = lambda v, digits: mp.nstr(v, digits, min_fixed=0, max_fixed=0)
    return short(v, 13) + ("" if not moves else "~" + short(moves, 2))


def quantile(f, args, tails):
    """The p next to P(X ≤ x), and its quantile, by the series of the inverse to second order at x."""
    p = float(tails[0])
    if not 1e-290 < p < 1 - 1e-7:
        return None, None
    d, density = mpf(p) - tails[0], exp(f(*args))
    return p, args[0] + d / density - derivative(f, args, 0) / (2 * density**2) * d * d


def figures(fam, x, p):
    f, args = fam["logp"], [mpf(v) for v in [x] + p]
    kinds = ("n" if fam["at"].__qualname__.startswith("counts") else "r") + fam["kinds"]
    wanted = [i for i, k in enumerate(kinds) if k != "n"]
    grads = {i: derivative(f, args, i) for i in wanted}
    grads = {i: g if abs(g) > mpf(10) ** -90 else mpf(0) for i, g in grads.items()}  # of the differences' own error
    out = [text(f(*args), sum(abs(args[i] * g) for i, g in grads.items()))]
    for i in range(len(args)):
        g = lambda *a: derivative(f, a, i)
        out.append(text(grads[i], moved(g, args, wanted)) if i in grads else "-")
    tails = fam["tails"] and fam["tails"](*args)
    for side in range(2):
        if not tails:
            out.append("-")
        else:
            out.append(text(tails[side], moved(lambda *a: fam["tails"](*a)[side], args, range(len(args)))))
    q = quantile(f, args, tails) if tails and fam["icdf"] else (None, None)
    moves = q[0] and (q[0] + moved(lambda *a: fam["tails"](*a)[0], args, range(1, len(args)))) / exp(f(*args))
    return out + [repr(q[0]) if q[0] else "-", text(q[1], moves)]


def moments(fam, p):
    args = [mpf(v) for v in p]
    if not fam["moments"]:
        return ["-", "-"]
    out = []
    for side in range(2):
        v = fam["moments"](*args)[side]
        moves = moved(lambda *a: fam["moments"](*a)[side], args, range(len(args))) if mp.isfinite(v) else None
        out.append(text(v, moves))
    return out


def limit(fam, p):
    """The log density at the lower end of the support, as a limit."""
    v = fam["logp"](*[mpf(x) for x in [mpf(10) ** -(10**25)] + p])
    return text(mp.sign(v) * inf if abs(v) > mpf(10) ** 12 else v, abs(v))


def main():
    lines = []
    for name, fam in FAMILIES.items():
        rng = random.Random(zlib.crc32(name.encode()))
        n = len(fam["kinds"])
        for p in settings(rng, fam["kinds"]):
            seen, m = set(), moments(fam, p)
            for z in Z:
                x = float(fam["at"](p, z))
                short = float("%.7g" % x)
                if name not in ("Uniform", "TruncatedNormal", "Beta", "Pareto") or p[-2] < short < p[-1]:
                    x = short
                if name == "Beta":
                    x = min(max(short, 1e-290), 1 - 2.0**-53)
                if x in seen or not mp.isfinite(x) or fam["end"] == 0 and not 1e-290 < x < 1e290:
                    continue
                if name == "Pareto" and x <= p[0]:
                    continue
                if name in ("Uniform", "TruncatedNormal") and not p[-2] < x < p[-1]:
                    continue
                seen.add(x)
                lines.append(",".join([name, str(n)] + [repr(v) for v in [x] + p] + m + figures(fam, x, p)))
            if fam["end"] == 0:
                figs = [limit(fam, p)] + ["-"] * (n + 5)
                lines.append(",".join([name, str(n)] + [repr(v) for v in [0.0] + p] + m + figs))
        print(name, len(lines), flush=True)
    with open("reference.csv.gz", "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as out:
        out.write(("\n".join(lines) + "\n").encode())


if __name__ == "__main__":
    main()
