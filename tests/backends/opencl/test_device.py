"""The device: memory, copies, compiled programs; the same under PoCL as on a GPU."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import opdock as tf
from opdock_ckernels.strided import contiguous, strides_of, take


def test_a_cpu_does_not_join_the_pool_of_gpus(opencl):
    if not opencl.is_cpu:
        pytest.skip("the first OpenCL device is no CPU")
    from opdock.testing.levels.device import open_device

    assert open_device("opencl:0").name.endswith("/device:OPENCL:0")


def test_memory_is_counted_and_comes_back(opencl):
    before = opencl.memory().in_use
    buffer = opencl.upload(np.zeros(1 << 18, np.float32))
    assert opencl.memory().in_use >= before + (1 << 20)
    assert opencl.memory().peak >= opencl.memory().in_use
    del buffer
    gc.collect()
    assert opencl.memory().in_use == before


def test_a_fraction_of_the_memory_is_a_limit(opencl):
    opencl.configure({"memory_fraction": 1e-9})
    try:
        with pytest.raises(tf.errors.ResourceExhaustedError, match="OOM when allocating"):
            opencl.empty((1 << 20,), tf.float32)
    finally:
        opencl.configure({})
    opencl.empty((1 << 20,), tf.float32)


def test_a_program_is_compiled_once(opencl):
    source = "__kernel void one(__global int* x) { x[get_global_id(0)] = 1; }"
    assert opencl.kernel(source, "one") is opencl.kernel(source, "one")


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64", "complex128"])
def test_permuted_copies(opencl, dtype):
    x = np.arange(24).reshape(2, 3, 4).astype(dtype)
    buffer = opencl.upload(x)
    got = opencl.download(contiguous(opencl, buffer, (2, 0, 1)))
    np.testing.assert_array_equal(got, x.transpose(2, 0, 1))


def test_backward_and_repeating_strides(opencl):
    x = np.arange(6, dtype=np.int32)
    buffer = opencl.upload(x)
    np.testing.assert_array_equal(opencl.download(take(opencl, buffer, (6,), (-1,), 5)), x[::-1])
    np.testing.assert_array_equal(
        opencl.download(take(opencl, buffer, (2, 6), (0, 1))), np.stack([x, x])
    )
    assert strides_of((2, 3, 4)) == [12, 4, 1]


def test_a_step_sees_what_is_in_use(opencl):
    with tf.Graph().as_default(), tf.device("/device:OPENCL:0"):
        kept = tf.Variable(tf.zeros([1 << 18]))
        asked = [
            getattr(tf.contrib.memory_stats, name)()
            for name in ("BytesInUse", "MaxBytesInUse", "BytesLimit")
        ]
        with tf.Session() as session:
            before, _, limit = session.run(asked)
            session.run(kept.initializer)
            after, peak, same = session.run(asked)
    assert before + (1 << 20) <= after <= peak <= limit == same


def test_a_broken_cache_ends_no_program(opencl, tmp_path):
    """PyOpenCL keeps the Python of its calls in a database on disk."""
    program = (
        "import opdock as tf\n"
        "with tf.device('/device:OPENCL:0'), tf.Session() as session:\n"
        "    print(session.run(tf.matmul([[1.0, 2.0]], [[3.0], [4.0]])))\n"
    )
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    for _ in range(2):
        ran = subprocess.run(
            [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False
        )
        assert "[[11.]]" in ran.stdout, ran.stderr
        kept = [file for file in Path(tmp_path).rglob("*pyopencl*") if file.is_file()]
        for file in kept:
            file.write_bytes(b"no database " * 100)


def test_a_flag_that_was_not_raised_serves_again(opencl):
    raised, other = opencl.flag(), opencl.flag()
    opencl.copy_into(opencl.upload(np.ones(1, np.int32)), raised, 0)
    assert opencl.read_int(raised) == 1 and opencl.read_int(other) == 0
    assert opencl.flag() is other
    assert opencl.read_int(opencl.flag()) == 0


def test_groups_are_no_larger_than_a_kernel_allows(opencl, monkeypatch):
    source = "__kernel void size(__global int* x) { x[0] = get_local_size(0); }"
    kernel = opencl.kernel(source, "size")
    monkeypatch.setattr(kernel, "largest", 8)
    out = opencl.upload(np.zeros(1, np.int32))
    opencl.launch(kernel, 100, out)
    assert opencl.read_int(out) == 8
