"""Time before a kernel runs: imports, the command line, compilation, the disk cache, a call."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from matrices import sp
from timing import Row, Table, interleaved

import sparsecc as sc
from sparsecc import driver

ROOT = Path(__file__).resolve().parent.parent
SPARSE2 = sc.Spec((None, None), "f64", "CSR")
DENSE1, DENSE2 = sc.Spec((None,)), sc.Spec((None, None))
KERNELS: dict[str, tuple[str, dict[str, Any], str | None, float]] = {
    # name: expression, operands, format of the result, bar in ms
    "SpMV": ("y[i] = A[i,j] * x[j]", {"A": SPARSE2, "x": DENSE1}, None, 50),
    "SpMM": ("C[i,j] = A[i,k] * B[k,j]", {"A": SPARSE2, "B": DENSE2}, None, 50),
    "MTTKRP (CSF)": (
        "M[i,r] = T[i,j,k] * B[j,r] * C[k,r]",
        {"T": sc.Spec((None, None, None), "f64", "CSF"), "B": DENSE2, "C": DENSE2}, None, 50,
    ),
    "CSR + CSR": ("C[i,j] = A[i,j] + B[i,j]", {"A": SPARSE2, "B": SPARSE2}, "CSR", 100),
    "SpGEMM": ("C[i,j] = A[i,k] * B[k,j]", {"A": SPARSE2, "B": SPARSE2}, "CSR", 100),
    "SDDMM": (
        "C[i,j] = A[i,j] * B[i,k] * D[j,k]", {"A": SPARSE2, "B": DENSE2, "D": DENSE2}, "CSR", 100,
    ),
}  # fmt: skip


@contextmanager
def kernel_cache(folder: str) -> Generator[None]:
    """The disk cache in a folder; ``""`` switches it off."""
    before = os.environ.get("SPARSECC_CACHE")
    os.environ["SPARSECC_CACHE"] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ["SPARSECC_CACHE"]
        else:
            os.environ["SPARSECC_CACHE"] = before


def fresh(expr: str, operands: dict[str, Any], out: str | None) -> sc.Kernel:
    """A kernel that this process has not got yet."""
    driver._compile.cache_clear()  # pyright: ignore[reportPrivateUsage]  # a cold start is what is timed
    return sc.compile(expr, out=out, operands=operands)


# -- processes -----------------------------------------------------------------------------------


def child_ms(arguments: Sequence[str], environment: dict[str, str]) -> float:
    """CPU time (user and system) in ms of a Python process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr else "it failed")
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def processes(quick: bool) -> Table:
    """Imports and commands in processes of their own."""
    table = Table("processes", "CPU time of a whole Python process (ms; `python -c pass` included)",
                  "measured")  # fmt: skip
    cli = "import sys; from sparsecc.cli import main; sys.exit(main(sys.argv[1:]))"
    spmv = "y[i] = A[i,j] * x[j]"
    compile_spmv = (
        "import sparsecc as sc; sc.compile('y[i] = A[i,j] * x[j]', "
        "A=sc.Spec((None, None), 'f64', 'CSR'), x=sc.Spec((None,)))"
    )
    with tempfile.TemporaryDirectory() as folder:
        matrix, vector = f"{folder}/A.mtx", f"{folder}/x.npy"
        import_module("scipy.io").mmwrite(matrix, sp.random_array((50, 50), density=0.1, rng=0))
        np.save(vector, np.ones(50))
        run = ["-c", cli, "run", spmv, f"A={matrix}:CSR", f"x={vector}", "-o", f"{folder}/y.npy"]
        cases: list[tuple[str, list[str], float | None, bool]] = [
            ("python -c pass", ["-c", "pass"], None, True),
            ("import sparsecc", ["-c", "import sparsecc"], 150, True),
            ("import sparsecc.api (and NumPy)", ["-c", "import sparsecc.api"], None, True),
            ("import numpy", ["-c", "import numpy"], None, True),
            ("import scipy.sparse", ["-c", "import scipy.sparse"], None, True),
            ("sparsecc --help", ["-c", cli, "--help"], 300, True),
            ("sparsecc run --help", ["-c", cli, "run", "--help"], 300, True),
            ("compile SpMV, nothing cached", ["-c", compile_spmv], None, False),
            ("compile SpMV from the disk cache", ["-c", compile_spmv], None, True),
            ("sparsecc run SpMV, kernel cached", run, 500, True),
        ]
        for case, arguments, bar, cached in cases:
            where = f"{folder}/kernels" if cached else ""
            environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARSECC_CACHE": where}
            try:
                child_ms(arguments, environment)  # fills the cache, and the disk's
                samples = [child_ms(arguments, environment) for _ in range(3 if quick else 7)]
            except RuntimeError as error:
                table.add(Row(case, {}, None, bar, note=f"failed: {error}"))
                continue
            table.add(Row(case, {}, median(samples), bar))
    return table


# -- this process --------------------------------------------------------------------------------


def compilation(quick: bool) -> Table:
    """Compile latency in a warm process, by stage."""
    rounds = 5 if quick else 11
    table = Table("compile", "A new kernel in a warm process (CPU ms of the calling thread; stages"
                  " are wall ms)", "total")  # fmt: skip
    with kernel_cache(""):
        for expr, operands, out, _ in KERNELS.values():
            fresh(expr, operands, out)
        samples: dict[str, list[float]] = {name: [] for name in KERNELS}
        stages: dict[str, list[dict[str, float]]] = {name: [] for name in KERNELS}
        for _ in range(rounds):
            for name, (expr, operands, out, _) in KERNELS.items():
                start = time.thread_time_ns()
                kernel = fresh(expr, operands, out)
                samples[name].append((time.thread_time_ns() - start) / 1e6)
                stages[name].append(kernel.times)
    for name, (_, _, _, bar) in KERNELS.items():
        found = {k: median(times[k] for times in stages[name]) for k in stages[name][0]}
        table.add(Row(name, found, median(samples[name]), bar))
    return table


def from_disk(quick: bool) -> Table:
    """Kernels from the disk cache in a warm process."""
    table = Table("disk-cache", "A kernel from the disk cache in a warm process (CPU ms)", "total")
    with tempfile.TemporaryDirectory() as folder, kernel_cache(folder):
        for expr, operands, out, _ in KERNELS.values():
            fresh(expr, operands, out)
        runs = {name: partial(fresh, e, o, out) for name, (e, o, out, _) in KERNELS.items()}
        for name, total in interleaved(runs, 5 if quick else 15).items():
            table.add(Row(name, {}, total, 2))
    return table


def call_overhead(quick: bool) -> Table:
    """What a call costs beside its kernel: SpMV of 10 x 10."""
    matrix = sp.csr_array(np.eye(10))
    a, x = sc.asarray(matrix), np.ones(10)
    tensor, y = sc.asarray(x), np.empty(10)
    kernel = sc.compile("y[i] = A[i,j] * x[j]", A=a, x=x)
    function, level = kernel.functions["k0"], a.levels[1]
    assert level.positions is not None and level.coordinates is not None
    arrays = {"in0.positions1": level.positions, "in0.coordinates1": level.coordinates,
              "in0.values": a.values, "in1.values": x, "out.values": y}  # fmt: skip
    step = kernel.plan.steps[0]
    roles = getattr(step, "roles", ())
    words = [arrays[r].ctypes.data if r in arrays else 10 for r in roles]
    packed = (ctypes.c_int64 * len(words))(*words)
    where = ctypes.addressof(packed)
    times = interleaved(
        {
            "kernel alone": lambda: function(where),
            "x is an array": lambda: kernel(A=a, x=x),
            "x is an array, out=": lambda: kernel(A=a, x=x, out=y),
            "x is a SparseTensor": lambda: kernel(A=a, x=tensor),
            "evaluate()": lambda: sc.evaluate("y[i] = A[i,j] * x[j]", A=a, x=x),
            "SciPy: A @ x": lambda: matrix @ x,
        },
        11 if quick else 31,
    )
    base = times["kernel alone"]
    table = Table("call", "A call of a compiled kernel, SpMV 10 x 10 (CPU us)", "over the kernel")
    for case, ms in times.items():
        bar = 20.0 if case.startswith("x is") else None
        over = None if case == "kernel alone" else 1e3 * (ms - base)
        table.add(Row(case, {"us": 1e3 * ms}, over, bar, "us"))
    return table
