"""The device on the stand-in: memory, copies, kernels from CUDA text, times."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import opdock as tf

SCALE = """
KERNEL void scale(GLOBAL const float* x, GLOBAL float* y, float by, i64 n) {
  i64 i = GLOBAL_ID(0);
  if (i < n) y[i] = x[i] * by;
}
"""
# Every item reads what the last one of its group has written.
TURN = """
KERNEL void turn(GLOBAL const int* x, GLOBAL int* y) {
  LOCAL int held[L];
  int lane = LOCAL_ID(0);
  held[lane] = x[GLOBAL_ID(0)];
  BARRIER;
  y[GLOBAL_ID(0)] = held[L - 1 - lane];
}
"""


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "bfloat16", "complex128"])
def test_values_come_back(gpu, dtype):
    x = np.arange(6).reshape(2, 3).astype(tf.as_dtype(dtype).as_numpy_dtype)
    got = gpu.download(gpu.upload(x))
    assert got.dtype == x.dtype and type(got) is np.ndarray
    np.testing.assert_array_equal(got, x)


def test_the_caller_may_change_what_was_uploaded(gpu):
    x = np.ones(100_000, np.float32)
    buffer = gpu.upload(x)
    x[:] = 2
    assert gpu.download(buffer).max() == 1


def test_an_old_cupy_has_no_bfloat16(gpu, cupy, monkeypatch):
    from opdock_cuda.device import CudaDevice

    monkeypatch.setattr(cupy, "__version__", "13.6.0")
    old = CudaDevice(gpu.attributes)
    assert tf.bfloat16 not in old.dtypes and tf.bfloat16 in gpu.dtypes
    with pytest.raises(tf.errors.UnimplementedError, match=r"CuPy 13\.6\.0 holds no bfloat16"):
        old.upload(np.zeros(1, tf.bfloat16.as_numpy_dtype))


def test_a_kernel_is_compiled_once_and_runs(gpu):
    kernel = gpu.kernel(SCALE, "scale")
    assert gpu.kernel(SCALE, "scale") is kernel
    x = np.arange(1000, dtype=np.float32)
    source, out = gpu.upload(x), gpu.empty((1000,), tf.float32)
    gpu.launch(kernel, 1000, source, out, np.float32(3), np.int64(1000))
    np.testing.assert_array_equal(gpu.download(out), x * 3)


def test_groups_wait_for_each_other(gpu):
    x = np.arange(128, dtype=np.int32)
    out = gpu.empty((128,), tf.int32)
    gpu.launch(gpu.kernel(TURN, "turn", L=32), 128, gpu.upload(x), out, group=32)
    np.testing.assert_array_equal(gpu.download(out), x.reshape(4, 32)[:, ::-1].ravel())


def test_a_view_is_laid_out_before_a_kernel_reads_it(gpu):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    turned, out = gpu.upload(x).T, gpu.empty((4, 3), tf.float32)
    gpu.launch(gpu.kernel(SCALE, "scale"), 12, turned, out, np.float32(1), np.int64(12))
    np.testing.assert_array_equal(gpu.download(out), x.T)


def test_memory_is_counted_and_comes_back(gpu):
    gc.collect()
    before = gpu.memory().in_use
    buffer = gpu.upload(np.zeros(1 << 18, np.float32))
    assert gpu.memory().in_use >= before + (1 << 20) and gpu.memory().peak >= before + (1 << 20)
    del buffer
    gc.collect()
    assert gpu.memory().in_use == before


def test_a_fraction_limits_the_memory_and_the_error_says_how_much(gpu, cupy):
    gpu.configure({"memory_fraction": 0.001, "allow_growth": True})
    try:
        assert gpu.memory().limit == int((1 << 30) * 0.001)
        with pytest.raises(
            tf.errors.ResourceExhaustedError,
            match=r"OOM when allocating tensor with shape\[1024,1024\] and type float32 by "
            r"allocator GPU_0_bfc: 4194304 bytes wanted",
        ):
            gpu.empty((1024, 1024), tf.float32)
    finally:
        gpu.configure({})
    assert gpu.memory().limit == 1 << 30
    gpu.empty((1024, 1024), tf.float32)


def test_the_config_reaches_the_device(gpu):
    options = tf.GPUOptions(per_process_gpu_memory_fraction=0.25, allow_growth=True)
    config = tf.ConfigProto(gpu_options=options)
    extra = config.graph_options.rewrite_options.custom_optimizers.add(name="opdock")
    extra.parameter_map["allow_tf32"].b = True
    try:
        with tf.Graph().as_default(), tf.Session(config=config) as sess, tf.device("/gpu:0"):
            sess.run(tf.constant(1.0) + 1)
        assert gpu.memory().limit == (1 << 30) // 4 and gpu.tf32
    finally:
        gpu.configure({})


def test_products_take_tf32_only_when_they_may(gpu, cupy):
    from cupy_backends.cuda.libs import cublas

    def computed(config):
        with tf.Graph().as_default(), tf.device("/device:CUDA:0"):
            x = tf.placeholder(tf.float32, [8, 8])
            with tf.Session(config=config) as sess:
                sess.run(tf.matmul(x, x), {x: np.eye(8)})
        gpu.configure({})
        return cublas.COMPUTED[-1]

    allowed = tf.ConfigProto()
    extra = allowed.graph_options.rewrite_options.custom_optimizers.add(name="opdock")
    extra.parameter_map["allow_tf32"].b = True
    assert (computed(None), computed(allowed)) == (68, 77)


def test_a_traced_step_has_the_gpus_own_times(gpu):
    with tf.Graph().as_default(), tf.device("/device:CUDA:0"), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [8, 8])
        y = tf.nn.softmax(tf.matmul(x, x))
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        sess.run(y, {x: np.eye(8)}, options, metadata)
    (stream,) = [d for d in metadata.step_stats.dev_stats if d.device.endswith("/stream:all")]
    labels = [n.timeline_label for n in stream.node_stats]
    assert any("#gemm#" in t for t in labels) and any("#row#" in t for t in labels)


def test_two_gpus_copy_to_each_other(gpu, cupy, monkeypatch):
    from opdock.plugin import DeviceAttributes
    from opdock_cuda import opdock_copy_routes
    from opdock_cuda.device import CudaDevice

    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", lambda: 2)
    second = CudaDevice(DeviceAttributes(index=1, memory_bytes=1 << 30))
    assert not second.alone and second.namespace is None
    (route,) = opdock_copy_routes()
    x = np.arange(6.0).reshape(2, 3)
    there = route.copy(gpu.upload(x), gpu, second)
    np.testing.assert_array_equal(second.download(there), x)
    from opdock_cuda.kernels import table_for

    table = list(table_for(second))
    assert len(table) > len(list(table_for(gpu)))  # with the portable kernels, each placed
    (relu,) = [k for k in table if k.op == "Reshape" and k.bind is not None][:1]
    assert relu.bind.__wrapped__ is not None
