"""Stan: its C++ called directly, through PyStan, and under nutpie's sampler. One compiled model serves all three."""
import asyncio
import ctypes
import json
import os
import pathlib
import resource
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import httpstan
import httpstan.cache
import httpstan.models
import numpy as np
from serve import serve, write

here, package = pathlib.Path(__file__).parent, pathlib.Path(httpstan.__file__).parent
flags = ["-O3", "-std=c++17", "-fPIC", "-w", "-DBOOST_DISABLE_ASSERTS", "-DBOOST_PHOENIX_NO_VARIADIC_EXPRESSION",
         "-DSTAN_THREADS", "-D_REENTRANT", "-D_GLIBCXX_USE_CXX11_ABI=0", f"-I{package}/include"]  # PyStan's own


def bridge():
    """The object that all models are linked with."""
    source = here / "bridge.cpp"
    made = pathlib.Path(os.environ["XDG_CACHE_HOME"]) / "bridge.o"
    if not made.exists() or made.stat().st_mtime < source.stat().st_mtime:
        subprocess.run(["g++", *flags, "-c", str(source), "-o", f"{made}.new"], check=True)
        os.replace(f"{made}.new", made)
    return made


class Stan:
    def compile(self, code, data):
        """Seconds are the compiler's, of one core: the time where nothing else runs."""
        self.code, self.data = code, data
        name = httpstan.models.calculate_model_name(code)
        folder = httpstan.cache.model_directory(name)
        took = folder / "seconds"
        cached = took.exists()
        if not cached:
            folder.mkdir(parents=True, exist_ok=True)
            os.chdir(folder)  # where the object is left
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            asyncio.run(httpstan.models.build_services_extension_module(code))
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            for log in "stderr.log", "stanc.log":  # which PyStan reads
                (folder / log).write_text("")
            took.write_text(str(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
        object = next(folder.glob("build/**/model_*.o"))
        self.library = folder / "build" / "bridged.so"  # PyStan takes the first .so of the folder itself
        made = bridge()
        if not self.library.exists() or self.library.stat().st_mtime < made.stat().st_mtime:
            subprocess.run(["g++", "-shared", str(made), str(object), f"-L{package}/lib", "-ltbb",
                            f"-Wl,-rpath,{package}/lib", "-o", str(self.library)], check=True)
        self.c = c = ctypes.CDLL(str(self.library))
        c.bs_model_construct.restype = ctypes.c_void_p
        c.bs_param_names.restype = ctypes.c_char_p
        c.kelvin_gradients.restype = ctypes.c_double
        error = ctypes.c_char_p()
        self.model = ctypes.c_void_p(c.bs_model_construct(json.dumps(data).encode(), 1, ctypes.byref(error)))
        if not self.model:
            raise RuntimeError(error.value.decode())
        return {"seconds": float(took.read_text()), "cached": cached}

    def sample(self, sampler, **options):
        return getattr(self, sampler)(**options)

    def stan(self, chains, warmup, draws, seed, accept, file):
        c = self.c
        names = c.bs_param_names(self.model, True, False).decode().split(",")
        out = np.empty((chains, draws, len(names)))

        counts = np.empty((chains, 3))  # gradients of the warm-up and of the draws, and divergences of the draws

        def one(chain):
            error = ctypes.c_char_p()
            status = c.kelvin_sample(self.model, seed, chain + 1, warmup, draws, ctypes.c_double(accept),
                                     out[chain].ctypes.data_as(ctypes.c_void_p),
                                     counts[chain].ctypes.data_as(ctypes.c_void_p), ctypes.byref(error))
            if status != 0:
                raise RuntimeError(error.value.decode())

        start = time.perf_counter()
        with ThreadPoolExecutor(min(chains, os.cpu_count())) as pool:
            list(pool.map(one, range(chains)))
        seconds = time.perf_counter() - start
        return counted(counts, write(file, seconds, {bracketed(n): out[:, :, i] for i, n in enumerate(names)}))

    def pystan(self, chains, warmup, draws, seed, accept, file):
        import stan

        posterior = stan.build(self.code, data=self.data, random_seed=seed)
        start = time.perf_counter()
        fit = posterior.sample(num_chains=chains, num_warmup=warmup, num_samples=draws, delta=accept)
        seconds = time.perf_counter() - start
        names = fit.constrained_param_names
        # A frame has the chains of one draw one after the other.
        frame = fit.to_frame()
        return write(file, seconds, {
            bracketed(n): frame[n].to_numpy().reshape(draws, chains).T for n in names})

    def nutpie(self, chains, warmup, draws, seed, accept, file, adaptation="diag"):
        import nutpie
        from nutpie.compile_stan import CompiledStanModel

        model = CompiledStanModel(code=self.code, library=nutpie._lib.StanLibrary(str(self.library)), dims={},
                                  _coords={}, model=None, data=None).with_data(seed=seed, **self.data)
        start = time.perf_counter()
        trace = nutpie.sample(model, draws=draws, tune=warmup, chains=chains, seed=seed, progress_bar=False,
                              save_warmup=True, target_accept=accept, adaptation=adaptation)
        seconds = time.perf_counter() - start
        drawn = trace.sample_stats
        counts = np.stack([trace.warmup_sample_stats["n_steps"].values.sum(axis=1),
                           drawn["n_steps"].values.sum(axis=1), drawn["diverging"].values.sum(axis=1)], 1)
        return counted(counts, write(file, seconds, {n: v.values for n, v in trace.posterior.data_vars.items()}))

    def nutpie_low_rank(self, **options):
        return self.nutpie(adaptation="low_rank", **options)

    def gradient(self, seconds):
        x = 0.1 * np.sin(np.arange(self.c.bs_param_unc_num(self.model)) + 1.0)
        at, best = x.ctypes.data_as(ctypes.c_void_p), float("inf")
        n, end = 100, time.perf_counter() + seconds
        while time.perf_counter() < end:
            took = self.c.kelvin_gradients(self.model, at, ctypes.c_long(n))
            best, n = min(best, took / n), max(10, int(n * 1e-3 / max(took, 1e-6)))
        return {"us": 1e6 * best}


def counted(counts, answer):
    """Adds the gradients and the divergences of all chains."""
    warmup, draws, divergences = counts.sum(axis=0)
    return answer | {"warmup_gradients": float(warmup), "gradients": float(draws), "divergences": float(divergences)}


def bracketed(name):
    head, *index = name.split(".")
    return head + (f"[{','.join(index)}]" if index else "")


if __name__ == "__main__":
    s = Stan()
    serve(compile=s.compile, sample=s.sample, gradient=s.gradient)
