"""Kernels compiled ahead, side by side in processes of their own, while earlier ones are measured."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from types import TracebackType

from sparsecc.backends.triton.compile_process import CompilerProcess
from sparsecc.diagnostics import SparseccError
from sparsecc.kernel import Compiled, TileSource
from sparsecc.runtime import tile_cache


class Ahead:
    """Compiles what the cache has not got, in the order of asking.

    A kernel that does not compile is left to its first use, which says why."""

    def __init__(self, target: str, workers: int) -> None:
        self.target, self.workers = target, workers
        self.idle: SimpleQueue[CompilerProcess] = SimpleQueue()
        self.processes = [CompilerProcess() for _ in range(workers)]
        for process in self.processes:
            self.idle.put(process)
        self.pool = ThreadPoolExecutor(workers)
        self.asked: dict[TileSource, Future[None]] = {}

    def __enter__(self) -> Ahead:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)
        for process in self.processes:
            process.late = True  # given up: what it compiles is not tried again
            if process.process is not None:
                process.process.kill()

    def ask(self, sources: Iterable[TileSource]) -> None:
        for source in sources:
            if source not in self.asked:
                self.asked[source] = self.pool.submit(self._compile, source)

    @property
    def pending(self) -> int:
        """How many kernels are waited for."""
        return sum(not future.done() for future in self.asked.values())

    def ready(self, sources: Iterable[TileSource]) -> bool:
        return all(self.asked[source].done() for source in sources if source in self.asked)

    def wait(self, sources: Iterable[TileSource]) -> None:
        """Until these are compiled, or found not to compile."""
        for source in sources:
            if source in self.asked:
                self.asked[source].result()

    def _compile(self, source: TileSource) -> None:
        if tile_cache.read(source, self.target) is not None:
            return
        process = self.idle.get()
        try:
            made: Compiled | None = process.compile(source, self.target)
        except SparseccError:
            made = None
        finally:
            self.idle.put(process)
        if made is not None:
            tile_cache.keep(made)
