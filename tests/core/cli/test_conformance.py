"""`opdock conformance` as a command: what it prints where, and how it ends when it is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

PLUGIN = """
import ctypes
from pathlib import Path

import numpy as np
from opdock.plugin import BackendSpec, BaseDevice, DeviceAttributes, KernelTable, Probe, hookimpl
from opdock.plugin import dtypes
from opdock.testing.harness import watch

hanging, wait, watch._FATAL = [], watch.wait, 600


def waits(answers, limit=None):
    # What does not hang may take as long as it likes: no machine is too slow.
    while limit is not None and not hanging and not wait(answers, 0.05).done:
        pass
    return wait(answers, limit)


watch.wait = waits

table = KernelTable()


@hookimpl
def opdock_backends():
    yield BackendSpec(
        name="stuck", device_type="STUCK", own_type="STUCK", api=(1, 0), priority=-50,
        probe="stuck:probe", device="stuck:Stuck", kernels=("stuck:table",), automatic=False,
    )


def probe():
    return Probe(devices=[DeviceAttributes(index=0)])


class Stuck(BaseDevice):
    dtypes = frozenset({dtypes.float32})

    def upload(self, array):
        return np.array(array)

    def download(self, buffer):
        return np.array(buffer)


@table.kernel("Abs", T={dtypes.float32})
def right(ctx, x):
    return np.abs(x)


@table.kernel("Neg", T={dtypes.float32})
def hangs_in_c(ctx, x):
    Path("it-hangs").touch()
    hanging.append(True)
    while True:
        ctypes.CDLL(None).pause()


@table.kernel("Sqrt", T={dtypes.float32})
def crashes(ctx, x):
    ctypes.string_at(0)
"""


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    (folder / "stuck.py").write_text(PLUGIN, encoding="utf-8")
    env = {k: v for k, v in os.environ.items() if not k.startswith("OPDOCK_")}
    command = ("-m", "opdock.cli.main", "conformance", "--device", "stuck:0", *words)
    return subprocess.Popen(
        [sys.executable, *command], cwd=folder, env=env | {"OPDOCK_PLUGINS": "./stuck.py,cpu"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def conformance(folder: Path, *words: str) -> tuple[int, str, str]:
    done = start(folder, *words)
    out, err = done.communicate()
    return done.returncode, out, err


def loaded(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_a_pipe_gets_no_progress(tmp_path: Path) -> None:
    status, out, err = conformance(tmp_path, "--level", "L2", "--op", "Abs")
    assert status == 0, out + err
    assert out.startswith("conformance of /job:localhost")
    assert "\x1b" not in out
    assert not err


def test_json_on_stdout_is_alone_there(tmp_path: Path) -> None:
    status, out, err = conformance(tmp_path, "--level", "L2", "--op", "Abs", "--json", "-")
    assert status == 0, out + err
    data = json.loads(out)
    assert data["units"] == {"L2/Abs/float32": "passed"}
    assert data["partial"] is False
    assert "claims passed: 1/1" in err


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (("--op", "MatMull"), 2, "There is no op or test 'MatMull'; did you mean MatMul?"),
        (("--op", "MatMull", "--against", "cpu:0"), 2, "There is no op or test 'MatMull'"),
        (("--op", "Exp", "--against", "cpu:0"), 2, "nothing ran: stuck:0 claims none of Exp"),
        (("--op", "Exp", "--level", "L2"), 2, "nothing ran: stuck:0 has no unit for Exp in L2"),
        (("--unit-timeout", "-1"), 2, "-1.0 is not in the range"),
        (("--level", "L99"), 2, "There is no level L99"),
    ],
)
def test_what_cannot_be_run_is_said(
    tmp_path: Path, words: tuple[str, ...], status: int, told: str
) -> None:
    found, out, err = conformance(tmp_path, *words)
    assert found == status, out + err
    assert told in err


def test_a_kernel_that_hangs_in_c_costs_its_unit_only(tmp_path: Path) -> None:
    words = ("--level", "L2", "--op", "Abs", "--op", "Neg", "--unit-timeout", "0.5")
    status, out, err = conformance(tmp_path, *words, "--json", "report.json")
    assert status == 1, out + err
    assert "failed L2/Neg/float32: still running after 0.5 s, in hangs_in_c (stuck.py:" in out
    data = loaded(tmp_path / "report.json")
    (told,) = (c for c in data["cases"] if c["id"] == "L2/Neg/float32")
    assert told["kind"] == "timeout"
    assert set(data["units"]) == {"L2/Abs/float32", "L2/Neg/float32"}


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminated"])
def test_a_run_that_is_ended_reports_what_has_run(tmp_path: Path, asked: signal.Signals) -> None:
    words = ("--level", "L2", "--op", "Abs", "--op", "Neg", "--report", "all")
    outputs = ("--json", "report.json", "--markdown", "report.md", "--write-baseline", "base.json")
    process = start(tmp_path, *words, *outputs)
    while not (tmp_path / "it-hangs").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(asked)
    out, err = process.communicate()
    assert process.returncode == 130, out + err
    assert "the run was stopped" in out
    data = loaded(tmp_path / "report.json")
    assert (data["partial"], data["units_left"]) == (True, 1)
    assert data["units"] == {"L2/Abs/float32": "passed"}
    assert "**Partial:**" in (tmp_path / "report.md").read_text(encoding="utf-8")
    assert {p.name for p in (tmp_path / "all").iterdir()} == {"report.json", "matrix.md"}
    assert not (tmp_path / "base.json").exists()


def test_two_devices_have_the_same_manners(tmp_path: Path) -> None:
    words = ("--against", "cpu:0", "--op", "Abs", "--op", "Neg", "--unit-timeout", "0.5")
    status, out, err = conformance(tmp_path, *words, "--json", "-")
    assert status == 1, out + err
    pairs = {p["op"]: p["problem"] for p in json.loads(out)["pairs"]}
    assert pairs.keys() == {"Abs", "Neg"}
    assert pairs["Neg"].startswith("timeout: still running after 0.5 s, in hangs_in_c")
    assert "2 pairs of op and type compared" in err


def test_a_crash_says_where_it_was(tmp_path: Path) -> None:
    status, out, err = conformance(tmp_path, "--level", "L2", "--op", "Sqrt")
    assert status == -signal.SIGSEGV, out + err
    assert "in crashes" in err
    assert "in L2/Sqrt/float32" in err


def test_a_crash_between_two_devices_says_what_was_compared(tmp_path: Path) -> None:
    status, out, err = conformance(tmp_path, "--against", "cpu:0", "--op", "Sqrt")
    assert status == -signal.SIGSEGV, out + err
    assert "in Sqrt/float32" in err
