"""`opdock bench`: what it times is right, and what is not is told."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import opdock.plugin as api
from opdock.cli.bench import command
from opdock.testing.levels.device import open_device
from opdock.testing.measure import Effort, Measured, measure
from opdock.testing.workloads.table import ALL

table = api.KernelTable()


class Crooked(api.BaseDevice):
    """Host arrays; sums are one too much, and roots fail."""

    def upload(self, array: Any) -> Any:
        return np.array(array)

    def download(self, buffer: Any) -> Any:
        return np.array(buffer)


def probe() -> api.Probe:
    return api.Probe(devices=(api.DeviceAttributes(index=0),))


@table.binder("Neg", T=api.FLOATS)
def off_by_one(sig: Any) -> Any:
    return lambda x: -x + x.dtype.type(1)


@table.binder("Relu", T=api.FLOATS)
def failing(sig: Any) -> Any:
    def relu(x: Any) -> Any:
        raise RuntimeError("the coffee is on the keyboard")

    return relu


@api.hookimpl
def opdock_backends() -> Iterator[api.BackendSpec]:
    yield api.BackendSpec(
        name="crooked", device_type="CROOKED", own_type="CROOKED", api=(1, 0), priority=-50,
        probe=f"{__name__}:probe", device=f"{__name__}:Crooked",
        kernels=(f"{__name__}:table",), automatic=False,
    )  # fmt: skip


@pytest.fixture
def crooked() -> Iterator[None]:
    api.register(sys.modules[__name__], "crooked-for-tests")
    yield
    api.unregister("crooked-for-tests")


def bench(*words: str) -> Any:
    return CliRunner().invoke(command, [*words, "--seconds", "0.01"])


def test_devices_stand_side_by_side() -> None:
    result = bench("run_overhead", "logreg_*", "--device", "cpu:0", "--device", "echo:0")
    assert result.exit_code == 0, result.output
    head, *rows = result.output.splitlines()
    assert head.split() == ["ms", "a", "step", "cpu:0", "echo:0", "cpu:0", "/", "echo:0"]
    assert [row.split()[0] for row in rows] == ["run_overhead", "logreg_train"]
    for row in rows:
        ours, theirs, ratio = map(float, row.split()[1:])
        assert ratio == pytest.approx(ours / theirs, rel=0.02, abs=0.02)


def test_wrong_answers_and_failures_are_told_and_not_timed(crooked: None) -> None:
    words = ("run_overhead", "mlp_train_small", "--device", "cpu:0", "--device", "crooked:0")
    result = bench(*words)
    assert result.exit_code == 1
    told = [line for line in result.output.splitlines() if line.startswith("wrong")]
    assert "run_overhead on crooked:0" in told[0] and "from the right answer" in told[0]
    found = json.loads(bench(*words, "--json").output)
    assert [bool(one["wrong"]) for one in found[:2]] == [False, True]
    assert found[1]["ms"] is None and found[0]["ms"] > 0


def test_what_fails_on_one_device_is_timed_on_the_others(crooked: None) -> None:
    devices = [open_device("crooked:0"), open_device("cpu:0")]
    found = measure(ALL["elementwise_fusion"], devices, Effort(0.01, 1))
    assert "coffee" in found[0].wrong and not found[0].times
    assert not found[1].wrong and found[1].times


def test_ops_that_move_are_counted() -> None:
    (one,) = measure(ALL["lstm_loop"], [open_device("echo:0")], Effort(0.01, 1))
    assert one.ops >= one.elsewhere and one.first > 0
    assert json.dumps(one.to_dict())
    assert Measured("x", "y").to_dict()["ms"] is None


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["mlp_trian_small"], "did you mean 'mlp_train_small'?"),
        (["run_overhead", "--device", "none:0"], "none:0"),
        (["run_overhead", "--device", "cpu"], "cpu"),
    ],
)
def test_names_that_are_wrong(words: list[str], told: str) -> None:
    result = bench(*words)
    assert result.exit_code == 2 and told in result.output, result.output


def test_the_list() -> None:
    listed = json.loads(bench("--list", "--json").output)
    assert [one["workload"] for one in listed] == list(ALL)
    assert "resnet_infer_b1" in bench("--list").output
