"""The command line on programs and files, from the arguments to what stands in the output."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from sparsecc.cli import main
from sparsecc.storage import files
from sparsecc.storage.ingest import asarray

Capture = pytest.CaptureFixture[str]
Floats = npt.NDArray[np.float64]

MATRIX: Floats = np.array([[1.0, 0, 2], [0, 0, 3], [4, 5, 0]])
VECTOR: Floats = np.array([1.0, 2, 3])
SPMV = "y[i] = A[i,j] * x[j]"
SPGEMM = "C[i,j] = A[i,k] * A[k,j]"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with A.mtx, x.npy and W.npy (2:4)."""
    monkeypatch.chdir(tmp_path)
    files.write(asarray(MATRIX).to("COO"), "A.mtx")
    np.save("x.npy", VECTOR)
    np.save("W.npy", np.kron(np.eye(2), np.array([[1.0, 0, 2, 0]])))
    return tmp_path


def output(capsys: Capture, *arguments: str) -> str:
    """What a command that succeeds prints to stdout."""
    status = main(arguments)
    out, err = capsys.readouterr()
    assert status == 0, err
    return out


def error(capsys: Capture, *arguments: str, status: int = 1) -> str:
    """What a command that fails prints to stderr."""
    found = main(arguments)
    out, err = capsys.readouterr()
    assert (found, out) == (status, ""), err
    assert "Traceback" not in err
    return err


# -- run -----------------------------------------------------------------------------------------


def test_result_as_text(folder: Path, capsys: Capture) -> None:
    assert output(capsys, "run", SPMV, "A=A.mtx", "x=x.npy") == "y = [ 7.,  9., 14.]\n"


def test_operands_may_have_the_names_of_python(folder: Path, capsys: Capture) -> None:
    command = ("run", "y[i] = 2 * self[i]", "self=x.npy", "--time", "1")
    assert main(command) == 0
    assert capsys.readouterr().out == "y = [2., 4., 6.]\n"


def test_text_goes_to_devices_and_through_links(folder: Path, capsys: Capture) -> None:
    command = ("compile", SPMV, "A=A.mtx", "x=x.npy", "-o")
    Path("link.c").symlink_to("kernel.c")
    assert output(capsys, *command, "link.c") == ""
    assert Path("link.c").is_symlink() and "for" in Path("kernel.c").read_text()
    assert output(capsys, *command, "/dev/null") == ""
    assert Path("/dev/null").is_char_device()
    shown = error(capsys, *command, "absent/kernel.c")
    assert shown.startswith("absent/kernel.c: error: the file can't be written: No such file")


@pytest.mark.parametrize("format", ["", ":CSR", ":CSC", ":COO", ":ds:1,0", ":BSR(2,2)", ":dense"])
def test_every_operand_format(format: str, folder: Path, capsys: Capture) -> None:
    output(capsys, "run", SPMV, f"A=A.mtx{format}", "x=x.npy", "-o", "y.npy")
    assert np.array_equal(np.load("y.npy"), MATRIX @ VECTOR)


def test_structured_operand(folder: Path, capsys: Capture) -> None:
    out = output(capsys, "run", "s = W[i,j]", "W=W.npy:2:4")
    assert out == "s = 6.0\n"


@pytest.mark.parametrize("format", ["CSR", "CSC", "COO", "DCSR"])
def test_sparse_result_to_a_file(format: str, folder: Path, capsys: Capture) -> None:
    output(capsys, "run", SPGEMM, "A=A.mtx:CSR", "-o", "C.mtx", "--out-format", format)
    assert np.array_equal(files.read("C.mtx").to_numpy(), MATRIX @ MATRIX)


def test_sparse_result_as_text(folder: Path, capsys: Capture) -> None:
    out = output(capsys, "run", SPGEMM, "A=A.mtx", "--out-format", "CSR").splitlines()
    assert out[0] == "C: 3 x 3 float64 CSR, 7 entries"
    assert out[1:3] == ["C[0,0] = 9.0", "C[0,1] = 10.0"]


def test_scalars_and_json(folder: Path, capsys: Capture) -> None:
    facts = json.loads(output(capsys, "run", "s = a * A[i,j]", "A=A.mtx", "a=2.5", "--json"))
    assert [(found["name"], found["values"]) for found in facts["results"]] == [("s", 37.5)]
    assert set(facts["formats"]) >= {"A"}
    facts = json.loads(output(capsys, "run", SPGEMM, "A=A.mtx", "--out-format", "CSR", "--json"))
    found = facts["results"][0]
    dense = np.zeros((3, 3))
    dense[tuple(found["coordinates"])] = found["values"]
    assert np.array_equal(dense, MATRIX @ MATRIX)


def test_dtype(folder: Path, capsys: Capture) -> None:
    output(capsys, "run", SPMV, "A=A.mtx", "x=x.npy", "--dtype", "f32", "-o", "y.npy")
    assert np.load("y.npy").dtype == np.float32
    assert "does not become" in error(
        capsys, "run", SPMV, "A=A.mtx", "x=x.npy", "--dtype", "x=i32", status=2
    )


@pytest.mark.parametrize("dtype", ["f16", "bf16", "bfloat16"])
def test_floats_of_16_bits(dtype: str, folder: Path, capsys: Capture) -> None:
    arguments = ["run", SPMV, "A=A.mtx:2:4+CSR", "x=x.npy", "--dtype", dtype]
    assert output(capsys, *arguments).split() == ["y", "=", "[7,", "9,", "14]"] or dtype == "f16"
    facts = json.loads(output(capsys, *arguments, "--json"))["results"][0]
    assert facts["values"] == [7, 9, 14] and facts["dtype"] in ("float16", "bfloat16")
    output(capsys, *arguments, "-o", "y.npy")
    assert files.read("y.npy").to_numpy().astype(float).tolist() == [7, 9, 14]


def test_out_dtype(folder: Path, capsys: Capture) -> None:
    narrow = ["--dtype", "f16", "--out-dtype", "f32"]
    output(capsys, "run", SPMV, "A=A.mtx", "x=x.npy", *narrow, "-o", "y.npy")
    assert np.load("y.npy").dtype == np.float32
    widened = ["--format", "A=CSR", "--dtype", "i8", "--out-dtype", "i32"]
    text = output(capsys, "compile", SPMV, *widened, "--emit", "tensor")
    assert text.count("arith.extsi") == 2 and text.index("arith.extsi") < text.index("arith.muli")
    wrong = ["run", SPMV, "A=A.mtx", "x=x.npy", "--out-dtype"]
    assert "ask for out_dtype=f64" in error(capsys, *wrong, "i32", status=1)
    assert "there is no type 'i33'" in error(capsys, *wrong, "i33", status=2)


def test_explain_time_and_source_go_to_stderr(folder: Path, capsys: Capture) -> None:
    arguments = ["--explain", "--time", "3", "--print-source"]
    assert main(["run", SPMV, "A=A.mtx:CSR", "x=x.npy", *arguments]) == 0
    out, err = capsys.readouterr()
    assert out == "y = [ 7.,  9., 14.]\n"
    assert "median of 3" in err
    assert "compile: " in err
    assert "CSR" in err


def test_large_results_are_cut_with_a_note(folder: Path, capsys: Capture) -> None:
    np.save("long.npy", np.ones(5000))
    assert main(["run", "y[i] = 2 * x[i]", "x=long.npy"]) == 0
    out, err = capsys.readouterr()
    assert len(out) < 200
    assert "5000 elements" in err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([SPMV, "A=A.mtx", "x=y.npy"], "y.npy: error: there is no such file"),
        ([SPMV, "A=A.mtx", "x=x.npy", "-o", "no/y.npy"], "no: error: there is no such folder"),
        ([SPMV, "A=A.mtx", "x=x.npy", "--target", "sm_120"], "sm_120 gets no code"),
        ([SPMV, "A=A.mtx", "x=x.npy", "--target", "tpu"], "no target 'tpu'"),
        ([SPMV, "A=A.mtx"], "x"),
        (["y[i] = A[i,j] * x[j", "A=A.mtx", "x=x.npy"], "^"),
        (["y[i] = A[i,j,k] * x[j]", "A=A.mtx", "x=x.npy"], "A"),
        (["y[i] = A[i,j] * W[j,k]", "A=A.mtx", "W=W.npy"], "'j'"),
        (["spmv.mlir", "A=A.mtx"], "spmv.mlir: error: there is no such file"),
    ],
)
def test_what_fails_leaves_no_file(
    arguments: list[str], text: str, folder: Path, capsys: Capture
) -> None:
    before = sorted(folder.iterdir())
    given = [] if "-o" in arguments else ["-o", "y.npy"]
    assert text in error(capsys, "run", *arguments, *given)
    assert sorted(folder.iterdir()) == before


def test_operands_named_like_options_are_refused(folder: Path, capsys: Capture) -> None:
    assert "can't be called 'out'" in error(capsys, "run", "s = out[i,j]", "out=A.mtx", status=2)


# -- compile, explain, opt -----------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["tensor", "selected", "iteration", "loops", "llvm", "c", "asm"])
def test_every_stage(stage: str, folder: Path, capsys: Capture) -> None:
    program = "C[i,j] = A[i,k] * B[k,j]"
    arguments = ["--format", "A=CSR", "--format", "B=CSR", "--out-format", "CSR", "--emit", stage]
    text = output(capsys, "compile", program, *arguments)
    assert len(text) > 20
    output(capsys, "compile", program, *arguments, "-o", "stage.txt")
    assert Path("stage.txt").read_text() == text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--format", "D=CSR"], "'D', which the expression does not read"),
        (["--format", "A=SV"], "rank 1, not 2"),
        (["--shape", "A=3"], "1 extents, but it has 2"),
    ],
)
def test_options_that_do_not_fit(arguments: list[str], text: str, capsys: Capture) -> None:
    assert text in error(capsys, "compile", SPMV, *arguments, status=2)


def test_explain(folder: Path, capsys: Capture) -> None:
    assert "A" in output(capsys, "explain", SPMV, "A=A.mtx:CSR", "x=x.npy")


SPMV_MLIR = """\
#CSR = #sparse_tensor.encoding<{ map = (d0, d1) -> (d0 : dense, d1 : compressed) }>
func.func @spmv(%A: tensor<3x3xf64, #CSR>, %x: tensor<3xf64>) -> tensor<3xf64> {
  %zero = arith.constant 0.0 : f64
  %empty = tensor.empty() : tensor<3xf64>
  %init = linalg.fill ins(%zero : f64) outs(%empty : tensor<3xf64>) -> tensor<3xf64>
  %y = linalg.generic {
        indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
                         affine_map<(i, j) -> (i)>],
        iterator_types = ["parallel", "reduction"]}
      ins(%A, %x : tensor<3x3xf64, #CSR>, tensor<3xf64>) outs(%init : tensor<3xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64):
    %p = arith.mulf %a, %b : f64
    %s = arith.addf %c, %p : f64
    linalg.yield %s : f64
  } -> tensor<3xf64>
  return %y : tensor<3xf64>
}
"""


def test_an_mlir_file_runs(folder: Path, capsys: Capture) -> None:
    Path("spmv.mlir").write_text(SPMV_MLIR)
    output(capsys, "run", "spmv.mlir", "--entry", "spmv", "A=A.mtx", "x=x.npy", "-o", "y.npy")
    assert np.array_equal(np.load("y.npy"), MATRIX @ VECTOR)
    assert "--format does not go with" in error(
        capsys, "run", "spmv.mlir", "--format", "A=CSR", "A=A.mtx", status=2
    )


def test_opt_is_a_fixpoint(folder: Path, capsys: Capture) -> None:
    Path("spmv.mlir").write_text(SPMV_MLIR)
    once = output(capsys, "opt", "spmv.mlir", "--verify-each")
    Path("once.mlir").write_text(once)
    assert output(capsys, "opt", "once.mlir") == once
    assert "linalg.generic" in once


def test_opt_on_bad_input(folder: Path, capsys: Capture) -> None:
    Path("bad.mlir").write_text("func.func @f( {")
    assert error(capsys, "opt", "bad.mlir").startswith("bad.mlir:1:")
    Path("bytes.mlir").write_bytes(b"\xff\xfe")
    assert "not UTF-8" in error(capsys, "opt", "bytes.mlir")
    assert "no-such-pass" in error(capsys, "opt", "-p", "no-such-pass", "bad.mlir")


@pytest.mark.parametrize("command", ["passes", "strategies"])
def test_lists(command: str, capsys: Capture) -> None:
    names = json.loads(output(capsys, command, "--json"))
    assert names
    assert all(name in output(capsys, command) for name in names)


# -- convert, inspect ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["B.mtx", "B.tns", "B.npz", "B.npy", "B.mtx.gz"])
def test_convert(name: str, folder: Path, capsys: Capture) -> None:
    output(capsys, "convert", "A.mtx", name)
    assert np.array_equal(files.read(name).to_numpy(), MATRIX)


def test_convert_to_a_format(folder: Path, capsys: Capture) -> None:
    assert main(["convert", "A.mtx", "B.npz", "--format", "CSC"]) == 0
    assert "CSC" in capsys.readouterr().err
    assert "2 of 3 groups" in error(capsys, "convert", "A.mtx", "C.npz", "--format", "1:4")
    assert not Path("C.npz").exists()


def test_inspect(folder: Path, capsys: Capture) -> None:
    text = output(capsys, "inspect", "A.mtx")
    assert "3 x 3" in text
    assert "density" in text
    found = json.loads(output(capsys, "inspect", "A.mtx:CSR", "--json"))
    assert (found["format"], found["nonzeros"], found["file"]) == ("CSR", 5, "A.mtx")
    assert error(capsys, "inspect", "B.mtx").startswith("B.mtx: error: ")


# -- TACO's command lines ------------------------------------------------------------------------

TACO = "y(i) = A(i,j) * x(j)"


def test_taco_flags_run(folder: Path, capsys: Capture) -> None:
    assert (
        main(
            [
                "run",
                TACO,
                "-f=A:ds:1,0",
                "-t=A:double",
                "-d=i:3",
                "-i=A:A.mtx",
                "-i=x:x.npy",
                "-o=y:y.npy",
                "-print-kernels",
                "-time=2",
            ]
        )
        == 0
    )
    out, err = capsys.readouterr()
    assert out == ""
    assert "median of 2" in err
    assert np.array_equal(np.load("y.npy"), MATRIX @ VECTOR)


def test_taco_without_files_prints_the_kernel(capsys: Capture) -> None:
    text = output(capsys, "run", TACO, "-f=A:ds", "-d=A:10,20")
    assert text == output(
        capsys,
        "compile",
        TACO,
        "--format",
        "A=ds",
        "--shape",
        "A=10x20",
        "--shape",
        "x=20",
        "--emit",
        "c",
    )


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["-f=B:ds"], "'B', which is not in the expression"),
        (["-f=A:d"], "rank 1, not 2"),
        (["-f=A"], "not -f=NAME:VALUE"),
        (["-f=A:ds", "-f=A:ss"], "twice"),
        (["-d=i:3", "-d=y:4"], "two extents"),
        (["-d=q:3"], "fits no index"),
        (["-d=i:x"], "not a dimension"),
        (["-t=A:quad"], "no type 'quad'"),
        (["-t=y:float"], "follows from its operands"),
        (["-o=A:y.npy"], "the result is 'y'"),
        (["-g=A:0.3"], "flag -g is not known"),
        (["-i=A:A.mtx", "-i=x:x.npy", "-d=i:4"], "the command line says 4"),
    ],
)
def test_taco_mistakes(flags: list[str], text: str, folder: Path, capsys: Capture) -> None:
    err = error(capsys, "run", TACO, *flags, status=2)
    assert text in err
    assert not Path("y.npy").exists()


def test_stages_of_another_target_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["compile", "y[i] = A[i,j] * x[j]", "--format", "A=CSR"]
    assert main([*command, "--target", "sm_90", "--emit", "llvm"]) == 2
    assert "--emit llvm is for the target cpu" in capsys.readouterr().err
    assert main([*command, "--target", "cuda"]) == 1
    assert "is called 'gpu'" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--interpret", "--autotune"])
def test_options_of_gpus_speak_of_the_target(folder: Path, capsys: Capture, option: str) -> None:
    found = error(capsys, "run", SPMV, "A=A.mtx", "x=x.npy", option, status=2)
    assert f"{option} is for GPU targets" in found and "--target gpu" in found
