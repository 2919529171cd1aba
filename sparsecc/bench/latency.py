"""Times around a kernel: a launch, a cold and a cached compilation, tuning."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from statistics import median
from time import perf_counter

from sparsecc import driver
from sparsecc.bench.cells import LINEAR, SPMM, Cell
from sparsecc.bench.ours import compiled, machine_code
from sparsecc.bench.results import Latency
from sparsecc.bench.weights import Matrix, torch_module
from sparsecc.runtime import tile_cache

SMALL = Cell("2:4", LINEAR, 256, 256, 8, "f16", "2:4", "2:4", 0.5)
TYPICAL = Cell("2:4", LINEAR, 4096, 4096, 8, "f16", "2:4", "2:4", 0.5)
GRAPH = Cell("CSR", SPMM, 16384, 16384, 128, "f16", "CSR", "uniform", 0.99)


def launch_overhead(target: str) -> Latency:
    """Host time of a call on a small weight with nothing else running, the device's queue never full."""
    torch = torch_module()
    matrix = Matrix(SMALL, "cuda")
    kernel = compiled(SMALL, target)
    packed = kernel.pack(W=matrix.dense)
    x = matrix.random(SMALL.width, SMALL.columns)
    out = torch.empty(SMALL.width, SMALL.rows, device="cuda", dtype=x.dtype)
    for _ in range(20):
        kernel(X=x, W=packed, out=out)
    samples: list[float] = []
    for _ in range(60):
        torch.cuda.synchronize()
        for _ in range(50):
            start = perf_counter()
            kernel(X=x, W=packed, out=out)
            samples.append((perf_counter() - start) * 1e6)
    samples.sort()
    note = f"{samples[len(samples) // 10]:.1f} to {samples[len(samples) * 9 // 10]:.1f} for 80 %"
    return Latency("a call with out=, on the host", median(samples), "us", 20.0, note)


def compile_cold(target: str) -> Iterator[Latency]:
    """Each kernel in a process of its own: the first that it compiles, then with nothing cached but the compiler
    running, then from the disk after the process has forgotten it."""
    for name, cell in (("2:4 linear", TYPICAL), ("CSR SpMM", GRAPH)):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            first, cold, warm = pool.submit(compile_times, cell, target).result()
        yield Latency(
            f"compile {name}, the first of a process", first, "ms", None, "imports, start of the compiler"
        )  # fmt: skip
        yield Latency(f"compile {name}, nothing cached", cold, "ms", 1500.0, "median of 3")
        yield Latency(f"compile {name}, from the disk cache", warm, "ms", 5.0, "median of 5")


def compile_times(cell: Cell, target: str) -> tuple[float, float, float]:
    """Milliseconds from the expression to the machine code that runs: in this process as it is, with an empty cache,
    from the disk."""
    cold: list[float] = []
    warm = 0.0
    for _ in range(4):
        with _empty_cache():
            cold.append(machine_code(cell, target))
            warm = median(_forgotten(cell, target) for _ in range(5))
    return cold[0], median(cold[1:]), warm


def autotune(target: str) -> Latency:
    """Tuning one problem from nothing: all schedules compiled and measured."""
    matrix = Matrix(TYPICAL, "cuda")
    x = matrix.random(TYPICAL.width, TYPICAL.columns)
    with _empty_cache():
        kernel = compiled(TYPICAL, target)
        packed = kernel.pack(W=matrix.dense)
        start = perf_counter()
        found = kernel.autotune(X=x, W=packed)
        seconds = perf_counter() - start
    measured = sum(map(len, found.times.values()))
    note = f"{measured} schedules measured"
    return Latency("tune 2:4 linear 4096x4096, M = 8", seconds, "s", 30.0, note)


LATENCIES = ("launch", "compile", "autotune")


def measure_latencies(target: str) -> list[Latency]:
    """All of them."""
    return [launch_overhead(target), *compile_cold(target), autotune(target)]


def _forget() -> None:
    """Drop what this process keeps of kernels."""
    driver.forget()
    tile_cache.forget()


def _forgotten(cell: Cell, target: str) -> float:
    _forget()
    return machine_code(cell, target)


@contextmanager
def _empty_cache() -> Generator[None]:
    """An own, empty cache folder while it lasts."""
    before = os.environ.get("SPARSECC_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SPARSECC_CACHE"] = folder
        _forget()
        try:
            yield
        finally:
            _forget()
            if before is None:
                del os.environ["SPARSECC_CACHE"]
            else:
                os.environ["SPARSECC_CACHE"] = before
