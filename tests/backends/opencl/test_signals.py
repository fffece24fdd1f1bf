"""Signals are the program's, whatever a driver does with them."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

NAMES = ["SIGUSR1", "SIGUSR2", "SIGHUP", "SIGQUIT", "SIGABRT", "SIGTRAP", "SIGXCPU", "SIGTERM"]

LISTED = """
import os, signal, sys
import opdock as tf
number = getattr(signal, sys.argv[1])
came = []
# Those who start this may have it ignored.
signal.signal(number, (lambda *_: came.append(1)) if sys.argv[2] == "handler" else signal.SIG_DFL)
with tf.Session() as session:
    kinds = {d.device_type for d in session.list_devices()}
    assert "OPENCL" in kinds, kinds
    with tf.device("/device:OPENCL:0"):
        assert session.run(tf.constant([1.0]) + 2.0) == 3.0
for _ in range(2):
    os.kill(os.getpid(), number)
print(len(came))
"""


@pytest.mark.parametrize("name", NAMES)
def test_a_handler_runs_each_time(name: str) -> None:
    done = run(name, "handler")
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_a_process_without_handler_ends(name: str) -> None:
    done = run(name, "none")
    assert (done.returncode, done.stdout) == (-getattr(signal, name), "")


def run(name: str, handler: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LISTED, name, handler], capture_output=True, text=True, check=False
    )
