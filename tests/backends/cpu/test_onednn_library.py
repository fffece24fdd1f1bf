"""How oneDNN is found, what is said when it is not, and how many threads it takes."""

from __future__ import annotations

import concurrent.futures
import os
import subprocess
import sys
import types

import numpy as np
import pytest
from click.testing import CliRunner

import opdock as tf
from opdock.cli.doctor import command
from opdock_cpu.onednn import interface_source, library
from opdock_cpu.onednn.library import Library
from tests.backends.cpu.onednn import data, needs_onednn

PROGRAM = """
import numpy as np, opdock as tf
x = tf.constant(np.ones((2, 9, 9, 3)), tf.float32)
y = tf.nn.max_pool(tf.nn.relu(tf.nn.conv2d(tf.placeholder(tf.float32, [2, 9, 9, 3], name="x"),
    tf.ones([3, 3, 3, 4]), [1, 1, 1, 1], "SAME")), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
with tf.Session() as session:
    feeds = {"x:0": np.ones((2, 9, 9, 3))}
    print(session.run(y, feeds).sum(), session.explain(y, {k: v for k, v in feeds.items()}))
"""


def run(code, **env):
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **env}, capture_output=True, text=True,
        check=True,
    ).stdout  # fmt: skip


def test_numpy_serves_where_it_is_switched_off():
    off, on = run(PROGRAM, OPDOCK_ONEDNN="off"), run(PROGRAM)
    assert off.split()[0] == on.split()[0]
    assert "opdock_cpu.onednn" not in off


@needs_onednn
def test_threads_that_wait_for_work_outlive_the_interpreter():
    """They spin in the code of libraries, which have to stay where they are until the end."""
    code = """
import numpy as np
from opdock_cpu.onednn.matmul import product
from opdock_cpu.onednn.memory import dense
square, ones = dense((512, 512)), np.ones((512, 512), np.float32)
product(square, square, square, count=2).run(ones, ones, np.empty_like(ones))
"""
    run(code, OMP_WAIT_POLICY="active")  # which fails where the interpreter crashes


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("off", "switched off (OPDOCK_ONEDNN=off)"),
        ("/nowhere/libdnnl.so.3", "does not load: '/nowhere/libdnnl.so.3'"),
        ("libc.so.6", "is not oneDNN: it has no dnnl_version"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="libc has another name elsewhere")
def test_the_reason_is_told(path, told):
    code = "from opdock_cpu.onednn.library import notes; print(*notes())"
    printed = run(code, OPDOCK_ONEDNN=path)
    assert printed.startswith("NumPy kernels only: ") and told in printed


def test_the_doctor_says_what_is_in_use():
    printed = " ".join(CliRunner().invoke(command, []).output.split())
    assert library.notes()[0].split(" (")[0] in printed


class _Ffi:
    """A loader that finds a library of some version, or fails with some message."""

    error = AttributeError

    def __init__(self, version=(3, 2, 0), runtime=2, message=""):
        told = types.SimpleNamespace(
            major=version[0], minor=version[1], patch=version[2], cpu=runtime
        )
        self.lib = types.SimpleNamespace(dnnl_version=lambda: told)
        self.message = message

    def dlopen(self, path, mode):
        if self.message:
            raise OSError(self.message)
        return self.lib


def test_only_version_3_is_taken():
    found = library._load(_Ffi(), "x.so")
    assert isinstance(found, Library) and found.version == (3, 2, 0)
    assert str(found) == "oneDNN 3.2.0 (OpenMP, x.so)"
    assert library._load(_Ffi((2, 7, 1)), "x.so") == "x.so is oneDNN 2.7.1; opdock needs version 3"
    assert "threading runtime" in library._load(_Ffi(runtime=8), "x.so")


def test_a_missing_openmp_runtime_is_named():
    message = "cannot load library 'x.so': libgomp.so.1: cannot open shared object file"
    told = library._load(_Ffi(message=message), "x.so")
    assert "libgomp.so.1" in told and "apt install libgomp1" in told


def test_the_parsed_interface_is_that_of_the_declarations():
    assert interface_source.PATH.read_text(encoding="utf-8") == interface_source.render()


@needs_onednn
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_results_do_not_depend_on_the_number_of_threads(threads):
    config = tf.ConfigProto(intra_op_parallelism_threads=threads)
    with tf.Graph().as_default():
        x = tf.constant(data(8, 20, 20, 16), tf.float32)
        w = tf.placeholder(tf.float32, [3, 3, 16, 32])
        y = tf.nn.relu(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"))
        grads = tf.gradients(y * y, [w])
        with tf.Session(config=config) as session:
            ours = session.run([y, *grads], {w: data(3, 3, 16, 32, seed=1)})
        with tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=3)) as session:
            others = session.run([y, *grads], {w: data(3, 3, 16, 32, seed=1)})
    for a, b in zip(ours, others, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-3)


@needs_onednn
def test_steps_may_run_at_the_same_time():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [2, 12, 12, 8])
        w = tf.get_variable("w", initializer=data(3, 3, 8, 8, seed=1).astype(np.float32))
        y = tf.nn.max_pool(tf.nn.conv2d(x, w, [1, 1, 1, 1], "SAME"), 2, 2, "SAME")
        session.run(tf.global_variables_initializer())
        inputs = [data(2, 12, 12, 8, seed=s) for s in range(8)]
        alone = [session.run(y, {x: v}) for v in inputs]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for _ in range(40):
                together = pool.map(lambda v: session.run(y, {x: v}), inputs)
                for a, b in zip(alone, together, strict=True):
                    np.testing.assert_array_equal(a, b)
