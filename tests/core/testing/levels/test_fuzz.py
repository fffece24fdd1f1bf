"""Fuzzing: the same examples for a seed, shrunk and saved failures, graphs against the oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from opdock.cli.conformance import command
from opdock.cli.replay_case import command as replay
from opdock.kernels.select.table import Kernel
from opdock.runtime.inspect.cases import load_case
from opdock.testing.harness import suite
from opdock.testing.levels.device import DeviceUnderTest, open_device
from opdock.testing.levels.fuzz import FuzzOptions, fuzz_units


@pytest.fixture
def dut() -> DeviceUnderTest:
    return open_device("cpu:0")


@pytest.fixture
def broken_abs(dut: DeviceUnderTest) -> Any:
    """Abs is wrong for more than two elements."""

    def bind(sig: Any) -> Any:
        return lambda x: np.abs(x) + (np.size(x) > 2) * x.dtype.type(1)

    bad = Kernel(op="Abs", priority=99, when=lambda sig: sig.device is dut.device, bind=bind)
    dut.kernels.add([bad], "tests-fuzz")
    yield
    dut.kernels._by_op["Abs"] = [e for e in dut.kernels.entries("Abs") if e.kernel is not bad]


def test_a_seed_gives_the_same_units(dut: DeviceUnderTest) -> None:
    first = [u.id for u in fuzz_units(dut, options=FuzzOptions(300, 5))]
    assert first == [u.id for u in fuzz_units(dut, options=FuzzOptions(300, 5))]
    assert first != [u.id for u in fuzz_units(dut, options=FuzzOptions(300, 6))]
    assert len(first) == 30
    assert sum(name.startswith("L7/graph") for name in first) == 6


def test_what_is_right_passes(dut: DeviceUnderTest, tmp_path: Path) -> None:
    options = FuzzOptions(400, 1, tmp_path)
    for unit in fuzz_units(dut, options=options):
        for result in unit.results()[0]:
            assert result.status in ("passed", "skipped"), result
    assert not list(tmp_path.iterdir())


def test_a_failure_is_shrunk_saved_and_replayed(
    dut: DeviceUnderTest, broken_abs: Any, tmp_path: Path
) -> None:
    units = fuzz_units(dut, frozenset({"Abs"}), FuzzOptions(200, 0, tmp_path))
    failed = [r for u in units for r in u.results()[0] if r.status == "failed"]
    assert failed
    assert "expected" in failed[0].reason
    path = next(tmp_path.glob("Abs-*.npz"))
    case = load_case(path)
    assert [n.op for n in case.graph_def.node] == ["Placeholder", "Abs"]
    assert case.difference(case.run("cpu:0"))
    assert CliRunner().invoke(replay, [str(path)]).exit_code == 1
    assert CliRunner().invoke(replay, [str(path), "--device", "echo:0"]).exit_code == 0


def test_graphs_find_it_too(dut: DeviceUnderTest, broken_abs: Any, tmp_path: Path) -> None:
    units = [u for u in fuzz_units(dut, options=FuzzOptions(2000, 0, tmp_path)) if "graph" in u.id]
    # Where the first fails the others need not run.
    failed = next((r for u in units for r in u.results()[0] if r.status == "failed"), None)
    assert failed is not None
    assert "Abs" in failed.reason
    case = load_case(next(tmp_path.glob("graph-*.npz")))
    assert "Abs" in {n.op for n in case.graph_def.node}


def test_the_suite_fuzzes_on_demand_only(dut: DeviceUnderTest) -> None:
    assert not [u for u in suite.units(dut) if u.level == "L7"]
    assert suite.units(dut, ["L7"], ["Abs"])
    report = suite.run(dut, ["L0"], ["Abs", "empty"], fuzz=FuzzOptions(20))
    assert {o.level for o in report.outcomes} == {"L0", "L7"}
    assert report.passed_ids() == ["L0/empty"]
    assert not suite.run(dut, ["L7"], fuzz=FuzzOptions(10_000, seconds=1e-9)).outcomes[2:]


def test_the_command_fails_and_says_where(broken_abs: Any, tmp_path: Path) -> None:
    options = ["--level", "L0", "--op", "Abs", "--fuzz", "100", "--fuzz-save", str(tmp_path)]
    done = CliRunner().invoke(command, options)
    assert done.exit_code == 1, done.output
    assert "failed L7/Abs" in done.output
    assert str(tmp_path) in done.output


def test_twins_take_the_other_index_type(dut: DeviceUnderTest) -> None:
    report = suite.run(dut, ["L2"], ["GatherV2", "MatrixBandPart", "UniqueV2"])
    assert report.ok
    data = {r.case for o in report.outcomes for r in o.results}
    assert any("Tindices-int64" in case for case in data)
    assert any("Tindex-int32" in case for case in data)
    assert any("out_idx-int64" in case for case in data)
