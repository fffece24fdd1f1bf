"""Signals that come while oneDNN computes. pytest gives its threads stacks for handlers, so all of
this is in processes of their own."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from opdock_cpu.onednn import library

pytestmark = pytest.mark.skipif(
    bool(library.reason()) or sys.platform != "linux" or platform.machine() != "x86_64",
    reason="there is no oneDNN, or none with such code",
)

_PRODUCT = """
import ctypes, signal, threading
import numpy as np
import opdock as tf

class Stack(ctypes.Structure):
    _fields_ = (("place", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))

system = ctypes.CDLL(None)

def stack():
    found = Stack()
    assert system.sigaltstack(None, ctypes.byref(found)) == 0
    return found

rng = np.random.default_rng(0)
left, right = (rng.normal(size=(200, 200)).astype(np.float32) for _ in range(2))
x = tf.placeholder(tf.float32, left.shape)
y = tf.matmul(x, tf.constant(right))

def session(threads):
    return tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=threads))
"""


def run(program: str) -> None:
    command = [sys.executable, "-c", _PRODUCT + program]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("threads", [1, 2])
def test_products_are_right_whatever_signals_come(threads: int) -> None:
    run(f"""
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
with session({threads}) as sess:
    for _ in range(4000):
        found = sess.run(y, {{x: left}})
        np.testing.assert_allclose(found, left @ right, rtol=1e-3, atol=1e-2)
signal.setitimer(signal.ITIMER_REAL, 0)
""")


def test_each_thread_that_computes_has_a_stack_for_handlers() -> None:
    run("""
assert stack().flags == 2
with session(1) as sess:
    found = []
    def work():
        sess.run(y, {x: left})
        found.append(stack())
    for _ in range(3):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    work()
assert [s.flags for s in found] == [0, 0, 0, 0]
assert min(s.size for s in found) >= 1 << 14
""")


def test_a_stack_that_a_thread_has_is_kept() -> None:
    run("""
room = ctypes.create_string_buffer(1 << 15)
own = Stack(ctypes.addressof(room), 0, 1 << 15)
assert system.sigaltstack(ctypes.byref(own), None) == 0
with session(1) as sess:
    sess.run(y, {x: left})
assert stack().place == own.place
""")


def test_signals_come_again_where_they_came_before() -> None:
    run("""
kept = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
with session(2) as sess:
    sess.run(y, {x: left})
assert signal.pthread_sigmask(signal.SIG_SETMASK, kept) == {signal.SIGUSR1}
""")
