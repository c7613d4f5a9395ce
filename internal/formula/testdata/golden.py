"""Writes golden.json: design matrices of random formulas by patsy, for the tests of package formula.

    python3 golden.py > golden.json

A formula is written as this package reads it and as patsy does. Names of columns are those of this package. Where all
levels of a factor are there, patsy codes Sum, Helmert and Poly in ways of its own; here, as in R, that is an indicator
of each level.
"""
import json
import random

import numpy as np
import pandas as pd
import patsy

random.seed(20)
rng = np.random.default_rng(21)
N = 30
table = {
    "x": rng.normal(size=N).round(3).tolist(),
    "z": rng.uniform(0.5, 4, size=N).round(3).tolist(),
    "w": rng.integers(1, 9, size=N).astype(float).tolist(),
    "a": [["a1", "a2"][i % 2] for i in range(N)],
    "b": [["b1", "b2", "b3"][i // 2 % 3] for i in range(N)],
    "c": [["low", "mid", "top"][i // 6 % 3] for i in range(N)],
}


class Full:
    """A contrast that is an indicator of each level, where all are there."""

    def __init__(self, inner):
        self.inner = inner

    def code_with_intercept(self, levels):
        return patsy.ContrastMatrix(np.eye(len(levels)), ["[%s]" % l for l in levels])

    def code_without_intercept(self, levels):
        return self.inner.code_without_intercept(levels)


class R_Helmert:
    def code_without_intercept(self, levels):
        n = len(levels)
        m = np.zeros((n, n - 1))
        for j in range(n - 1):
            m[: j + 1, j] = -1
            m[j + 1, j] = j + 1
        return patsy.ContrastMatrix(m, ["[H.%s]" % l for l in levels[1:]])


class R_Poly:
    def code_without_intercept(self, levels):
        n = len(levels)
        q, r = np.linalg.qr(np.vander(np.arange(n) - (n - 1) / 2, n, increasing=True))
        m = (q * np.sign(np.diag(r)))[:, 1:]
        return patsy.ContrastMatrix(m, ["[^%d]" % (j + 1) for j in range(n - 1)])


Sum, Helmert, Poly = Full(patsy.Sum()), Full(R_Helmert()), Full(R_Poly())
B3 = Full(patsy.Treatment("b3"))


def zscale(x):
    x = np.asarray(x)
    return (x - x.mean()) / x.std(ddof=1)


def center1(x):
    return np.asarray(x) - np.mean(x)


def poly(x, k):
    x = np.asarray(x)
    q, r = np.linalg.qr(np.vander(x - x.mean(), k + 1, increasing=True))
    return (q * np.sign(np.diag(r)))[:, 1:]


def rawpoly(x, k):
    return np.stack([np.asarray(x) ** (j + 1) for j in range(k)], axis=1)


# as this package writes a variable, and as patsy does
NUMBERS = [("x", "x"), ("z", "z"), ("w", "w"), ("log(z)", "np.log(z)"), ("I(x^2)", "I(x ** 2)"),
           ("scale(x)", "zscale(x)"), ("center(z)", "center1(z)"), ("poly(x, 2)", "poly(x, 2)"),
           ("poly(z, 3, raw = TRUE)", "rawpoly(z, 3)"), ("bs(z, df = 5)", "bs(z, df=5)"),
           ("bs(x, knots = 0, degree = 2)", "bs(x, knots=[0], degree=2)"), ("sqrt(abs(x))", "np.sqrt(np.abs(x))"),
           ("exp(x / 2)", "np.exp(x / 2)"), ("pow(z, 1.5)", "I(z ** 1.5)"), ("I(x * z - 1)", "I(x * z - 1)")]
FACTORS = [("a", "a"), ("b", "b"), ("c", "c"), ("a", "a"), ("b", "b"), ("C(b, Sum)", "C(b, Sum)"),
           ("C(c, Helmert)", "C(c, Helmert)"), ("C(c, Poly)", "C(c, Poly)"), ('C(b, Treatment("b3"))', "C(b, B3)"),
           ("factor(w)", "C(w)")]


def variables():
    """Few variables, so that terms share them; at most one with many levels."""
    chosen = random.sample(NUMBERS, random.randint(0, 2)) + random.sample(FACTORS, random.randint(1, 3))
    seen, out = set(), []
    for v in chosen:
        if v[0] not in seen:
            seen.add(v[0])
            out.append(v)
    return out


def tree(vs, depth):
    if depth == 0 or random.random() < 0.2:
        return random.choice(vs)
    op = random.choice(["+", "+", "+", ":", ":", "*", "*", "/", "-", "^"])
    left = tree(vs, depth - 1)
    if op == "^":
        return ("(%s)^2" % left[0], "(%s)**2" % left[1])
    right = tree(vs, depth - 1)
    return ("(%s %s %s)" % (left[0], op, right[0]), "(%s %s %s)" % (left[1], op, right[1]))


def name(column, ours):
    """The name of a column of patsy in this package."""
    parts = []
    for part in column.split(":"):
        for mine, theirs in ours:
            if part == theirs or part.startswith(theirs + "["):
                rest = part[len(theirs):].replace("[T.", "[")
                if mine.startswith(("poly", "bs")):
                    rest = str(int(rest[1:-1]) + 1)
                if mine == "factor(w)":
                    rest = rest.replace(".0]", "]")
                parts.append(mine + rest)
                break
        else:
            raise ValueError(column)
    return ":".join(parts)


def main():
    frame = pd.DataFrame(table)
    pool, where, cases, texts = [], {}, [], set()
    while len(cases) < 200:
        vs = variables()
        ours, theirs = tree(vs, random.randint(1, 3))
        zero = random.random() < 0.35
        if zero:
            ours, theirs = "0 + " + ours, "0 + " + theirs
        try:
            m = patsy.dmatrix(theirs, frame)
        except patsy.PatsyError:
            continue
        if ours in texts or m.shape[1] > 40 or m.shape[1] < 2:
            continue
        texts.add(ours)
        names, places = [], []
        order = sorted(set(vs), key=lambda v: -len(v[1]))
        for j, column in enumerate(m.design_info.column_names):
            if column == "Intercept":
                continue
            values = tuple(float(v) for v in np.asarray(m)[:, j])
            if values not in where:
                where[values] = len(pool)
                pool.append(values)
            names.append(name(column, order))
            places.append(where[values])
        cases.append({"formula": "~ " + ours, "intercept": "Intercept" in m.design_info.column_names, "names": names,
                      "columns": places})
    short = [[int(v) if v == int(v) else v for v in c] for c in pool]
    print(json.dumps({"table": table, "pool": short, "cases": cases}, separators=(",", ":")))


main()
