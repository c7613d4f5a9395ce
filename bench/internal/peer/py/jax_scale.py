"""The models of bench/scale. Data are made up: what an evaluation costs does not depend on them."""
import math
import time

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import init_to_uniform
from numpyro.infer.util import initialize_model
from serve import fastest


def logistic(n, d):
    x, y = normals(1, n, d), jnp.arange(n) % 2

    def model():
        w = numpyro.sample("w", dist.Normal(0, 1).expand([d]).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)
    return model


def slopes(n, k):
    g, x, y = jnp.arange(n) % k, normals(8, n), normals(9, n)

    def model():
        mu = numpyro.sample("mu", dist.Normal(0, 5).expand([2]).to_event(1))
        tau = numpyro.sample("tau", dist.HalfNormal(1).expand([2]).to_event(1))
        a = numpyro.sample("a", dist.Normal(mu[0], tau[0]).expand([k]).to_event(1))
        b = numpyro.sample("b", dist.Normal(mu[1], tau[1]).expand([k]).to_event(1))
        numpyro.sample("y", dist.Normal(a[g] + b[g] * x, numpyro.sample("sigma", dist.HalfNormal(1))), obs=y)
    return model


def items(n, k):
    y = (jnp.arange(n * k) ** 2 % 3 % 2).reshape(n, k)

    def model():
        theta = numpyro.sample("theta", dist.Normal(0, 1).expand([n]).to_event(1))
        a = numpyro.sample("a", dist.LogNormal(0, 0.5).expand([k]).to_event(1))
        b = numpyro.sample("b", dist.Normal(0, 1.5).expand([k]).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=a * (theta[:, None] - b)), obs=y)
    return model


def process(n):
    x, y = 10 * jnp.arange(n) / n, normals(2, n)

    def model():
        scale, length = numpyro.sample("scale", dist.HalfNormal(1)), numpyro.sample("length", dist.LogNormal(0, 1))
        noise = numpyro.sample("noise", dist.HalfNormal(1))
        k = scale ** 2 * jnp.exp(-0.5 * ((x[:, None] - x) / length) ** 2)
        numpyro.sample("y", dist.MultivariateNormal(0, k + noise ** 2 * jnp.eye(n)), obs=y)
    return model


def covariance(n, k):
    y = normals(3, n, k)

    def model():
        mu = numpyro.sample("mu", dist.Normal(0, 5).expand([k]).to_event(1))
        s = numpyro.sample("s", dist.HalfNormal(2).expand([k]).to_event(1))
        lower = numpyro.sample("L", dist.LKJCholesky(k, 2))
        numpyro.sample("y", dist.MultivariateNormal(mu, scale_tril=s[:, None] * lower), obs=y)
    return model


def network(n):
    x, y = normals(4, n, 8), normals(5, n)

    def model():
        def layer(name, x, a, b):
            w = numpyro.sample("w" + name, dist.Normal(0, 1 / math.sqrt(a)).expand([a, b]).to_event(2))
            return x @ w + numpyro.sample("b" + name, dist.Normal(0, 1).expand([b]).to_event(1))
        f = layer("3", jnp.tanh(layer("2", jnp.tanh(layer("1", x, 8, 50)), 50, 50)), 50, 1)[:, 0]
        numpyro.sample("y", dist.Normal(f, numpyro.sample("sigma", dist.HalfNormal(1))), obs=y)
    return model


def kalman(n):
    """A trend with seasons of 4: states are level, slope and three seasons."""
    y = normals(6, n)
    move = np.zeros((5, 5))
    move[0, :2], move[1, 1], move[2, 2:], move[3, 2], move[4, 3] = 1, 1, -1, 1, 1
    see = np.array([1.0, 0, 1, 0, 0])

    def model():
        noise, scale = numpyro.sample("noise", dist.HalfNormal(1)), numpyro.sample("scale", dist.HalfNormal(1))
        moves = jnp.diag(jnp.array([1.0, 0, 1, 0, 0])) * scale ** 2 + jnp.diag(jnp.array([0, 0.01, 0, 0, 0]))

        def step(carry, y):
            mean, cov = carry
            off, gain = y - see @ mean, cov @ see
            var = see @ gain + noise ** 2
            mean, cov = mean + gain * off / var, cov - jnp.outer(gain, gain) / var
            return (move @ mean, move @ cov @ move.T + moves), -0.5 * (jnp.log(2 * jnp.pi * var) + off ** 2 / var)
        numpyro.factor("y", jax.lax.scan(step, (jnp.zeros(5), jnp.eye(5)), y)[1].sum())
    return model


def hmm(n, k):
    y = normals(7, n)

    def model():
        log = jnp.log(numpyro.sample("transition", dist.Dirichlet(jnp.ones((k, k))).to_event(1)))
        mu = numpyro.sample("mu", dist.Normal(0, 3).expand([k]).to_event(1))
        seen = dist.Normal(mu, 1).log_prob(y[:, None])

        def step(at, seen):
            return jax.nn.logsumexp(at[:, None] + log, 0) + seen, None
        last, _ = jax.lax.scan(step, seen[0] - math.log(k), seen[1:])
        numpyro.factor("y", jax.nn.logsumexp(last))
    return model


def normals(seed, *shape):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape))


models = {f.__name__: f for f in (logistic, slopes, items, process, covariance, network, kalman, hmm)}
made = {}


def scale(model, sizes, seconds):
    """Microseconds of a value and gradient, one after the other in a loop that is compiled whole."""
    key = (model, *sizes)
    if key not in made:
        info = initialize_model(jax.random.PRNGKey(0), models[model](*sizes), dynamic_args=False,
                                init_strategy=init_to_uniform(radius=0.1))
        gradient = jax.value_and_grad(info.potential_fn)

        def loop(n, x):
            def one(_, at):
                value, g = gradient(at[1])
                return value, jax.tree.map(lambda a, b: a - 1e-12 * b, at[1], g)
            return jax.lax.fori_loop(0, n, one, (0.0, x))
        began = time.perf_counter()
        run = jax.jit(loop).lower(1, info.param_info.z).compile()
        compiling = time.perf_counter() - began
        once = fastest(lambda: jax.block_until_ready(run(1, info.param_info.z)), 0.1)
        made[key] = run, info.param_info.z, max(1, int(0.02 / once)), compiling
    run, x, n, compiling = made[key]
    us = 1e6 / n * fastest(lambda: jax.block_until_ready(run(n, x)), seconds, time.process_time)
    return {"us": us, "compiling": compiling}
