"""NumPyro and BlackJAX."""
import os
import time

devices = 4  # for as many chains at a time
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}" + (
    " --xla_cpu_multi_thread_eigen=false" if os.environ.get("OMP_NUM_THREADS") == "1" else "")

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from blackjax.sgmcmc import diffusions
from numpyro.infer import MCMC, NUTS
from numpyro.infer.util import initialize_model
from jax_scale import scale
from serve import fastest, serve, write

jax.config.update("jax_enable_x64", True)


def eight_schools(J, y, sigma):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("schools", J):
        trans = numpyro.sample("theta_trans", dist.Normal(0, 1))
        theta = numpyro.deterministic("theta", mu + tau * trans)
        numpyro.sample("y", dist.Normal(theta, sigma), obs=y)


def logistic(N, D, X, y):
    w = numpyro.sample("w", dist.Normal(0, 1).expand([D]).to_event(1))
    numpyro.sample("y", dist.Bernoulli(logits=X @ w), obs=y)


models = {"eight schools": eight_schools, "Pima": logistic}


def arrays(data):
    return {k: np.asarray(v, dtype=float) if isinstance(v, list) else v for k, v in data.items()}


class Jax:
    def compile(self, model, data):
        """Nothing is compiled before a sampler's shapes are known; sample says what it took."""
        self.model, self.data, self.made = models[model], arrays(data), {}
        return {"seconds": 0}

    def sample(self, sampler, **options):
        return getattr(self, sampler)(**options)

    def numpyro(self, chains, warmup, draws, seed, accept, file):
        def run(key):
            start = time.perf_counter()
            mcmc.run(key, **self.data)
            out = mcmc.get_samples(group_by_chain=True)
            jax.block_until_ready(out)
            return time.perf_counter() - start, out

        key = ("numpyro", chains, warmup, draws)
        compiling = 0
        if key not in self.made:
            mcmc = MCMC(NUTS(self.model, target_accept_prob=accept), num_warmup=warmup, num_samples=draws,
                        num_chains=chains, chain_method="parallel" if chains <= devices else "vectorized",
                        progress_bar=False)
            first, _ = run(jax.random.PRNGKey(seed))
            self.made[key] = mcmc
            seconds, out = run(jax.random.PRNGKey(seed))
            compiling = max(first - seconds, 0)
        else:
            mcmc = self.made[key]
            seconds, out = run(jax.random.PRNGKey(seed))
        return {**write(file, seconds, out), "compiling": compiling}

    def potential(self):
        info = initialize_model(jax.random.PRNGKey(0), self.model, model_kwargs=self.data, dynamic_args=False)
        return info.param_info.z, info.potential_fn, info.postprocess_fn

    def blackjax(self, chains, warmup, draws, seed, accept, file):
        start, potential, constrain = self.potential()

        def density(x):
            return -potential(x)

        def chain(key):
            key, adapt, place = jax.random.split(key, 3)
            place = jax.random.split(place, len(start))
            at = {n: jax.random.uniform(k, jnp.shape(v), minval=-2.0, maxval=2.0)
                  for k, (n, v) in zip(place, start.items())}
            window = blackjax.window_adaptation(blackjax.nuts, density, target_acceptance_rate=accept)
            (state, parameters), _ = window.run(adapt, at, num_steps=warmup)
            step = blackjax.nuts(density, **parameters).step

            def one(state, key):
                state, _ = step(key, state)
                return state, constrain(state.position)

            return jax.lax.scan(one, state, jax.random.split(key, draws))[1]

        key, keys = ("blackjax", chains, warmup, draws), jax.random.split(jax.random.PRNGKey(seed), chains)
        compiling = 0
        if key not in self.made:
            began = time.perf_counter()
            self.made[key] = jax.jit(jax.vmap(chain)).lower(keys).compile()
            compiling = time.perf_counter() - began
        began = time.perf_counter()
        out = jax.block_until_ready(self.made[key](keys))
        return {**write(file, time.perf_counter() - began, out), "compiling": compiling}

    def gradient(self, seconds, n=1000):
        start, potential, _ = self.potential()
        gradient = jax.value_and_grad(potential)

        @jax.jit
        def loop(x):
            return jax.lax.fori_loop(
                0, n, lambda _, x: jax.tree.map(lambda a, b: a - 1e-12 * b, x, gradient(x)[1]), x)

        x = jax.tree.map(lambda v: jnp.full(jnp.shape(v), 0.1), start)
        jax.block_until_ready(loop(x))
        return {"us": 1e6 / n * fastest(lambda: jax.block_until_ready(loop(x)), seconds)}


def sghmc(sampler, target, chains, batch, lr, alpha, seconds, data=None, n=None):
    """Microseconds of a step of all chains: BlackJAX's integrator in a loop that is compiled whole."""
    n = n or {"logistic": 2000, "mlp": 20}[target]
    if target == "logistic":
        X, y = np.asarray(data["X"]), np.asarray(data["y"])
        N, start = len(X), {"w": jnp.zeros(X.shape[1])}
        X, y = shuffled(X, 2.0 * y - 1, batch)

        def density(p, b):
            logits = b[0] @ p["w"] * b[1]
            return N / len(b[1]) * jax.nn.log_sigmoid(logits).sum() - 0.5 * (p["w"] ** 2).sum()
    else:
        rng = np.random.default_rng(1)
        N = 60000
        X = jnp.asarray(rng.random((8, batch, 784)), jnp.float32)
        y = jnp.asarray(rng.integers(0, 10, (8, batch)))
        start = {f"{k}{i}": jnp.asarray(0.05 * rng.standard_normal(shape), jnp.float32)
                 for i, (a, b) in enumerate([(784, 200), (200, 200), (200, 10)])
                 for k, shape in (("w", (a, b)), ("b", (b,)))}

        def density(p, b):
            h = jax.nn.relu(jax.nn.relu(b[0] @ p["w0"] + p["b0"]) @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]
            fit = jnp.take_along_axis(jax.nn.log_softmax(h), b[1][:, None], 1).mean()
            return fit - 0.5 / N * sum((v ** 2).sum() for v in p.values())

    gradient, step = jax.grad(density), diffusions.sghmc(alpha)
    temperature = 1.0 if target == "logistic" else 1.0 / N

    def run(key):
        def one(carry, key):
            p, m, i = carry
            b = jax.tree.map(lambda v: v[i % len(v) if len(v) > 1 else 0], (X, y))
            p, m = step(key, p, m, gradient(p, b), lr, temperature)
            p, m = jax.tree.map(lambda v, s: v.astype(s.dtype), (p, m), (start, start))
            return (p, m, i + 1), None

        zero = jax.tree.map(jnp.zeros_like, start)
        return jax.lax.scan(one, (start, zero, 0), jax.random.split(key, n))[0][0]

    key = jax.random.PRNGKey(1)
    if chains > 1:  # which have the same batches
        run, key = jax.vmap(run), jax.random.split(key, chains)
    began = time.perf_counter()
    run = jax.jit(run).lower(key).compile()
    compiling = time.perf_counter() - began
    out = run(key)
    if not all(bool(jnp.isfinite(v).all()) for v in out.values()):
        raise RuntimeError("a parameter is not finite")
    return {"us": 1e6 / n * fastest(lambda: jax.block_until_ready(run(key)), seconds), "compiling": compiling}


def shuffled(X, y, batch):
    """The data in batches, [number, batch, ...]; 0 for all data in one."""
    batch = batch or len(X)
    order, n = np.random.default_rng(1).permutation(len(X)), len(X) // batch
    return (jnp.asarray(v[order][:n * batch].reshape(n, batch, *v.shape[1:])) for v in (X, y))


if __name__ == "__main__":
    j = Jax()
    serve(compile=j.compile, sample=j.sample, gradient=j.gradient, sghmc=sghmc, scale=scale)
