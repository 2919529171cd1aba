from __future__ import annotations

import pytest

from sparsecc.targets import (
    TARGETS,
    NoCodeForTarget,
    Target,
    TargetAbility,
    UnknownTarget,
    code_target,
    known_target,
)

GPUS = [target for name, target in TARGETS.items() if name.startswith("sm_")]


def test_the_four_targets() -> None:
    assert list(TARGETS) == ["cpu", "sm_80", "sm_90", "sm_100"]
    assert all(target.name == name for name, target in TARGETS.items())


def test_unknown_target_suggests() -> None:
    with pytest.raises(UnknownTarget, match="did you mean 'sm_90'"):
        known_target("sm_91")


def test_only_the_cpu_gets_code() -> None:
    assert code_target("cpu").can(TargetAbility.LOOPS)
    for gpu in GPUS:
        with pytest.raises(NoCodeForTarget, match="does not generate code"):
            code_target(gpu.name)


def test_abilities_by_generation() -> None:
    able = {name for name, target in TARGETS.items() if target.can(TargetAbility.WGMMA_SPARSE)}
    assert able == {"sm_90"}
    able = {name for name, target in TARGETS.items() if target.can(TargetAbility.SPARSE_MMA_2_4)}
    assert able == {"sm_80", "sm_90", "sm_100"}


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.name)
def test_shapes_need_their_ability_and_halve_a_sparse_operand(gpu: Target) -> None:
    needs = {
        "mma": TargetAbility.MMA,
        "mma.sp": TargetAbility.SPARSE_MMA_2_4,
        "wgmma": TargetAbility.WGMMA,
        "wgmma.sp": TargetAbility.WGMMA_SPARSE,
    }
    for shape in gpu.shapes:
        assert gpu.can(needs[shape.instruction]), shape
        assert shape.dtype in gpu.dtypes
        if shape.sparse:
            dense = gpu.matrix_shapes(shape.dtype, sparse=False)
            assert any(2 * d.k == shape.k and d.m == shape.m and d.n == shape.n for d in dense)


@pytest.mark.parametrize(("name", "rows"), [("sm_80", 153), ("sm_90", 206), ("sm_100", 281)])
def test_rates_give_the_known_machine_balance(name: str, rows: int) -> None:
    # Rows of a dense fp16 product from which arithmetic binds: (bytes / 2) * peak / bandwidth.
    target = known_target(name)
    peak, bandwidth = target.rate("half_flops"), target.rate("bandwidth")
    assert peak is not None and bandwidth is not None
    assert round(peak.value / bandwidth.value) == rows


def test_a_rate_that_nobody_measured_is_none() -> None:
    assert known_target("cpu").rate("bandwidth") is None
    measured = known_target("sm_90").rate("read_bandwidth")
    assert measured is not None
    assert str(measured) == "4.09e+12 B/s (measured)"
