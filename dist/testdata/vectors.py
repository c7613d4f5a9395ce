"""Makes vectors.csv.gz: densities of vectors, matrices, and of what is made of other distributions, in 70 digits.

    python3 vectors.py                (needs mpmath; half an hour)

A line is a family, how many numbers its value and its parameters have, those numbers, and the figures: log density,
its gradient in each of them ("-" for counts), then mean and variance of the elements where they have formulas (in the
first line of a setting), and for families of single numbers P(X ≤ x). Figures are v~c as in reference.py. A value that is on a surface is given by
coordinates, and its gradient is in these: logits of a probability vector, tangents of partial correlations, a vector
less its mean.
"""

import functools
import gzip
import multiprocessing
import random
import zlib

import mpmath as mp
from mpmath import exp, log, log1p, mpf, pi, sqrt

import reference as one

mp.mp.dps = 70
STEP, NEAR = mpf(10) ** -22, mpf(10) ** -14
SETTINGS, POINTS = 30, 20
root2pi = log(2 * pi) / 2
lgamma = functools.lru_cache(100000)(mp.loggamma)


def size(rng, far):
    sign = rng.choice((-1, 1))
    v = (10 ** rng.uniform(-1, 1), 10 ** rng.uniform(-5, 5), 10 ** (sign * rng.uniform(8, 10)))[far]
    return float("%.6g" % v)


def real(rng, far):
    return rng.choice((-1, 1)) * min(size(rng, far), 1e4)


def several(f, n):
    return lambda rng, far: [f(rng, far) for _ in range(n)]


def tril(rng, far):
    """A lower triangle of 3 x 3 by rows. Rows differ by orders of magnitude where far."""
    out = []
    for i in range(3):
        s = 1 if far == 0 else 10 ** rng.uniform(-3, 3) if far == 1 else 10 ** rng.uniform(-9, 9)
        out += [float("%.6g" % (s * rng.uniform(-1, 1))) for _ in range(i)] + [float("%.6g" % (s * rng.uniform(0.5, 2)))]
    return out


def mild(rng, far):
    return tril(rng, 0)


def joined(*parts):
    return lambda rng, far: [v for f in parts for v in f(rng, far)]


def square(t):
    return [[t[0], mpf(0), mpf(0)], [t[1], t[2], mpf(0)], [t[3], t[4], t[5]]]


def solve(l, b):
    """L⁻¹ b."""
    out = []
    for i in range(len(b)):
        out.append((b[i] - sum(l[i][j] * out[j] for j in range(i))) / l[i][i])
    return out


def normal3(x, m, l):
    z = solve(l, [a - b for a, b in zip(x, m)])
    return -sum(v * v for v in z) / 2 - sum(log(l[i][i]) for i in range(3)) - 3 * root2pi


def times(l):
    return [[sum(a * b for a, b in zip(r, s)) for s in l] for r in l]


def precision3(x, m, l):
    """L is the factor of the precision: |Lᵀ(x − m)|²."""
    d = [a - b for a, b in zip(x, m)]
    z = [sum(l[i][j] * d[i] for i in range(3)) for j in range(3)]
    return -sum(v * v for v in z) / 2 + sum(log(l[i][i]) for i in range(3)) - 3 * root2pi


def cholesky(a):
    n, l = len(a), [[mpf(0)] * len(a) for _ in a]
    for i in range(n):
        for j in range(i + 1):
            s = a[i][j] - sum(l[i][k] * l[j][k] for k in range(j))
            l[i][j] = sqrt(s) if i == j else s / l[j][j]
    return l


def low_rank(x, p):
    w, d = [p[3:5], p[5:7], p[7:9]], p[9:]
    cov = [[sum(a * b for a, b in zip(w[i], w[j])) + (d[i] if i == j else 0) for j in range(3)] for i in range(3)]
    return normal3(x, p[:3], cholesky(cov))


def student3(x, p):
    n, l = p[0], square(p[4:])
    z = solve(l, [a - b for a, b in zip(x, p[1:4])])
    q = sum(v * v for v in z)
    return (lgamma((n + 3) / 2) - lgamma(n / 2) - mpf(3) / 2 * log(n * pi) - (n + 3) / 2 * log1p(q / n)
            - sum(log(l[i][i]) for i in range(3)))


def softmax(y):
    total = sum(exp(v) for v in y)
    return [exp(v) / total for v in y]


def dirichlet(y, a):
    return lgamma(sum(a)) + sum((b - 1) * log(x) - lgamma(b) for b, x in zip(a, softmax(y)))


def multinomial(x, p):
    total = sum(p)
    return one.lfact(sum(x)) + sum(one.xlogy(k, q / total) - one.lfact(k) for k, q in zip(x, p))


def dirichlet_multinomial(x, a):
    n, s = sum(x), sum(a)
    return (one.lfact(n) + lgamma(s) - lgamma(n + s)
            + sum(lgamma(k + b) - lgamma(b) - one.lfact(k) for k, b in zip(x, a)))


def lkj(y, p):
    t, eta = [mp.tanh(v) for v in y], p[0]
    diagonal = [sqrt(1 - t[0] ** 2), sqrt(1 - t[1] ** 2) * sqrt(1 - t[2] ** 2)]
    out = mpf(0)
    for i, d in zip((2, 3), diagonal):
        a, b = mpf(i - 1) / 2, eta + mpf(3 - i) / 2
        out += 2 * (b - 1) * log(d) - a * log(pi) - lgamma(b) + lgamma(a + b)
    return out


def log_chi(a, k):
    return (k - 1) * log(a) - a * a / 2 - (k / 2 - 1) * log(2) - lgamma(k / 2)


def wishart(x, p, inverse=False):
    k, l, n = square(x), square(p[1:]), 3
    lower, of = (k, l) if inverse else (l, k)
    columns = [solve(lower, [of[i][j] for i in range(n)]) for j in range(n)]
    m = [[columns[j][i] for j in range(n)] for i in range(n)]
    out = sum(-m[i][j] ** 2 / 2 - root2pi for i in range(n) for j in range(i))
    for i in range(1, n + 1):
        d = m[i - 1][i - 1]
        out += log_chi(d, p[0] - n + i if inverse else p[0] - i + 1) - i * log(l[i - 1][i - 1])
        out += (n + 1) * log(d) if inverse else 0
    return out


def centred(y):
    m = sum(y) / len(y)
    return [v - m for v in y]


def zero_sum(y, p):
    n = len(y)
    return -sum((v / p[0]) ** 2 for v in centred(y)) / 2 - (n - 1) * (log(p[0]) + root2pi)


def walk(x, p):
    before = [mpf(0)] + list(x[:-1])
    return sum(one.NORMAL(b, a, p[0]) for a, b in zip(before, x))


def log_sum(terms):
    top = max(terms)
    return top + log(sum(exp(t - top) for t in terms))


GAMMA, WEIBULL = one.FAMILIES["Gamma"]["logp"], one.FAMILIES["Weibull"]["logp"]
DESIGN = [[mpf(v) for v in row] for row in ([1, 0.5], [-0.25, 2], [3, -1], [0.125, 0.75])]


def linear(w, b):
    return [sum(a * c for a, c in zip(row, w)) + b for row in DESIGN]


def mixture(x, p):
    w, x = sum(p[:2]), x[0]
    second = log(p[1] / w) + GAMMA(x, p[4], p[5]) if x > 0 else -mp.inf
    return log_sum([log(p[0] / w) + one.NORMAL(x, p[2], p[3]), second])


def mixture_moments(p):
    w = [p[0] / (p[0] + p[1]), p[1] / (p[0] + p[1])]
    m, v = (p[2], p[4] / p[5]), (p[3] ** 2, p[4] / p[5] ** 2)
    mean = sum(a * b for a, b in zip(w, m))
    return [mean], [sum(a * (c + (b - mean) ** 2) for a, b, c in zip(w, m, v))]


# Truncated: the parameters of the base, then the ends as quantiles of it by the first four digits.
def truncated(name, least=-mp.inf, most=mp.inf):
    fam = one.FAMILIES[name]
    tails = functools.lru_cache(10000)(fam["tails"])

    def mass(low, high, p):
        a, b = tails(low, *p), tails(high, *p)
        return b[0] - a[0] if b[0] < 0.5 else a[1] - b[1]

    def logp(x, p):
        *base, low, high = p
        return fam["logp"](x[0], *base) - log(mass(low, high, base))

    def cdf(x, p):
        *base, low, high = p
        return mass(low, x[0], base) / mass(low, high, base)

    def settings(rng, far):
        rng = random.Random(rng.random())
        base = one.settings(rng, fam["kinds"])[(3, 17, 12)[far] + rng.randrange(3)]
        base = [v if k == "r" else min(max(v, least), most) for k, v in zip(fam["kinds"], base)]
        z = [(-0.8, 0.8), (-3, -2), (2, 5), (-0.1, 0.1)][rng.randrange(4)]
        low, high = (float("%.5g" % fam["at"](base, mpf(v))) for v in z)
        if name == "Pareto":
            low = max(low, float("%.7g" % (base[0] * 1.00001)))
        return base + [low, high if high > low else low + abs(low) + 1]

    def points(rng, p):
        return [p[-2] + (p[-1] - p[-2]) * rng.random()]

    return row(settings, points, logp, cdf=cdf)


def truncated_counts(name, low, high, settings):
    logp = one.FAMILIES[name]["logp"]
    total = functools.lru_cache(10000)(lambda *p: log_sum([logp(mpf(k), *p) for k in range(low, high + 1)]))
    return row(settings, lambda rng, p: [rng.randint(low, high)], lambda x, p: logp(x[0], *p) - total(*p), counts=True)


def categorical(x, p):
    """Logits of three categories in the rows of DESIGN."""
    out = mpf(0)
    for k, f in zip(x, DESIGN):
        l = [f[0] * p[j] + f[1] * p[3 + j] + p[6 + j] for j in range(3)]
        out += l[int(k)] - log_sum(l)
    return out


def chance(rng, far):
    q = (rng.uniform(0.05, 0.95), 10 ** rng.uniform(-6, -1), 10 ** rng.uniform(-12, -6))[far]
    return rng.choice((q, 1 - q))


def row(settings, points, logp, counts=False, mean=None, variance=None, cdf=None):
    return dict(settings=settings, points=points, logp=logp, counts=counts, mean=mean, variance=variance, cdf=cdf)


def reals(n):
    return lambda rng, p: [rng.gauss(0, 1) for _ in range(n)]


def near3(loc, l):
    """Points by a factor of the covariance."""
    def at(rng, p):
        z = [rng.gauss(0, 1.5) for _ in range(3)]
        return [a + float(sum(c * b for c, b in zip(r, z))) for a, r in zip(p[loc:loc + 3], square(p[l:]))]
    return at


def split(rng, p):
    n, w = rng.choice((0, 1, 7, 1000, 10**6)), [float(v) for v in p]
    a = round(n * w[0] / sum(w))
    b = min(round(n * w[1] / sum(w)), n - a)
    return [a, b, n - a - b]


def scaled3(rng, p, s):
    """L (s I + a random lower triangle)."""
    l, e = square(p[1:]), square([rng.uniform(0.3, 1.5) if i in (0, 2, 5) else rng.gauss(0, 0.3) for i in range(6)])
    k = [[sum(l[i][m] * e[m][j] for m in range(3)) * s for j in range(3)] for i in range(3)]
    return [k[i][j] for i in range(3) for j in range(i + 1)]


DIRICHLET_MEAN = lambda a: [b / sum(a) for b in a]
DIRICHLET_VARIANCE = lambda a: [b / sum(a) * (1 - b / sum(a)) / (sum(a) + 1) for b in a]
COV = lambda l: [sum(v * v for v in r) for r in square(l)]

FAMILIES = {
    "Dirichlet": row(several(size, 3), lambda rng, p: [rng.gauss(0, 2) for _ in p], dirichlet,
                     mean=DIRICHLET_MEAN, variance=DIRICHLET_VARIANCE),
    "Multinomial": row(several(size, 3), split, multinomial, counts=True),
    "MultinomialLogits": row(several(real, 3), lambda rng, p: split(rng, [exp(v - max(p)) for v in p]),
                             lambda x, p: multinomial(x, [exp(v) for v in p]), counts=True),
    "DirichletMultinomial": row(several(size, 3), split, dirichlet_multinomial, counts=True),
    "MultivariateNormal": row(joined(several(real, 3), mild), near3(0, 3),
                              lambda x, p: normal3(x, p[:3], square(p[3:])),
                              mean=lambda p: p[:3], variance=lambda p: COV(p[3:])),
    "MultivariateNormalPrecision": row(joined(several(real, 3), mild), near3(0, 3),
                                       lambda x, p: precision3(x, p[:3], square(p[3:])), mean=lambda p: p[:3]),
    "MultivariateNormalCholesky": row(joined(several(real, 3), tril), near3(0, 3),
                                      lambda x, p: normal3(x, p[:3], square(p[3:])),
                                      mean=lambda p: p[:3], variance=lambda p: COV(p[3:])),
    "MultivariateStudentT": row(joined(several(size, 1), several(real, 3), tril), near3(1, 4), student3),
    "LowRankMultivariateNormal": row(joined(several(real, 3), several(real, 6), several(size, 3)),
                                     lambda rng, p: [a + rng.gauss(0, 1) * d**0.5 for a, d in zip(p, p[9:])], low_rank,
                                     mean=lambda p: p[:3],
                                     variance=lambda p: [p[3 + 2 * i]**2 + p[4 + 2 * i]**2 + p[9 + i] for i in range(3)]),
    "LKJCholesky": row(several(size, 1), reals(3), lkj),
    "WishartCholesky": row(joined(lambda rng, far: [2 + size(rng, min(far, 1))], tril),
                           lambda rng, p: scaled3(rng, p, p[0] ** 0.5), wishart),
    "InverseWishartCholesky": row(joined(lambda rng, far: [2 + size(rng, min(far, 1))], tril),
                                  lambda rng, p: scaled3(rng, p, p[0] ** -0.5), lambda x, p: wishart(x, p, True)),
    "ZeroSumNormal": row(several(size, 1), lambda rng, p: [p[0] * rng.gauss(0, 1) for _ in range(4)], zero_sum,
                         mean=lambda p: [mpf(0)] * 4, variance=lambda p: [p[0] ** 2 * 3 / 4] * 4),
    "GaussianRandomWalk": row(several(size, 1), lambda rng, p: [p[0] * rng.gauss(0, 2) for _ in range(4)], walk,
                              mean=lambda p: [mpf(0)] * 4, variance=lambda p: [k * p[0] ** 2 for k in (1, 2, 3, 4)]),
    "NormalGLM": row(joined(several(real, 3), several(size, 1)), reals(4), lambda x, p: sum(
        one.NORMAL(a, m, p[3]) for a, m in zip(x, linear(p[:2], p[2])))),
    "BernoulliLogitGLM": row(several(real, 3), lambda rng, p: [rng.randrange(2) for _ in range(4)], lambda x, p: sum(
        one.log_sigmoid(l if k else -l) for k, l in zip(x, linear(p[:2], p[2]))), counts=True),
    "PoissonLogGLM": row(several(lambda rng, far: max(min(real(rng, far), 3), -3), 3),
                         lambda rng, p: [rng.randrange(9) for _ in range(4)], lambda x, p: sum(
        one.poisson(k, exp(l)) for k, l in zip(x, linear(p[:2], p[2]))), counts=True),
    "Independent": row(joined(several(real, 3), several(size, 3)),
                       lambda rng, p: [a + s * rng.gauss(0, 2) for a, s in zip(p, p[3:])],
                       lambda x, p: sum(one.NORMAL(a, m, s) for a, m, s in zip(x, p, p[3:])),
                       mean=lambda p: p[:3], variance=lambda p: [s * s for s in p[3:]]),
    "Transformed": row(joined(several(real, 1), several(lambda rng, far: size(rng, min(far, 1)), 1)),
                       lambda rng, p: [float(3 + exp(rng.gauss(0, 2)))],
                       lambda x, p: one.NORMAL(log(x[0] - 3), p[0], p[1]) - log(x[0] - 3)),
    "Mixture": row(joined(several(size, 2), several(lambda rng, far: real(rng, 0), 1), several(size, 3)),
                   lambda rng, p: [rng.choice((p[2] + p[3] * rng.gauss(0, 1), p[4] / p[5] * exp(rng.gauss(0, 1))))],
                   mixture, mean=lambda p: mixture_moments(p)[0], variance=lambda p: mixture_moments(p)[1]),
    "MixtureSameFamily": row(joined(several(size, 2), several(real, 2), several(size, 2)),
                             lambda rng, p: [(p[2], p[3])[rng.randrange(2)] + p[4] * rng.gauss(0, 1)],
                             lambda x, p: log_sum([log(w / (p[0] + p[1])) + one.NORMAL(x[0], m, s)
                                                   for w, m, s in zip(p, p[2:], p[4:])])),
    "CategoricalLogitGLM": row(several(real, 9), lambda rng, p: [rng.randrange(3) for _ in range(4)], categorical,
                               counts=True),
    "TruncatedPoisson": truncated_counts("Poisson", 2, 9, several(lambda rng, far: size(rng, min(far, 1)), 1)),
    "TruncatedGeometric": truncated_counts("Geometric", 1, 12, several(chance, 1)),
    "TruncatedNegativeBinomial": truncated_counts("NegativeBinomial", 2, 9, several(
        lambda rng, far: size(rng, min(far, 1)), 2)),
    **{"Truncated" + name: truncated(name) for name in (
        "LogNormal", "Cauchy", "HalfCauchy", "Laplace", "Logistic", "Exponential", "Pareto", "Gumbel",
        "InverseGaussian")},
    **{"Truncated" + name: truncated(name, least, 1000) for name, least in (
        ("StudentT", 1e-2), ("Weibull", 1e-2), ("Gamma", 1e-3), ("InverseGamma", 1e-3), ("Chi2", 1e-3))},
}


def moved(f, args, which):
    """The sum of |argument · derivative| for each of the numbers f gives."""
    base = f(args)
    out = [mpf(0)] * len(base)
    for i in which:
        out = [o + abs(a - b) / NEAR for o, a, b in zip(out, f(nudged(args, NEAR, i)), base)]
    return base, out


def nudged(args, step, *which):
    """Arguments of which some are further by a part of them."""
    out = list(args)
    for i in which:
        out[i] += step * (abs(args[i]) or 1)
    return out


def gradient(f, args, wanted):
    """Derivatives, and for each the sum of |argument · second derivative|."""
    size = lambda i: abs(args[i]) or 1
    first = [(f(nudged(args, STEP, i)) - f(nudged(args, -STEP, i))) / (2 * STEP * size(i)) for i in wanted]
    base, near = f(args), {i: f(nudged(args, NEAR, i)) for i in wanted}
    moves = dict.fromkeys(wanted, mpf(0))
    for i in wanted:
        for j in wanted:
            if i <= j:
                mixed = abs(f(nudged(args, NEAR, i, j)) - near[i] - near[j] + base) / NEAR**2 / size(i) / size(j)
                mixed = mixed if mixed > mpf(10) ** -25 else mpf(0)
                moves[i] += mixed * abs(args[j])
                moves[j] += mixed * abs(args[i]) if i != j else 0
    return [g if abs(g) > mpf(10) ** -25 else mpf(0) for g in first], [moves[i] for i in wanted]


def text(v, moves):
    """Figures of eleven digits, and their moves to one."""
    value = mp.nstr(v, 11, min_fixed=0, max_fixed=0) if mp.isfinite(v) else one.text(v)
    return value + ("~" + mp.nstr(moves, 1, min_fixed=0, max_fixed=0).replace(".0e", "e") if moves else "")


def figures(fam, x, p, first):
    n, args = len(x), [mpf(v) for v in list(x) + list(p)]
    f = lambda a: fam["logp"](a[:n], a[n:])
    wanted = list(range(n if fam["counts"] else 0, len(args)))
    value, c = moved(lambda a: [f(a)], args, wanted)
    out = [text(value[0], c[0])]
    grads, c = gradient(f, args, wanted)
    out += ["-"] * (len(args) - len(wanted)) + [text(g, v) for g, v in zip(grads, c)]
    for name in ("mean", "variance"):
        if fam[name] and first:
            m, c = moved(lambda a: fam[name](a), args[n:], range(len(p)))
            out += [text(g, v) for g, v in zip(m, c)]
        else:
            out += ["-"] * n
    if fam["cdf"]:
        v, c = moved(lambda a: [fam["cdf"](a[:n], a[n:])], args, range(len(args)))
        return out + [text(v[0], c[0])]
    return out + ["-"]


def lines_of(name):
    fam, rng, lines = FAMILIES[name], random.Random(zlib.crc32(name.encode())), []
    for i in range(SETTINGS):
        p = [float(v) for v in fam["settings"](rng, 0 if i < 15 else 1 if i < 25 else 2)]
        for k in range(POINTS):
            x = [float("%.7g" % v) for v in fam["points"](rng, p)]
            if fam["cdf"] and not p[-2] < x[0] < p[-1]:
                continue
            numbers = [repr(v) for v in x + p]
            lines.append(",".join([name, str(len(x)), str(len(p))] + numbers + figures(fam, x, p, k == 0)))
    print(name, len(lines), flush=True)
    return lines


def main():
    with multiprocessing.Pool() as pool:
        lines = [line for part in pool.map(lines_of, FAMILIES, 1) for line in part]
    with open("vectors.csv.gz", "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as out:
        out.write(("\n".join(lines) + "\n").encode())


if __name__ == "__main__":
    main()
