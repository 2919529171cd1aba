"""The command line by itself: arguments, tables, exit status, and what a user reads of errors.

What it does with programs and files is in ``test_cli_programs.py``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from sparsecc.cli import commands, main, tables
from sparsecc.cli.operands import (
    FileOperand,
    parse_dtypes,
    parse_operands,
    parse_shapes,
    parse_value,
    split_format,
)
from sparsecc.cli.output import table, write_text
from sparsecc.diagnostics import FileError, UsageError

ROOT = Path(__file__).resolve().parents[2]
Capture = pytest.CaptureFixture[str]


def shell(*arguments: str, code: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *(("-c", code) if code else ("-m", "sparsecc")), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def fails(arguments: list[str], capsys: Capture) -> tuple[int, str]:
    """Exit status and stderr of a command that must print no result."""
    status = main(arguments)
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return status, err


# -- operands ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "value"), [
    ("2", 2), ("-3", -3), ("2.5", 2.5), ("1e-3", 1e-3), (".5", 0.5), ("2j", 2j),
    ("-inf", float("-inf")),
    ("x.npy", FileOperand(Path("x.npy"), None)),
    ("2.5.npy", FileOperand(Path("2.5.npy"), None)),
    ("A.mtx:CSR", FileOperand(Path("A.mtx"), "CSR")),
    ("A.mtx:ds:1,0", FileOperand(Path("A.mtx"), "ds:1,0")),
    ("W.npy:2:4", FileOperand(Path("W.npy"), "2:4")),
    ("A.mtx:(i,j) -> (i : dense, j : compressed)",
     FileOperand(Path("A.mtx"), "(i,j) -> (i : dense, j : compressed)")),
    ("a:b.mtx", FileOperand(Path("a:b.mtx"), None)),
    ("a:b.mtx:CSC", FileOperand(Path("a:b.mtx"), "CSC")),
])  # fmt: skip
def test_values(text: str, value: object) -> None:
    found = parse_value(text)
    assert (found, type(found)) == (value, type(value))


def test_a_file_that_exists_decides_where_the_format_starts(tmp_path: Path) -> None:
    (tmp_path / "A.mtx:CSR").touch()
    assert split_format(f"{tmp_path}/A.mtx:CSR") == (tmp_path / "A.mtx:CSR", None)
    (tmp_path / "A.mtx").touch()
    assert split_format(f"{tmp_path}/A.mtx:CSC") == (tmp_path / "A.mtx", "CSC")
    with pytest.raises(UsageError, match="did you mean 'CSR'"):
        split_format(f"{tmp_path}/A.mtx:CSRR")


@pytest.mark.parametrize("texts", [["A"], ["=x"], ["A="], ["2=x.npy"], ["A=1", "A=2"], ["A-b=1"]])
def test_bad_operands_are_wrong_usage(texts: list[str]) -> None:
    with pytest.raises(UsageError):
        parse_operands(texts)


def test_dtypes_and_shapes() -> None:
    assert parse_dtypes(["float32", "A=i32"]) == {"": "f32", "A": "i32"}
    assert parse_dtypes([]) == {}
    assert parse_shapes(["A=10x?", "x=7"]) == {"A": (10, None), "x": (7,)}
    for wrong in (["f33"], ["f32", "f64"], ["A=f32", "A=f64"]):
        with pytest.raises(UsageError):
            parse_dtypes(wrong)
    for wrong in ("A=10y7", "A=-1x2", "A=", "A=1xx2"):
        with pytest.raises(UsageError):
            parse_shapes([wrong])


# -- usage ---------------------------------------------------------------------------------------


def test_overview_names_every_command(capsys: Capture) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {name} " in out for name in commands.COMMANDS)
    status, err = fails([], capsys)
    assert status == 2
    assert "usage: sparsecc COMMAND" in err


@pytest.mark.parametrize("name", list(commands.COMMANDS))
def test_help_of_each_command(name: str, capsys: Capture) -> None:
    assert main([name, "--help"]) == 0
    assert f"usage: sparsecc {name}" in capsys.readouterr().out


def test_version(capsys: Capture) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("sparsecc ")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["rnu"], "did you mean 'run'?"),
        (["run"], "required: EXPR|FILE.mlir"),
        (["run", "y[i] = x[i]", "--frobnicate"], "--frobnicate"),
        (["run", "y[i] = x[i]", "x"], "'x' is not an operand"),
        (["run", "y[i] = x[i]", "x=1", "x=2"], "'x' is given twice"),
        (["run", "y[i] = x[i]", "--time", "-1"], "invalid count"),
        (["run", "y[i] = x[i]", "--out-format", "CRS"], "did you mean 'CSR'?"),
        (["run", "y", "x=1"], "neither an expression"),
        (["compile", "y[i] = x[i]", "--emit", "sonnet"], "invalid choice: 'sonnet'"),
        (["compile", "y[i] = x[i]", "--format", "x"], "'x' is not a format"),
        (["compile", "y[i] = x[i]", "--dtype", "f33"], "there is no type 'f33'"),
        (["convert", "a.mtx"], "required: OUT"),
        (["convert", "a.mtx", "b.mtx", "--format", "XYZ"], "no format 'XYZ'"),
    ],
)
def test_wrong_usage_exits_2(arguments: list[str], text: str, capsys: Capture) -> None:
    status, err = fails(arguments, capsys)
    assert status == 2
    assert text in err


def test_gpu_stages_are_refused(capsys: Capture) -> None:
    status, err = fails(["compile", "y[i] = x[i]", "--emit", "ptx"], capsys)
    assert status == 2
    assert "--emit ptx is for GPU targets" in err


# -- errors --------------------------------------------------------------------------------------


class Fault:
    """Makes the command ``targets`` raise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch

    def __call__(self, error: BaseException) -> None:
        def raises(options: object) -> None:
            raise error

        self.monkeypatch.setattr(tables, "targets", raises)


@pytest.fixture
def fault(monkeypatch: pytest.MonkeyPatch) -> Fault:
    return Fault(monkeypatch)


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (
            FileError("bad header", place="A.mtx:1", help="see the format"),
            1,
            "A.mtx:1: error: bad header\nhelp: see the format\n",
        ),
        (UsageError("no"), 2, "error: no\n"),
        (
            FileNotFoundError(2, "No such file or directory", "x.npy"),
            1,
            "x.npy: error: no such file or directory\n",
        ),
        (PermissionError(13, "Permission denied", "x.npy"), 1, "x.npy: error: permission denied\n"),
        (IsADirectoryError(21, "Is a directory", "d"), 1, "d: error: is a directory\n"),
        (OSError(28, "No space left on device"), 1, "error: no space left on device\n"),
        (
            MemoryError("Unable to allocate 8 TiB"),
            1,
            "error: out of memory: Unable to allocate 8 TiB\n",
        ),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
)
def test_errors_are_one_message(
    error: BaseException, status: int, text: str, fault: Fault, capsys: Capture
) -> None:
    fault(error)
    assert fails(["targets"], capsys) == (status, text)


def test_a_warning_is_a_note(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def warns(options: object) -> None:
        warnings.warn("A was converted to CSR", stacklevel=1)

    monkeypatch.setattr(tables, "targets", warns)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["targets"]) == 0
    assert capsys.readouterr().err == "note: A was converted to CSR\n"


def test_our_own_faults_say_so(fault: Fault, capsys: Capture) -> None:
    fault(KeyError("level"))
    status, err = fails(["targets"], capsys)
    assert status == 1
    assert "internal error: KeyError: 'level'" in err
    assert "bug in sparsecc" in err
    assert err.endswith("use --debug for the traceback\n")


def test_debug_shows_the_traceback(fault: Fault, capsys: Capture) -> None:
    fault(KeyError("level"))
    assert main(["targets", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "sparsecc", "formats"],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1
    assert done.stderr == "error: no space left on device\n"


def test_a_reader_that_leaves_is_no_error() -> None:
    code = "import sys; from sparsecc.cli import main; sys.exit(main(['formats']))"
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, stdout=pipe, stderr=subprocess.PIPE, text=True
        )
    assert (done.returncode, done.stderr) == (141, "")


def test_help_imports_nothing_heavy() -> None:
    heavy = ["numpy", "xdsl", "llvmlite", "scipy", "lark", "networkx", "rich"]
    code = (
        "import sys; from sparsecc.cli import main; main(['run', '--help']); "
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    done = shell(code=code)
    assert (done.stdout.splitlines()[-1], done.stderr) == ("[]", "")


def test_module_and_status() -> None:
    assert shell("formats").returncode == 0
    assert shell("nonsense").returncode == 2


# -- tables and files ----------------------------------------------------------------------------


def test_formats(capsys: Capture) -> None:
    assert main(["formats"]) == 0
    out = capsys.readouterr().out
    for text in ("CSR", "BSR(4,4)", "(d0, d1) -> (d1 : dense, d0 : compressed)", "structured"):
        assert text in out
    assert main(["formats", "--json"]) == 0
    assert "compressed" in json.loads(capsys.readouterr().out)["levels"]


def test_targets(capsys: Capture) -> None:
    assert main(["targets"]) == 0
    lines = capsys.readouterr().out.splitlines()
    *table, empty, also = lines
    assert [line.split()[0] for line in table] == ["target", "cpu", "sm_80", "sm_90", "sm_100"]
    assert (empty, also.split()[0]) == ("", "gpu:")
    assert main(["targets", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cpu"]["generates"] is True


def test_plain_tables_are_aligned(capsys: Capture) -> None:
    table(("a", "b"), [("long", "x"), ("s", "[y]")])
    assert capsys.readouterr().out == "a     b\nlong  x\ns     [y]\n"


def test_tables_on_a_terminal_keep_brackets(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    table(("level", "spelling"), [("structured", "structured[2, 4]")])
    out = capsys.readouterr().out
    assert "structured[2, 4]" in out
    assert len(out.splitlines()) == 5, "it is drawn with a frame"


def test_text_files_are_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kernel.c"
    write_text(path, "old")
    write_text(path, "new")
    assert path.read_text() == "new"

    def fail(source: str, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(FileError, match="can.t be written: No space") as caught:
        write_text(path, "newer")
    assert caught.value.place == str(path)
    assert [p.name for p in tmp_path.iterdir()] == ["kernel.c"]
    assert path.read_text() == "new"


def test_standard_files_that_are_closed(tmp_path: Path) -> None:
    def run(command: str) -> subprocess.CompletedProcess[str]:
        line = f"{sys.executable} -m sparsecc {command}"
        return subprocess.run(["sh", "-c", line], cwd=ROOT, capture_output=True, text=True)

    done = run("formats >&-")
    assert (done.returncode, done.stderr) == (1, "error: standard output is closed\n")
    assert run("nothing 2>&-").stdout == ""
    np.save(tmp_path / "x.npy", np.ones(2))
    done = run(f"convert {tmp_path}/x.npy {tmp_path}/y.npy >&- <&-")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "y.npy").is_file()
