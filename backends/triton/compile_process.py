"""The compiler in processes of its own: an abort of LLVM ends one of them, never the user's.

A process takes one kernel after another and answers with pickled results over a pipe; what the compiler prints goes
to a file that is read only when it dies or fails.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from threading import Lock
from typing import IO, Any

from sparsecc.diagnostics import InternalError, SparseccError
from sparsecc.kernel import Compiled, TileSource

LONGEST = 300.0
"""Seconds after which a kernel that is still being compiled is given up."""
_WORDS = 1500


class CompileError(InternalError):
    """A kernel's text that the compiler does not take."""


class CompileFailed(CompileError):
    text = "kernel {kernel} does not compile for {target}: {words}"


class CompilerDied(CompileError):
    text = "the compiler died on kernel {kernel} for {target} ({how}); its last words: {words}"


class CompilerKilled(CompilerDied):
    help_text = (
        "it was tried twice. SIGKILL comes from outside, mostly from a system that is out of memory: free some, or"
        " compile fewer kernels at once (workers=1 of autotune)"
    )


class CompilerGivenUp(CompilerDied):
    text = "kernel {kernel} was still being compiled for {target} after {seconds:g} s, and was given up"


class CompilerMissing(InternalError):
    text = "the compiler's process did not start: {words}"
    help_text = "check that {python} runs and finds the package triton"


class CompilerProcess:
    """One process of the compiler; started when it is first used, and again after it died."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.process: subprocess.Popen[bytes] | None = None
        self.words: IO[bytes] = tempfile.TemporaryFile()
        self.owner = os.getpid()
        self.late = False
        """Whether its process was killed because it took too long."""

    def compile(self, source: TileSource, target: str) -> Compiled:
        """Compile a kernel. Raises CompileFailed, CompilerDied, and the errors of ``compile_text``."""
        with self.lock:
            try:
                answer = self.answered(source, target)
            except CompilerKilled:
                answer = self.answered(source, target)
        kind, content = answer
        if kind == "done":
            return content
        if kind == "error":
            module, name, facts, place = content
            raise getattr(import_module(module), name)(place=place, **facts)
        raise CompileFailed(kernel=source.entry, target=target, words=content)

    def answered(self, source: TileSource, target: str) -> Any:
        """What a process answers. Raises CompilerDied, of its kinds the one that tells what happened."""
        process = self.started()
        before = self.words.seek(0, os.SEEK_END)
        begun = time.monotonic()
        try:
            return self.ask(process, (source, target))
        except (EOFError, OSError) as error:
            ended = self.end()
            seconds = time.monotonic() - begun
            words = self.said(before)
            if not words and isinstance(error, OSError):
                words = str(error)
            killed = ended == "SIGKILL"
            kind = CompilerDied if not killed else CompilerGivenUp if self.late else CompilerKilled
            raise kind(
                kernel=source.entry, target=target, how=f"{ended}, after {seconds:.1f} s",
                words=words or "none", seconds=LONGEST,
            ) from None  # fmt: skip

    def started(self) -> subprocess.Popen[bytes]:
        process = self.process
        if process is not None and process.poll() is None and self.owner == os.getpid():
            return process
        if self.owner != os.getpid():  # a fork: the pipes belong to the parent
            self.words = tempfile.TemporaryFile()
            self.owner = os.getpid()
        paths = [os.path.abspath(path) for path in sys.path]
        environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
        environment["PYTHONPATH"] = os.pathsep.join(paths)
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import serve; serve()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.words,
                env=environment,
                start_new_session=True,  # an interrupt from the keyboard is the user's
            )
        except OSError as error:
            raise CompilerMissing(words=str(error), python=sys.executable) from None
        return self.process

    def ask(self, process: subprocess.Popen[bytes], question: Any) -> Any:
        from threading import Timer

        assert process.stdin is not None and process.stdout is not None
        self.late = False

        def give_up() -> None:
            self.late = True
            process.kill()

        timer = Timer(LONGEST, give_up)
        timer.daemon = True
        timer.start()
        try:
            pickle.dump(question, process.stdin)
            process.stdin.flush()
            return pickle.load(process.stdout)
        except pickle.UnpicklingError:
            raise EOFError from None
        except KeyboardInterrupt:
            self.end()
            raise
        finally:
            timer.cancel()

    def end(self) -> str:
        """End the process; says how it ended."""
        process, self.process = self.process, None
        if process is None or self.owner != os.getpid():
            return "not started"
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except OSError:
                pass
        try:
            code = process.wait(2)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        return f"status {code}" if code >= 0 else signal.Signals(-code).name

    def said(self, since: int) -> str:
        """The end of what the compiler has printed since a position of its file."""
        self.words.seek(since)
        text = self.words.read().decode(errors="replace").strip()
        return text if len(text) <= _WORDS else "… " + text[-_WORDS:]


def serve() -> None:
    """The process: reads kernels from its standard input until that is closed."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the compiler prints is no answer
    questions = os.fdopen(os.dup(0), "rb")
    while True:
        try:
            source, target = pickle.load(questions)
        except EOFError:
            return
        pickle.dump(_answer(source, target), answers)
        answers.flush()


def _answer(source: TileSource, target: str) -> tuple[str, Any]:
    try:
        from sparsecc.backends.triton.compile_text import compile_text

        return "done", compile_text(source, target)
    except SparseccError as error:
        kind = type(error)
        return "error", (
            kind.__module__,
            kind.__qualname__,
            error.facts | _message(error),
            error.place,
        )
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}".strip()[-_WORDS:]


def _message(error: SparseccError) -> dict[str, str]:
    return {"message": error.message} if type(error).text == "{message}" else {}


CompiledOrError = Compiled | SparseccError

_first = CompilerProcess()
_others: list[CompilerProcess] = []
_others_lock = Lock()


def compile_apart(source: TileSource, target: str) -> Compiled:
    """Compile a kernel in the process that is kept for that."""
    return _first.compile(source, target)


def compile_many(
    sources: Sequence[TileSource],
    target: str,
    workers: int | None = None,
    done: Callable[[int, CompiledOrError], None] | None = None,
) -> list[CompiledOrError]:
    """Compile kernels side by side; one that fails gives its error. ``done`` hears of each as it ends."""
    from concurrent.futures import ThreadPoolExecutor
    from queue import SimpleQueue

    count = max(1, min(workers or os.cpu_count() or 1, len(sources), 8))
    with _others_lock:
        while len(_others) < count - 1:
            _others.append(CompilerProcess())
        idle: SimpleQueue[CompilerProcess] = SimpleQueue()
        for process in [_first, *_others][:count]:
            idle.put(process)

        def one(number: int) -> CompiledOrError:
            process = idle.get()
            try:
                result: CompiledOrError = process.compile(sources[number], target)
            except SparseccError as error:
                result = error
            finally:
                idle.put(process)
            if done is not None:
                done(number, result)
            return result

        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(one, range(len(sources))))


@atexit.register
def end_all() -> None:
    """End the processes."""
    for process in [_first, *_others]:
        process.end()
        process.words.close()
