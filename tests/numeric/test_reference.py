"""The reference interpreter against the oracle of expressions, and compiled programs against it."""

from __future__ import annotations

import itertools
import warnings
from collections import Counter
from typing import Any, cast

import numpy as np
import pytest
from xdsl.dialects.linalg import ops as linalg

from sparsecc import api, driver
from sparsecc.diagnostics import SparseccError
from sparsecc.formats import parse_format
from sparsecc.frontends.mlir_text import parse_module
from sparsecc.passes.sparsification.schedule_loops import SparseDivisor
from sparsecc.runtime import reference
from sparsecc.runtime.compiled_kernel import OperandConverted
from sparsecc.runtime.reference import evaluate_module
from sparsecc.storage.entries import from_coords
from sparsecc.storage.tensor import SparseTensor
from tests.oracle.evaluator import evaluate
from tests.oracle.mlir_generator import Program, generate, stored_entries
from tests.sweep import REFUSALS, Trial, all_row_trials, make_operands, random_trial, sample

SHARDS = 2
PROGRAMS = 160


def same_values(found: Any, wanted: Any) -> bool:
    """Equal types, shapes and values; floats up to the order of their sums."""
    a, b = np.asarray(found), np.asarray(wanted)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.name == "bfloat16":
        a, b = a.astype(np.float32), b.astype(np.float32)
    if a.dtype.kind not in "fc":
        return np.array_equal(a, b)
    tolerance = 1e-4 if a.dtype.name in ("float32", "complex64") else 1e-9
    return np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


def dense(value: Any) -> Any:
    return value.to_numpy() if isinstance(value, SparseTensor) else value


# -- the interpreter against the oracle -----------------------------------------------------------


def trials(shard: int) -> list[Trial]:
    rows = list(sample(all_row_trials(), 1500))
    return [*rows, *(random_trial(7000 + n) for n in range(200))][shard::SHARDS]


def differs_from_oracle(trial: Trial) -> str:
    """How the interpreter differs from the oracle on an expression; empty if it does not."""
    plain, ours = make_operands(trial)
    values, stored = evaluate(trial.text, plain)
    specs = tuple(
        (name, api.Spec(v.shape, v.dtype, getattr(v, "format", None)).operand())
        for name, v in ours.items()
    )
    module = driver.front(driver.Request("expression", trial.text, specs, trial.out))
    (result,) = evaluate_module(module, ours)
    if isinstance(result, SparseTensor):
        found = stored_entries(result)
        wanted = stored & (values != 0) if result.format.padded else stored
        # A sum that is needed on the way may be a dense scalar or vector in the module.
        temporaries = sum(isinstance(op, linalg.GenericOp) for op in module.walk()) > 1
        extra = found & ~wanted
        if (wanted & ~found).any() or extra.any() and not (temporaries and not values[extra].any()):
            return f"stored at {np.argwhere(found != wanted)[:3]}"
    result = dense(result)
    return "" if same_values(result, values) else f"values:\n{result}\nwanted\n{values}"


@pytest.mark.parametrize("shard", range(SHARDS))
def test_the_interpreter_is_the_oracle(shard: int) -> None:
    refused: Counter[str] = Counter()
    wrong: list[str] = []
    chosen = trials(shard)
    for trial in chosen:
        try:
            problem = differs_from_oracle(trial)
        except REFUSALS as error:
            refused[type(error).__name__] += 1
            continue
        if problem:
            wrong.append(f"{trial}\n{problem}")
    assert not wrong, "\n\n".join(wrong[:5])
    # An n:m result that does not hold the entries.
    assert set(refused) <= {"OverfullGroup"} and refused.total() < len(chosen) // 20, refused


# -- compiled programs against the interpreter ----------------------------------------------------


def differs_from_reference(program: Program, found: Any, wanted: Any) -> str:
    """How a compiled result differs from the interpreter's; empty if it does not."""
    if isinstance(found, SparseTensor):
        found.check("full")
        if isinstance(wanted, SparseTensor) and not found.format.padded:
            differ = stored_entries(found) != stored_entries(wanted)
            if differ.any() and not (program.loose and not wanted.to_numpy()[differ].any()):
                return f"stored at {np.argwhere(differ)[:3]}"
    a, b = dense(found), dense(wanted)
    return "" if same_values(a, b) else f"values:\n{a}\nwanted\n{b}"


def differences(program: Program) -> list[str]:
    """How the compiled program differs from the interpreted one. Raises the compiler's errors."""
    operands = program.operands()
    with warnings.catch_warnings():
        # An argument whose format is the compiler's choice is given in one of ours.
        warnings.simplefilter("ignore", OperandConverted)
        results = api.compile_mlir(program.text).call(operands)
    wanted = evaluate_module(parse_module(program.text), operands)
    found = cast("tuple[Any, ...]", results) if isinstance(results, tuple) else (results,)
    pairs = zip(found, wanted, program.results, strict=True)
    problems = [differs_from_reference(program, a, b) for a, b, _ in pairs]
    for a, tensor in zip(found, program.results, strict=True):
        if isinstance(a, SparseTensor) and tensor.format != "*":
            format = parse_format(tensor.format, a.rank)
            problems += [] if a.format.with_widths(0, 0) == format else [f"stored as {a.format}"]
    return [p for p in problems if p]


def check_programs(numbers: range) -> Counter[str]:
    """Run programs; the refusals by class and message. A crash or a difference fails."""
    refused: Counter[str] = Counter()
    wrong: list[str] = []
    for number in numbers:
        program = generate(number)
        try:
            problems = differences(program)
        except SparseccError as error:
            refused[f"{type(error).__name__}: {error.message}"] += 1
            continue
        except Exception as error:  # a crash is a finding, with its program
            problems = [f"{type(error).__name__}: {error}"]
        if problems:
            wrong.append("\n".join([f"program {number}", program.text, *problems]))
        if number % 64 == 0:
            driver.forget()
    for text, count in refused.most_common():
        print(f"{count} {text}")
    assert not wrong, f"{len(wrong)} wrong, first:\n" + "\n\n".join(wrong[:4])
    return refused


@pytest.mark.parametrize("shard", range(SHARDS))
def test_compiled_programs_are_the_interpreter(shard: int) -> None:
    refused = check_programs(range(shard, PROGRAMS, SHARDS))
    assert refused.total() < PROGRAMS // SHARDS // 3, refused
    # What may be refused is known: a new kind of refusal is a program that stopped compiling.
    known = ("NotSparsifiable", "HostOperation", "NoCpuOperation", "SparseDivisor")
    assert all(text.startswith(known) for text in refused), refused


@pytest.mark.full
@pytest.mark.parametrize("shard", range(10))
def test_many_compiled_programs(shard: int) -> None:
    check_programs(range(10_000 + shard, 16_000, 10))


def test_the_programs_cover_what_they_promise() -> None:
    texts = [generate(number).text for number in range(PROGRAMS)]
    wanted = [
        "math.exp", "math.sqrt", "math.absf", "arith.cmpf", "arith.cmpi", "arith.select",
        "arith.maximumf", "arith.subf %acc", "linalg.matmul", "linalg.matvec", "linalg.dot",
        "sparse_tensor.convert", "encoding<*>", "complex.create", "i1", "ui8", "padded",
        "singleton",
        "floordiv", "tensor<?x?x?x",
    ]  # fmt: skip
    assert not [w for w in wanted if sum(w in text for text in texts) < 2]
    assert any(len(generate(number).results) == 2 for number in range(20))


# -- the interpreter's own parts ------------------------------------------------------------------


def test_sums_one_by_one_are_sums_at_once() -> None:
    """The short cut for sums against the rule that it cuts short."""
    cases = 0
    for number in itertools.count():
        program = generate(number)
        module = parse_module(program.text)
        try:
            quick = evaluate_module(module, program.operands())
        except SparseccError:
            continue
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reference, "SUMS", set[str]())
            slow = evaluate_module(module, program.operands())
        for a, b in zip(quick, slow, strict=True):
            assert same_values(dense(a), dense(b)), program.text
            if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
                assert np.array_equal(stored_entries(a), stored_entries(b)), program.text
        cases += '"reduction"' in program.text
        if cases == 12:
            break


VECTOR = "tensor<?xf64, #sparse_tensor.encoding<{ map = (d0) -> (d0 : compressed) }>>"


def on_vector(body: str, result: str = VECTOR) -> str:
    """A program that computes %z from the elements %x of a sparse vector."""
    return f"""
func.func @main(%a: {VECTOR}) -> {result} {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : {VECTOR}
  %e = tensor.empty(%n) : {result}
  %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                        iterator_types = ["parallel"]}}
    ins(%a : {VECTOR}) outs(%e : {result}) {{
  ^bb0(%x: f64, %old: f64):
    {body}
    linalg.yield %z : f64
  }} -> {result}
  return %r : {result}
}}"""


@pytest.mark.parametrize(
    ("body", "values", "stored"),
    [
        ("%z = arith.negf %x : f64", [0, -2, 0, 0], [0, 1, 1, 0]),
        ("%z = math.sqrt %x : f64", [0, 2**0.5, 0, 0], [0, 1, 1, 0]),
        ("%z = math.cos %x : f64", [1, np.cos(2), 1, 1], [1, 1, 1, 1]),
        ("%k = arith.constant 0x7FF0000000000000 : f64\n%z = arith.mulf %x, %k : f64",
         [0, np.inf, np.nan, 0], [0, 1, 1, 0]),
        ("%k = arith.constant 1.0 : f64\n%z = arith.addf %x, %k : f64", [1, 3, 1, 1], [1, 1, 1, 1]),
        ("%k = arith.constant 0.0 : f64\n%z = arith.subf %k, %x : f64",
         [0, -2, 0, 0], [0, 1, 1, 0]),
    ],
)  # fmt: skip
def test_structure_of_one_operation(body: str, values: list[float], stored: list[int]) -> None:
    a = from_coords([[1, 2]], np.array([2.0, 0.0]), (4,), "SV")
    text = on_vector(body)
    for result in (evaluate_module(parse_module(text), {"a": a})[0], api.compile_mlir(text)(a=a)):
        assert isinstance(result, SparseTensor)
        np.testing.assert_allclose(result.to_numpy(), values)
        assert stored_entries(result).tolist() == [bool(s) for s in stored]


def test_a_sparse_divisor_wants_a_dense_result() -> None:
    a = from_coords([[1, 2]], np.array([2.0, 0.0]), (4,), "SV")
    text = on_vector("%z = arith.divf %x, %x : f64")
    (result,) = evaluate_module(parse_module(text), {"a": a})
    assert isinstance(result, SparseTensor) and stored_entries(result).all()
    with pytest.raises(SparseDivisor):
        api.compile_mlir(text)
    quotient = api.evaluate("y[i] = a[i] / a[i]", a=a, out="dense")
    np.testing.assert_equal(quotient, [np.nan, 1.0, np.nan, np.nan])


def test_operands_that_do_not_fit() -> None:
    module = parse_module(on_vector("%z = arith.negf %x : f64"))
    a = from_coords([[1]], np.array([2.0]), (4,), "SV")
    with pytest.raises(reference.MissingValue):
        evaluate_module(module, {})
    with pytest.raises(reference.UnknownValue):
        evaluate_module(module, {"a": a, "b": a})
    with pytest.raises(reference.NotOfType):
        evaluate_module(module, {"a": np.zeros((4, 4))})
    with pytest.raises(reference.NoFunction):
        evaluate_module(module, {"a": a}, "min")
