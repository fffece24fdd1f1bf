"""Signals are the program's, whatever a driver does with them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

NAMES = ["SIGUSR1", "SIGUSR2", "SIGHUP", "SIGQUIT", "SIGABRT", "SIGTRAP", "SIGXCPU", "SIGTERM"]

LISTED = """
import json, os, resource, signal, sys
import opdock as tf
kind, *names = sys.argv[1:]
came = dict.fromkeys(names, 0)

def handler(number, frame):
    came[signal.Signals(number).name] += 1

for name in names:
    # Those who start this may have it ignored.
    signal.signal(getattr(signal, name), handler if kind == "handler" else signal.SIG_DFL)
with tf.Session() as session:
    kinds = {d.device_type for d in session.list_devices()}
    assert "OPENCL" in kinds, kinds
    with tf.device("/device:OPENCL:0"):
        assert session.run(tf.constant([1.0]) + 2.0) == 3.0

def twice(name):
    for _ in range(2):
        os.kill(os.getpid(), getattr(signal, name))

def ends(name):
    # What is done with a signal a child has from its parent.
    child = os.fork()
    if not child:
        twice(name)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
if kind == "handler":
    for name in names:
        twice(name)
    print(json.dumps(came))
else:
    print(json.dumps({name: ends(name) for name in names}))
"""


def said(kind: str) -> dict[str, int]:
    """What became of each signal, in one process: to start a driver takes long."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LISTED, kind, *NAMES],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def handled() -> dict[str, int]:
    return said("handler")


@pytest.fixture(scope="module")
def ended() -> dict[str, int]:
    return said("none")


@pytest.mark.parametrize("name", NAMES)
def test_a_handler_runs_each_time(name: str, handled: dict[str, int]) -> None:
    assert handled[name] == 2


@pytest.mark.parametrize("name", NAMES)
def test_a_process_without_handler_ends(name: str, ended: dict[str, int]) -> None:
    assert ended[name] == -getattr(signal, name)
