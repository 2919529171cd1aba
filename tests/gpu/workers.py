"""Processes that compile and run jobs on the GPU side by side; they share a cache of machine code.

A worker that has lost the device says by which job, and runs no other.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import get_context
from typing import Any

Submit = Callable[..., "Future[list[str]]"]
"""``submit(job, *arguments)``: the texts that the job gives, one a case."""

_lost: list[str] = []


@contextmanager
def workers() -> Generator[Submit]:
    """A pool of them while it lasts."""
    count = max(1, min(14, (os.cpu_count() or 1) - 1))
    with tempfile.TemporaryDirectory() as cache:
        pool = ProcessPoolExecutor(
            count, mp_context=get_context("spawn"), initializer=_start, initargs=(cache,)
        )

        def submit(job: Callable[..., list[str]], *arguments: Any) -> Future[list[str]]:
            return pool.submit(guarded, job, *arguments)

        try:
            yield submit
        finally:
            pool.shutdown(cancel_futures=True)


def _start(cache: str) -> None:
    os.environ["SPARSECC_CACHE"] = cache
    import_module("torch").set_num_threads(1)


def guarded(job: Callable[..., list[str]], *arguments: Any) -> list[str]:
    """What a job gives, and whether the device has outlived it."""
    if _lost:
        return [f"not run: this worker lost the device in {_lost[0]}"]
    try:
        found = job(*arguments)
    except Exception as error:
        found = [f"{', '.join(map(str, arguments))}: {type(error).__name__}: {error}"]
    cuda = import_module("torch").cuda
    if cuda.is_available():
        try:
            cuda.synchronize()
        except RuntimeError as error:
            _lost.append(", ".join(map(str, arguments)))
            found.append(f"the device was lost in {_lost[0]}: {error}")
    return found
