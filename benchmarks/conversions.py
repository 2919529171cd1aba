"""Times of conversions beside SciPy's, in one process on one thread: ``python
benchmarks/conversions.py``."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse as scipy_sparse

from sparsecc.storage.convert import convert
from sparsecc.storage.ingest import asarray

sparse: Any = scipy_sparse
SPARSE = ("CSR", "CSC", "COO", "BSR(4,4)")
OTHERS = ("DCSR", "DCSC", "ELL", "2:4", "dense:1,0")


def best(run: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """The least of several times in seconds, and the result."""
    least, result = float("inf"), None
    for _ in range(repeats):
        start = time.perf_counter()
        result = run()
        least = min(least, time.perf_counter() - start)
    return least, result


def structured(rng: np.random.Generator, rows: int, columns: int) -> Any:
    """A dense array with two nonzeros of each four neighbours."""
    keep = np.argsort(rng.random((rows, columns // 4, 4)), axis=2) < 2
    return np.where(keep.reshape(rows, columns), rng.random((rows, columns)) + 0.5, 0.0)


def scattered(rng: np.random.Generator, rows: int, columns: int, density: float) -> Any:
    """A dense array with nonzeros anywhere."""
    return np.where(rng.random((rows, columns)) < density, rng.random((rows, columns)) + 0.5, 0.0)


def in_scipy(name: str) -> Callable[[Any], Any]:
    if name.startswith("BSR"):
        return lambda m: m.tobsr((4, 4))
    if name == "dense":
        return lambda m: m.toarray()
    return lambda m: m.asformat(name.lower())


def from_array(name: str) -> Callable[[Any], Any]:
    """SciPy's way from a NumPy array."""
    if name.startswith("BSR"):
        return lambda array: sparse.csr_array(array).tobsr((4, 4))
    return getattr(sparse, f"{name.lower()}_array")


def compare(title: str, dense: Any, repeats: int) -> None:
    """Print times of all pairs of formats that SciPy has too."""
    print(f"\n{title}: {dense.shape}, {np.count_nonzero(dense)} nonzeros")
    print(f"{'from':>10} {'to':>10} {'ours ms':>9} {'scipy ms':>9} {'ratio':>6}")
    tensor, matrix = asarray(dense, "CSR"), sparse.csr_array(dense)
    for src in (*SPARSE, "dense"):
        ours = convert(tensor, src)
        theirs = dense if src == "dense" else in_scipy(src)(matrix)
        for dst in (*SPARSE, "dense"):
            if src == dst:
                continue
            mine, result = best(partial(convert, ours, dst), repeats)
            peer = in_scipy(dst) if src != "dense" else from_array(dst)
            other, _ = best(partial(peer, theirs), repeats)
            assert np.array_equal(result.to_numpy(), dense)
            print(f"{src:>10} {dst:>10} {mine * 1e3:9.1f} {other * 1e3:9.1f} {mine / other:6.2f}")


def from_and_to_dense(title: str, dense: Any, repeats: int) -> None:
    """Print times of the formats that SciPy lacks."""
    print(f"\n{title}: {'format':>10} {'from dense ms':>14} {'to dense ms':>12}")
    tensor = asarray(dense)
    for name in OTHERS:
        if name == "2:4" and title.startswith("1%"):
            continue
        there, result = best(partial(convert, tensor, name), repeats)
        back, again = best(partial(convert, result, "dense"), repeats)
        assert np.array_equal(again.to_numpy(), dense)
        print(f"{'':>{len(title)}}  {name:>10} {there * 1e3:14.1f} {back * 1e3:12.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=4096, help="rows and columns")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    size = options.size
    for title, dense in (
        ("50% (2:4)", structured(rng, size, size)),
        ("1%", scattered(rng, size, size, 0.01)),
    ):
        compare(title, dense, options.repeats)
        from_and_to_dense(title, dense, options.repeats)


if __name__ == "__main__":
    main()
