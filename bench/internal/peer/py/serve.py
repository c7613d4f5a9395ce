"""What the peers have in common: requests and answers are lines of JSON; draws are files of float64."""
import json
import os
import signal
import sys
import time
import traceback

import numpy as np


def serve(**operations):
    os.setpgrp()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print goes to the error stream
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = operations[request.pop("op")](**request)
        except Exception as e:
            traceback.print_exc()
            answer = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps(answer), file=answers, flush=True)
    os.killpg(os.getpgrp(), signal.SIGKILL)  # with the workers that PyStan leaves


def write(file, seconds, draws):
    """Writes named draws, each of shape [chains, draws, ...]; elements are named as Stan names them."""
    names, columns = [], []
    for name, v in draws.items():
        v = np.asarray(v, dtype=np.float64)
        for index in np.ndindex(*v.shape[2:]):
            names.append(name + (f"[{','.join(str(i + 1) for i in index)}]" if index else ""))
            columns.append(v[(slice(None), slice(None)) + index])
    all = np.stack(columns, axis=-1)
    all.tofile(file)
    return {"seconds": seconds, "names": names, "chains": all.shape[0], "draws": all.shape[1]}


def fastest(call, seconds, clock=time.perf_counter):
    """The least time of a call in segments that fill the seconds."""
    best, end = float("inf"), time.perf_counter() + seconds
    while True:
        start = clock()
        call()
        best = min(best, clock() - start)
        if time.perf_counter() > end:
            return best
