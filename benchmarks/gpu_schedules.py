"""Search schedules of products with 2:4 weights on a GPU, beyond the spaces that ship: where first choices come from.

    python benchmarks/gpu_schedules.py OUT.json --tokens 8 16 --family ring [--density 0.5] [--shape 8192x8192]

Kernels are written, compiled by Triton's own just-in-time compiler and launched by it: neither passes nor our launcher
take part. Each is checked against f32 on poisoned memory; weights rotate over more than the last-level cache;
times are medians of replayed graphs, rivals one after the other (not interleaved).
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from sparsecc.backends.triton import ring, staged, warpgroup
from sparsecc.backends.triton.contraction import Contraction
from sparsecc.backends.triton.operands import pack_2_4, pack_sum_2_4
from sparsecc.diagnostics import SparseccError
from sparsecc.kernel import TileSource

SHAPES = ("4096x4096", "14336x4096", "4096x14336", "28672x8192", "8192x8192")
WRITERS: Mapping[str, Any] = {"ring": ring, "staged": staged, "warpgroup": warpgroup}
TEXTS = Path(tempfile.gettempdir()) / f"sparsecc-schedules-{os.getuid()}"
Schedule = dict[str, int]


def schedules(family: str, tokens: int) -> Iterator[Schedule]:
    """More than the legal ones; those that the writer refuses are left out by the caller."""
    rows = ((1, 1), (2, 2), (4, 4), (7, 8), (8, 8))
    if family == "ring":
        for (tiles, warps), split, (steps, ahead), splitk in product(
            rows, (1, 2, 4), ((4, 2), (4, 4), (8, 1), (8, 2)), (1, 2, 4)
        ):
            if 2 <= warps * split <= 16 and (splitk == 1 or split == 1):
                yield {
                    "tiles": tiles, "warps": warps, "split": split, "steps": steps, "ahead": ahead,
                    "tokens": tokens, "splitk": splitk,
                }  # fmt: skip
    elif family == "staged":
        for (tiles, warps), wide, each, stages, splitk in product(
            ((2, 2), (4, 2), (4, 4), (8, 4)), (1, 2), (32, 64), (3, 4, 6), (1, 2, 4)
        ):
            yield {
                "tiles": tiles, "tokens": min(tokens, each), "warps": warps, "token_warps": wide,
                "steps": 4, "stages": stages, "splitk": splitk, "group": 8,
            }  # fmt: skip
    else:
        for groups, apart, tiles, wide, stages, split, group in product(
            (1, 2, 3), (0, 1), (1, 2), (64, 128, 256), (3, 4, 5), (1, 2, 3, 4), (4, 8, 16)
        ):
            if (tokens > 128 and split == 1) or (tokens <= 128 and wide <= tokens and group == 8):
                yield {
                    "warpgroups": groups, "specialised": apart, "row_tiles": tiles, "tokens": wide,
                    "steps": 4, "stages": stages, "split": split, "group": group,
                }  # fmt: skip


def contraction(facts: Mapping[str, int]) -> Contraction:
    weight = "2:4+CSR" if facts else "2:4"
    return Contraction(
        "product", ("Y[m,n] = X[m,k] * W[n,k]",), "sm_90", weight, "f16", "f32", "f16", "tk", "tn",
        (False, False), True, (), (), tuple(facts.items()),
    )  # fmt: skip


def written(family: str, schedule: Schedule, facts: Mapping[str, int]) -> TileSource | None:
    try:
        return WRITERS[family].emit(contraction(facts), schedule)
    except SparseccError:  # refused: not a schedule of this family
        return None


def loaded(source: TileSource) -> Any:
    """The kernel's text as a module."""
    TEXTS.mkdir(exist_ok=True)
    name = f"k{hashlib.sha256(source.text.encode()).hexdigest()[:20]}"
    path, written_first = TEXTS / f"{name}.py", TEXTS / f"{name}_{os.getpid()}"
    written_first.write_text(source.text)
    written_first.replace(path)  # processes share the text, and so the compiler's cache
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bound(source: TileSource, x: Any, y: Any, rows: int, reduction: int) -> tuple[Any, Any, Any]:
    """The kernel, its grid, and what makes its arguments of a packed weight."""
    torch, module = _torch(), loaded(source)
    ints = {"M": x.shape[0], "N": rows, "K": reduction, "ldx": reduction, "ldy": rows}
    sizes: dict[str, int] = module.work(**ints) if hasattr(module, "work") else {}
    work: dict[str, Any] = {
        n: torch.zeros(b // 4 + 1, dtype=torch.int32, device="cuda") for n, b in sizes.items()
    }

    def arguments(packed: Any, offsets: Any) -> list[Any]:
        fixed = {"w.packed": packed, "w.offsets": offsets, "y.values": y}
        found: list[Any] = []
        for (name, kind), role in zip(source.arguments, source.roles, strict=True):
            if role == "x.values":
                found.append(_tensor_map(kind, x) if kind.startswith("tensordesc") else x)
            elif role.startswith("work."):
                floats = name == "partial"
                found.append(work[role[5:]].view(torch.float32) if floats else work[role[5:]])
            else:
                found.append(fixed[role] if role in fixed else ints[name])
        return found

    return getattr(module, source.entry), module.grid(**ints), arguments


def _torch() -> Any:
    return importlib.import_module("torch")


def _tensor_map(kind: str, x: Any) -> Any:
    hopper = importlib.import_module("triton.experimental.gluon.nvidia.hopper")
    language = importlib.import_module("triton.experimental.gluon.language")
    box = [int(n) for n in kind[kind.index("[") + 1 : -2].split(",")]
    return hopper.TensorDescriptor.from_tensor(x, box, language.NVMMASharedLayout(128, 16, rank=2))


def compile_ahead(job: tuple[str, Schedule, dict[str, int], int]) -> None:
    """Fill Triton's cache, in a process of a pool."""
    family, schedule, facts, tokens = job
    source, torch = written(family, schedule, facts), _torch()
    if source is not None:
        x = torch.zeros(tokens, 4096, dtype=torch.float16, device="cuda")
        words = torch.zeros(16, dtype=torch.int32, device="cuda")
        kernel, _, arguments = bound(source, x, x, 4096, 4096)
        kernel.warmup(*arguments(words, words), grid=(1,), num_warps=source.warps)


def microseconds(calls: list[Callable[[], object]]) -> float:
    """The median of five replays of a graph of all calls."""
    torch = _torch()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for call in calls:
            call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        repeats = max(1, 200 // len(calls))
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(repeats):
                for call in calls:
                    call()
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        times: list[float] = []
        for _ in range(6):
            first.record()
            graph.replay()
            last.record()
            torch.cuda.synchronize()
            times.append(first.elapsed_time(last))
    return sorted(times[1:])[2] * 1e3 / (repeats * len(calls))


def weight(rows: int, reduction: int, density: float | None) -> Any:
    torch = _torch()
    w = torch.randn(rows, reduction, device="cuda")
    if density is not None:
        return (w * (torch.rand_like(w) < density)).half()
    groups = w.view(rows, -1, 4)
    kept = torch.zeros_like(groups).scatter_(-1, groups.abs().topk(2, -1).indices, 1)
    return (groups * kept).view(rows, reduction).half()


def search(shape: str, tokens: int, families: list[str], density: float | None) -> dict[str, Any]:
    """Times in microseconds: cuBLAS, and every schedule that is right."""
    torch = _torch()
    rows, reduction = map(int, shape.split("x"))
    torch.manual_seed(0)
    w, x = weight(rows, reduction, density), torch.randn(tokens, reduction, device="cuda").half()
    expected = x.float() @ w.float().t()
    turns = min(24, int(4e8 // (rows * reduction * 2)) + 1) if tokens <= 512 else 1
    copies = [w.clone() for _ in range(turns)]
    dense = min(
        microseconds([lambda c=c: torch.matmul(x, c.t()) for c in copies]),
        microseconds([lambda c=c: torch.nn.functional.linear(x, c) for c in copies]),
    )
    del copies
    packings: dict[int, Any] = {}
    found: list[tuple[float, str, Schedule]] = []
    for family, schedule in ((f, s) for f in families for s in schedules(f, tokens)):
        steps = 0 if density is None else schedule["steps"]
        if steps not in packings:
            packings[steps] = pack_sum_2_4(w, steps=steps) if steps else pack_2_4(w)
        packed = packings[steps]
        facts = {"steps": steps, "entries": -(-packed.facts["entries"] // 32) * 32} if steps else {}
        source = written(family, schedule, facts)
        if source is None:
            continue
        y = torch.full((tokens, rows), float("nan"), device="cuda", dtype=torch.float16)
        kernel, grid, arguments = bound(source, x, y, rows, reduction)
        arrays = [packed.arrays["packed"].clone() for _ in range(turns)]
        given = [arguments(a, packed.arrays.get("offsets")) for a in arrays]

        def run(
            words: list[Any], kernel: Any = kernel, grid: Any = grid, n: int = source.warps
        ) -> None:
            kernel[grid](*words, num_warps=n)

        run(given[0])
        error = float((y.float() - expected).norm() / expected.norm())
        if error < 1e-3:
            found.append((microseconds([lambda g=g: run(g) for g in given]), family, schedule))
        else:
            print(f"{shape} {tokens}: {family} {schedule} is wrong: {error:.1e}")
    found.sort(key=lambda item: item[0])
    print(shape, tokens, f"cuBLAS {dense:.1f} us, best", found[:3], flush=True)
    return {"shape": shape, "tokens": tokens, "density": density, "cuBLAS": dense, "ours": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("--tokens", type=int, nargs="+", default=[8])
    parser.add_argument("--family", nargs="+", choices=list(WRITERS), default=["ring"])
    parser.add_argument("--density", type=float)
    parser.add_argument("--shape", nargs="+", default=list(SHAPES))
    options = parser.parse_args()
    facts = [{"steps": s, "entries": e} for s in (4, 8) for e in (32 * s // 4, 64 * s // 4)]
    jobs = [
        (family, schedule, fact, tokens)
        for tokens in options.tokens
        for family in options.family
        for schedule in schedules(family, tokens)
        for fact in ([{}] if options.density is None else facts)
        if not fact or fact["steps"] == schedule["steps"]
    ]
    with get_context("spawn").Pool() as pool:
        pool.map(compile_ahead, jobs, chunksize=2)
    results = [
        search(shape, tokens, options.family, options.density)
        for shape in options.shape
        for tokens in options.tokens
    ]
    Path(options.out).write_text(json.dumps(results))


if __name__ == "__main__":
    main()
