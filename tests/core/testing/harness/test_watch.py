"""Work that never ends is given up; what ends, ends as it would without a watch."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opdock.plugin as api
from opdock.testing.harness import suite
from opdock.testing.harness import watch as harness
from opdock.testing.harness.watch import Overdue, Watch
from opdock.testing.levels.device import DeviceUnderTest, open_device
from opdock.testing.report.render import markdown
from opdock.testing.report.report import Report
from tests.threads import WAIT

F32 = frozenset({api.as_dtype("float32")})
never = threading.Event()
table = api.KernelTable()


def spin() -> None:
    while not never.is_set():
        pass


def test_what_work_gives_or_raises_comes_out() -> None:
    watch = Watch()
    assert watch.run(lambda: 7) == 7
    with pytest.raises(TimeoutError, match="its own"):
        watch.run(lambda: (_ for _ in ()).throw(TimeoutError("its own")))
    threads = {watch.run(threading.get_ident) for _ in range(3)}
    assert len(threads) == 1
    assert threads != {threading.get_ident()}
    watch.close()


def test_a_loop_in_python_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "_GRACE", WAIT)  # it ends, however long that takes
    watch = Watch(0.05)
    before = set(threading.enumerate())
    with pytest.raises(Overdue, match=r"after 0\.05 s, in \w+ \(\w+\.py:\d+\)"):
        watch.run(spin)
    assert watch.left_behind == 0
    assert set(threading.enumerate()) <= before
    watch.limit = None
    assert watch.run(lambda: 7) == 7
    watch.close()


def test_a_call_in_c_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "_GRACE", 0.0)  # it does not end, however long one waits
    gate = threading.Lock()
    gate.acquire()
    watch = Watch(0.05)
    try:
        with pytest.raises(Overdue, match="still running"):
            watch.run(gate.acquire)
        assert watch.left_behind == 1
        watch.limit = None
        assert watch.run(lambda: 7) == 7
    finally:
        gate.release()
        watch.close()


# Time passes from when the call has the lock, however late it begins.
HOLDS = """
import ctypes, faulthandler
from opdock.testing.harness import watch

watch._FATAL = 0.2
wait, begin, begun = watch.wait, faulthandler.dump_traceback_later, []
watch.wait = lambda answers, limit: wait(answers)
faulthandler.dump_traceback_later = lambda *args, **how: begun.append((args, how))
pause = ctypes.PyDLL(None).pause

def holds_the_lock():
    while not begun:
        pass
    args, how = begun[0]
    begin(*args, **how)
    pause()

watch.Watch(0.1, fatal=True).run(holds_the_lock)
"""


def test_a_call_that_holds_the_interpreter_ends_the_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HOLDS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "in holds_the_lock" in done.stderr


# ---------------------------------------------------------------- the suite
class Device(api.BaseDevice):
    dtypes = F32

    def upload(self, array: Any) -> Any:
        return np.array(array)

    def download(self, buffer: Any) -> Any:
        return np.array(buffer)


def probe() -> api.Probe:
    return api.Probe(devices=(api.DeviceAttributes(index=0),))


@table.kernel("Neg", T=F32)
def hangs(ctx: Any, x: Any) -> Any:
    os.environ["OPDOCK_DISABLE_PASSES"] = "left by a unit that did not end"
    spin()


@table.kernel("Abs", T=F32)
def right(ctx: Any, x: Any) -> Any:
    return np.abs(x)


@api.hookimpl
def opdock_backends() -> Iterator[api.BackendSpec]:
    yield api.BackendSpec(
        name="sluggish", device_type="SLUGGISH", own_type="SLUGGISH", api=(1, 0), priority=-50,
        probe=f"{__name__}:probe", device=f"{__name__}:Device",
        kernels=(f"{__name__}:table",), automatic=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def dut() -> Iterator[DeviceUnderTest]:
    api.register(sys.modules[__name__], "sluggish-for-tests")
    yield open_device("sluggish:0")
    api.unregister("sluggish-for-tests")


def run(dut: DeviceUnderTest, **options: Any) -> Report:
    """L2 of two ops; only the one that hangs has a limit, so that no machine is too slow."""
    watch = Watch()

    def progress(number: int, total: int, unit: Any) -> None:
        watch.limit = 0.1 if (unit.op, unit.dtype) == ("Neg", "float32") else None

    return suite.run(dut, ["L2"], ["Neg", "Abs"], progress, watch=watch, **options)


def test_a_unit_that_hangs_fails_and_the_others_run(
    dut: DeviceUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPDOCK_DISABLE_PASSES", raising=False)
    monkeypatch.setattr(harness, "_GRACE", WAIT)
    report = run(dut)
    status = {o.id: o.status for o in report.outcomes}
    assert status["L2/Neg/float32"] == "failed"
    assert status["L2/Abs/float32"] == "passed"
    (failed,) = report.failures()
    assert failed.kind == "timeout"
    assert failed.reason.startswith("still running after 0.1 s, in ")
    (told,) = (c for c in report.to_dict()["cases"] if c["status"] == "failed")
    assert told["kind"] == "timeout"
    assert not report.ok
    assert not report.left
    assert "OPDOCK_DISABLE_PASSES" not in os.environ


def test_ctrl_c_gives_what_has_run(dut: DeviceUnderTest) -> None:
    def stop(number: int, total: int, unit: Any) -> None:
        if number == 1:
            raise KeyboardInterrupt

    report = suite.run(dut, ["L2"], ["Abs", "Neg"], stop)
    assert [o.id for o in report.outcomes] == ["L2/Abs/float32"]
    assert report.left == 1
    assert report.to_dict()["partial"] is True
    assert "**Partial:** the run was stopped; units that did not run: 1." in markdown(report)


def test_reports_are_kept_while_it_runs(
    dut: DeviceUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Report] = []
    monkeypatch.setattr(suite, "_EVERY", 0.0)
    report = suite.run(dut, ["L2"], ["Abs"], keep=kept.append)
    assert [len(r.outcomes) for r in kept] == list(range(1, len(report.outcomes) + 1))
    assert [r.left for r in kept] == list(reversed(range(len(report.outcomes))))


def test_one_op_makes_no_sample_of_another(
    dut: DeviceUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What answers for one op does no work for the others."""
    from opdock.testing.harness.sample import SampleSet

    made: list[str] = []
    make = SampleSet.make

    def counted(self: SampleSet, dtype: Any) -> Any:
        made.append(self.op)
        return make(self, dtype)

    monkeypatch.setattr(SampleSet, "make", counted)
    levels = [level for level in suite.LEVELS if level != "L7"]
    units = suite.units(dut, levels, ["Abs"])
    assert not made
    assert {u.op for u in units} == {"Abs"}
    suite.run(dut, levels, ["Abs"])
    assert set(made) == {"Abs"}


def test_a_name_that_nothing_has_is_an_error(dut: DeviceUnderTest) -> None:
    with pytest.raises(ValueError, match=r"no op or test 'MatMull'; did you mean MatMul\?"):
        suite.units(dut, ["L2"], ["Abs", "MatMull"])
    assert suite.units(dut, ["L0"], ["round-trip"])
    assert not suite.units(dut, ["L0"], ["Neg"])
