"""Two devices side by side, and the command that compares them."""

from __future__ import annotations

import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner

from opdock.cli.conformance import command
from opdock.kernels.select.table import Kernel
from opdock.testing.harness.differential import compare_devices, relative_error, ulps
from opdock.testing.levels.device import DeviceUnderTest, open_device


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_ulps_count_steps(dtype: Any) -> None:
    one = np.array([1.0, -1.0], dtype)
    bits = {2: np.uint16, 4: np.uint32, 8: np.uint64}[np.dtype(dtype).itemsize]
    off = (one.view(bits) + bits(3)).view(dtype)
    assert ulps(one, one) == 0
    assert ulps(one, off) == 3
    assert ulps(one.reshape(2, 1)[:, 0], off) == 3
    assert ulps(np.array(1.0, dtype), np.array(1.0, dtype)) == 0


def test_ulps_of_other_types_and_values() -> None:
    nothing = np.zeros((0, 2), np.float32)
    assert ulps(nothing, nothing) == 0
    assert ulps(np.array([1, 2]), np.array([1, 3])) == 0
    assert ulps(np.array([1j], np.complex64), np.array([np.nextafter(np.float32(1), 2) * 1j])) == 1
    odd = np.array([np.nan, np.inf, 1.0])
    assert ulps(odd, odd) == 0
    assert ulps(np.array([1e-30, 1.0]), np.array([-1e-30, 1.0])) == 0  # near zero beside 1
    assert relative_error(np.array([1.0, 2.0]), np.array([1.0, 2.5])) == pytest.approx(0.2)


def test_two_devices_that_agree(dut: DeviceUnderTest) -> None:
    found = compare_devices(open_device("echo:0"), dut, ["Tanh", "MatMul", "Sum"])
    assert found.ok
    assert {p.op for p in found.pairs} >= {"Tanh", "MatMul"}
    assert all(p.cases for p in found.pairs)


@pytest.fixture
def dut() -> DeviceUnderTest:
    return open_device("cpu:0")


def test_a_difference_comes_first() -> None:
    right = open_device("cpu:0")
    wrong = open_device("echo:0")
    bad = Kernel(
        op="Tanh", priority=99, dtypes={"T": frozenset({_float32()})},
        when=lambda sig: sig.device is wrong.device,
        bind=lambda sig: lambda x: np.tanh(x) * np.float32(1.01),
    )  # fmt: skip
    entries = wrong.kernels
    entries.add([bad], "tests-differential")
    try:
        found = compare_devices(wrong, right, ["Tanh", "Sigmoid"])
    finally:
        entries._by_op["Tanh"] = [e for e in entries.entries("Tanh") if e.kernel is not bad]
    first = found.pairs[0]
    assert (first.op, first.dtype) == ("Tanh", "float32")
    assert first.ulp > 1000
    assert first.relative == pytest.approx(0.01, rel=0.1)
    assert "expected" in first.problem
    assert not found.ok
    assert "| Tanh | float32 |" in found.markdown()


def _float32() -> Any:
    from opdock.plugin import as_dtype

    return as_dtype("float32")


def test_the_command(tmp_path: Any) -> None:
    data, table = tmp_path / "a.json", tmp_path / "a.md"
    options = ["--device", "echo:0", "--against", "cpu:0", "--op", "Sigmoid"]
    done = CliRunner().invoke(command, [*options, "--json", str(data), "--markdown", str(table)])
    assert done.exit_code == 0, done.output
    assert "0 disagree" in done.output
    assert json.loads(data.read_text())["pairs"][0]["op"] == "Sigmoid"
    assert table.read_text().startswith("# ECHO:0 against CPU:0")
    nothing = CliRunner().invoke(command, [*options[:4], "--op", "NoSuchOp"])
    assert nothing.exit_code == 2
    mixed = CliRunner().invoke(command, [*options, "--level", "L2"])
    assert mixed.exit_code == 2
