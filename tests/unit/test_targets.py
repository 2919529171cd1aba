from __future__ import annotations

from dataclasses import replace

import pytest

from sparsecc.targets import (
    REFUSED,
    TARGETS,
    DeviceTooOld,
    NoCodeForTarget,
    OtherDevice,
    Target,
    TargetAbility,
    TargetRefused,
    UnknownTarget,
    code_target,
    device_target,
    known_target,
    runs_as,
)

GPUS = [target for name, target in TARGETS.items() if name.startswith("sm_")]


def test_the_four_targets() -> None:
    assert list(TARGETS) == ["cpu", "sm_80", "sm_90", "sm_100"]
    assert all(target.name == name for name, target in TARGETS.items())


def test_unknown_target_suggests() -> None:
    with pytest.raises(UnknownTarget, match="did you mean 'sm_90'"):
        known_target("sm_91")


def test_every_target_gets_code() -> None:
    assert code_target("cpu").can(TargetAbility.LOOPS)
    for gpu in GPUS:
        assert code_target(gpu.name).can(TargetAbility.TILES)


def test_a_target_that_is_data_alone_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    later = replace(known_target("sm_100"), name="sm_110", generates=False)
    monkeypatch.setitem(TARGETS, "sm_110", later)
    with pytest.raises(NoCodeForTarget, match="does not generate code for sm_110"):
        code_target("sm_110")


@pytest.mark.parametrize("name", ["sm_86", "sm_89"])
def test_machines_that_run_the_code_of_ampere(name: str) -> None:
    assert known_target(name).name == "sm_80"


@pytest.mark.parametrize("name", REFUSED)
def test_refused_machines_say_why(name: str) -> None:
    with pytest.raises(TargetRefused, match=f"{name} gets no code: .*\n.*compile for sm_80"):
        code_target(name)


@pytest.mark.parametrize(
    ("capability", "target"),
    [
        ((8, 0), "sm_80"),
        ((8, 6), "sm_80"),
        ((8, 9), "sm_80"),
        ((9, 0), "sm_90"),
        ((10, 0), "sm_100"),
    ],
)
def test_the_target_of_a_device(capability: tuple[int, int], target: str) -> None:
    assert device_target(capability) == target
    assert runs_as(target, "a GPU", capability) == "cubin"


@pytest.mark.parametrize("capability", [(7, 5), (10, 3), (12, 0), (13, 0)])
def test_devices_without_a_target(capability: tuple[int, int]) -> None:
    with pytest.raises(TargetRefused):
        device_target(capability)


def test_which_code_a_device_runs() -> None:
    assert runs_as("sm_80", "H200", (9, 0)) == "ptx"
    assert runs_as("sm_80", "a consumer Blackwell", (12, 0)) == "ptx"
    with pytest.raises(DeviceTooOld, match=r"sm_90 does not run on A100 .*8\.0.*older"):
        runs_as("sm_90", "A100", (8, 0))
    with pytest.raises(OtherDevice, match="sm_90 does not run on B200"):
        runs_as("sm_90", "B200", (10, 0))
    with pytest.raises(DeviceTooOld):
        runs_as("sm_80", "T4", (7, 5))


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
