"""Spaces of schedules: every member is one that its family's writer takes, and the first is the one measured best."""

from __future__ import annotations

from importlib import import_module

import pytest

from sparsecc.backends.triton.contraction import Contraction
from sparsecc.backends.triton.fragments import EMITTERS
from sparsecc.passes.tiling import space_ring, space_staged, space_warpgroup
from sparsecc.passes.tiling.problem import Problem, Schedule
from sparsecc.passes.tiling.spaces import LARGEST, NoSchedule, legal, space
from sparsecc.targets import TARGETS, TargetAbility, known_target

GPUS = [name for name, target in TARGETS.items() if target.can(TargetAbility.SPARSE_MMA_2_4)]
SHAPES = [(14336, 4096), (28672, 8192), (8192, 8192), (4096, 14336), (4096, 4096)]
TOKENS = [None, 1, 8, 13, 16, 32, 64, 128, 512, 4096]


def contraction(target: str, problem: Problem, schedule: Schedule) -> Contraction:
    steps = schedule.parameters["steps"]
    return Contraction(
        name="k", comments=(), target=target, weight=problem.weight, dtype=problem.dtype,
        accumulator="i32" if problem.dtype == "i8" else "f32",
        out_dtype="i32" if problem.dtype == "i8" else problem.dtype, x_order=problem.x_order, y_order="tn",
        batched=(False, False), aligned=problem.aligned, epilogue=(),
        facts=(("steps", steps), ("entries", 40)) if problem.residual else (),
    )  # fmt: skip


@pytest.mark.parametrize("target", GPUS)
@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize(("weight", "dtype"), [("2:4", "f16"), ("2:4", "i8"), ("2:4+CSR", "bf16")])
def test_members_are_legal_and_few(
    target: str, tokens: int | None, weight: str, dtype: str
) -> None:
    for rows, reduction in [*SHAPES, (48, 68), (None, None), (11008, None)]:
        for x_order, aligned in (("tk", True), ("kt", True), ("tk", False)):
            problem = Problem(weight, dtype, tokens, rows, reduction, aligned, x_order)
            members = space(known_target(target), problem)
            assert 3 <= len(members) <= LARGEST
            assert len({m.key for m in members}) == len(members)
            for member in members:
                assert legal(known_target(target), problem, member)
                writer = import_module(EMITTERS[member.family])
                check = writer._plan if member.family == "warpgroup" else writer.shape
                check(contraction(target, problem, member), member.parameters)


@pytest.mark.parametrize("target", GPUS)
def test_members_can_be_written(target: str) -> None:
    for tokens in (8, 64, 512):
        problem = Problem("2:4", "f16", tokens, 4096, 4096)
        for member in space(known_target(target), problem):
            writer = import_module(EMITTERS[member.family])
            source = writer.emit(contraction(target, problem, member), member.parameters)
            compile(source.text, "kernel", "exec")


@pytest.mark.parametrize("tokens", space_staged.MEASURED)
def test_staged_defaults_are_those_measured(tokens: int) -> None:
    for (rows, reduction), config in space_staged.MEASURED[tokens].items():
        problem = Problem("2:4", "f16", tokens, rows, reduction)
        members = [m for m in space(known_target("sm_90"), problem) if m.family == "staged"]
        assert tuple(members[0].parameters[name] for name in space_staged.NAMES) == config


RING = ("tiles", "warps", "split", "steps", "ahead", "splitk")


@pytest.mark.parametrize("tokens", [8, 16])
@pytest.mark.parametrize("weight", ["2:4", "2:4+CSR"])
def test_ring_defaults_are_those_measured(tokens: int, weight: str) -> None:
    table = space_ring.MEASURED if weight == "2:4" else space_ring.RESIDUAL
    for (rows, reduction), configs in table[tokens].items():
        members = space(known_target("sm_90"), Problem(weight, "f16", tokens, rows, reduction))
        found = [tuple(m.parameters[name] for name in RING) for m in members[: len(configs)]]
        assert members[0].family == "ring"
        assert found == list(configs)


@pytest.mark.parametrize("tokens", [64, 128])
def test_warpgroup_defaults_are_those_measured(tokens: int) -> None:
    for (rows, reduction), configs in space_warpgroup.FEW[tokens].items():
        members = space(known_target("sm_90"), Problem("2:4", "f16", tokens, rows, reduction))
        for member, (config, split) in zip(members, configs, strict=False):
            assert member.family == "warpgroup"
            assert tuple(member.parameters[name] for name in space_warpgroup.NAMES) == config
            assert member.parameters["split"] == split


@pytest.mark.parametrize(
    ("tokens", "rows", "reduction", "family"),
    [
        (16, 8192, 8192, "ring"), (16, 4096, 14336, "ring"), (16, 14336, 4096, "ring"),
        (32, 14336, 4096, "staged"), (32, 28672, 8192, "ring"), (64, 4096, 4096, "warpgroup"),
        (512, 8192, 8192, "warpgroup"), (None, None, None, "ring"),
    ],
)  # fmt: skip
def test_who_leads_on_a_target_with_all_families(
    tokens: int | None, rows: int | None, reduction: int | None, family: str
) -> None:
    first = space(known_target("sm_90"), Problem("2:4", "f16", tokens, rows, reduction))[0]
    assert first.family == family


def test_the_widest_tile_leads_where_tokens_are_many() -> None:
    first = space(known_target("sm_90"), Problem("2:4", "f16", 4096, 4096, 4096))[0].parameters
    assert (first["warpgroups"], first["specialised"], first["row_tiles"]) == (2, 1, 1)
    assert (first["tokens"], first["steps"], first["stages"]) == (256, 4, 3)


@pytest.mark.parametrize("target", GPUS)
def test_warpgroups_are_asked_for_only_where_they_are(target: str) -> None:
    families = {m.family for m in space(known_target(target), Problem("2:4", "f16", 512))}
    able = known_target(target).can(TargetAbility.WGMMA_SPARSE)
    assert families == ({"warpgroup", "staged"} if able else {"staged"})


def test_few_rows_share_the_processors_by_cutting_k() -> None:
    for tokens in (8, 64):
        first = space(known_target("sm_90"), Problem("2:4", "f16", tokens, 512, 8192))[0]
        name = "split" if first.family == "warpgroup" else "splitk"
        assert first.parameters[name] > 1


def test_a_packed_residual_fixes_the_steps() -> None:
    for steps in (4, 8):
        problem = Problem("2:4+CSR", "f16", 8, 14336, 4096, steps=steps)
        members = space(known_target("sm_90"), problem)
        assert {m.parameters["steps"] for m in members} == {steps}


def test_refusals_say_why() -> None:
    with pytest.raises(NoSchedule, match="cpu has no sparse matrix instructions"):
        space(known_target("cpu"), Problem("2:4", "f16"))
    with pytest.raises(NoSchedule, match="16 bits wide"):
        space(known_target("sm_90"), Problem("2:4+CSR", "i8"))
