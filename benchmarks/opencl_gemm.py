"""Matrix products on an OpenCL device beside CLBlast on the same device, in GFLOP/s.

    .venv/bin/python benchmarks/opencl_gemm.py [--device /device:OPENCL:0] [SIZE ...]

CLBlast is measured where its library is found (Debian: libclblast1).
"""

from __future__ import annotations

import argparse
import ctypes
import ctypes.util
import time
from collections.abc import Callable

import numpy as np

import opdock as tf


def best(step: Callable[[], object], repeat: int) -> float:
    """The shortest of some calls, in seconds."""
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return min(times)


def ours(size: int, device: str, repeat: int) -> float:
    """A MatMul of a session, without copies between host and device."""
    with tf.Graph().as_default(), tf.device(device):
        a = tf.Variable(tf.random_uniform([size, size], seed=1))
        product = tf.matmul(a, a)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            run = session.make_callable(product[0, 0])
            run()
            return best(run, repeat)


def clblast(size: int, repeat: int) -> float | None:
    """CLBlastSgemm on the first device, or None without the library."""
    name = ctypes.util.find_library("clblast")
    if name is None:
        return None
    import pyopencl as cl

    library = ctypes.CDLL(name)
    context = cl.Context([cl.get_platforms()[0].get_devices()[0]])
    queue = cl.CommandQueue(context)
    host = np.random.default_rng(1).random((size, size), np.float32)
    a = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=host)
    c = cl.Buffer(context, cl.mem_flags.READ_WRITE, host.nbytes)
    n, zero = ctypes.c_size_t(size), ctypes.c_size_t(0)
    one, nothing = ctypes.c_float(1), ctypes.c_float(0)
    handle = ctypes.c_void_p(queue.int_ptr)
    memory = [ctypes.c_void_p(b.int_ptr) for b in (a, a, c)]

    def step() -> None:
        status = library.CLBlastSgemm(
            101, 111, 111, n, n, n, one, memory[0], zero, n, memory[1], zero, n, nothing,
            memory[2], zero, n, ctypes.byref(handle), None,
        )  # fmt: skip
        if status != 0:
            raise RuntimeError(f"CLBlastSgemm returned {status}")
        queue.finish()

    step()
    return best(step, repeat)


def main() -> None:
    """Prints one line a size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, default=[256, 512, 1024, 2048])
    parser.add_argument("--device", default="/device:OPENCL:0")
    parser.add_argument("--repeat", type=int, default=8)
    options = parser.parse_args()
    print(f"{'size':>6} {'opdock':>8} {'CLBlast':>8}  GFLOP/s, float32, best of {options.repeat}")
    for size in options.sizes:
        work = 2 * size**3 / 1e9
        mine, theirs = ours(size, options.device, options.repeat), clblast(size, options.repeat)
        peer = f"{work / theirs:8.1f}" if theirs else "       -"
        print(f"{size:>6} {work / mine:8.1f} {peer}", flush=True)


if __name__ == "__main__":
    main()
