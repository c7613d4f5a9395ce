"""Pyro and posteriors, each with one thread."""
import time
import warnings

warnings.filterwarnings("ignore")
import numpy as np
import posteriors
import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS
from pyro.infer.mcmc.util import initialize_model
from pyro.ops.integrator import potential_grad
from serve import fastest, serve, write

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)


def eight_schools(J, y, sigma):
    mu = pyro.sample("mu", dist.Normal(0.0, 5.0))
    tau = pyro.sample("tau", dist.HalfCauchy(torch.tensor(5.0)))
    with pyro.plate("schools", J):
        trans = pyro.sample("theta_trans", dist.Normal(0.0, 1.0))
        pyro.sample("y", dist.Normal(mu + tau * trans, sigma), obs=y)


def logistic(N, D, X, y):
    w = pyro.sample("w", dist.Normal(torch.zeros(D), 1.0).to_event(1))
    with pyro.plate("data", N):
        pyro.sample("y", dist.Bernoulli(logits=X @ w), obs=y)


models = {"eight schools": eight_schools, "Pima": logistic}


class Torch:
    def compile(self, model, data):
        self.name, self.model = model, models[model]
        self.data = {k: torch.tensor(v, dtype=torch.float64) if isinstance(v, list) else v for k, v in data.items()}
        return {"seconds": 0}

    def sample(self, sampler, chains, warmup, draws, seed, accept, file):
        pyro.set_rng_seed(seed)
        mcmc = MCMC(NUTS(self.model, target_accept_prob=accept), num_samples=draws, warmup_steps=warmup,
                    num_chains=chains, disable_progbar=True)
        start = time.perf_counter()
        mcmc.run(**self.data)
        seconds = time.perf_counter() - start
        out = {k: v.numpy() for k, v in mcmc.get_samples(group_by_chain=True).items()}
        if self.name == "eight schools":
            out["theta"] = out["mu"][..., None] + out["tau"][..., None] * out["theta_trans"]
        return write(file, seconds, out)

    def gradient(self, seconds):
        start, potential, _, _ = initialize_model(self.model, model_kwargs=self.data)
        return {"us": 1e6 * fastest(lambda: potential_grad(potential, start), seconds)}


def sghmc(sampler, target, chains, batch, lr, alpha, seconds, data=None):
    """Microseconds of a step of all chains of posteriors, in a loop of Python as its users write it."""
    n = {"logistic": 50, "mlp": 5}[target]
    if target == "logistic":
        X, y = torch.tensor(data["X"]), 2.0 * torch.tensor(data["y"]) - 1
        N, start = len(X), {"w": torch.zeros(X.shape[1])}
        order, size = torch.randperm(N), batch or N
        batches = [(X[order[i:i + size]], y[order[i:i + size]]) for i in range(0, N, size)]

        def density(p, b):
            logits = b[0] @ p["w"] * b[1]
            fit = torch.nn.functional.logsigmoid(logits).sum() * (N / len(b[1]))
            return fit - 0.5 * p["w"].square().sum(), torch.empty(0)
    else:
        N = 60000
        batches = [(torch.rand(batch, 784, dtype=torch.float32), torch.randint(10, (batch,))) for _ in range(8)]
        start = {f"{k}{i}": 0.05 * torch.randn(shape, dtype=torch.float32)
                 for i, (a, b) in enumerate([(784, 200), (200, 200), (200, 10)])
                 for k, shape in (("w", (b, a)), ("b", (b,)))}

        def density(p, b):
            f = torch.nn.functional
            h = f.linear(b[0], p["w0"], p["b0"]).relu()
            h = f.linear(f.linear(h, p["w1"], p["b1"]).relu(), p["w2"], p["b2"])
            prior = sum(v.square().sum() for v in p.values())
            return -f.cross_entropy(h, b[1]) - 0.5 / N * prior, torch.empty(0)

    temperature = 1.0 if target == "logistic" else 1.0 / N
    transform = posteriors.sgmcmc.sghmc.build(density, lr=lr, alpha=alpha, temperature=temperature)
    if chains > 1:
        start = {k: v.expand(chains, *v.shape).clone() for k, v in start.items()}
        state = start, {k: torch.randn_like(v) for k, v in start.items()}

        def one(params, momenta, b):
            new, _ = transform.update(posteriors.sgmcmc.sghmc.SGHMCState(params, momenta), b)
            return new.params, new.momenta

        several = torch.vmap(one, (0, 0, None), randomness="different")  # chains have the same batches

        def update(state, b):
            return several(*state, b)
    else:
        state = transform.init(start)

        def update(state, b):
            return transform.update(state, b, inplace=True)[0]

    def loop():
        nonlocal state
        for i in range(n):
            state = update(state, batches[i % len(batches)])

    loop()
    us = 1e6 / n * fastest(loop, seconds)
    params = state[0] if chains > 1 else state.params
    if not all(bool(v.isfinite().all()) for v in params.values()):
        raise RuntimeError("a parameter is not finite")
    return {"us": us, "compiling": 0}


if __name__ == "__main__":
    t = Torch()
    serve(compile=t.compile, sample=t.sample, gradient=t.gradient, sghmc=sghmc)
