"""Measures what the CPU backend's choices between oneDNN and BLAS rest on.

    .venv/bin/python benchmarks/onednn_choices.py [--rounds N]

Prints the tables that docs/backends/cpu.md quotes. Alternatives take turns; each figure is the
median of its rounds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable

import numpy as np
from onednn_layouts import F32, seconds

from opdock_cpu import blas
from opdock_cpu.onednn.conv import ConvShape
from opdock_cpu.onednn.declarations import Alg, Arg, Prop, Query
from opdock_cpu.onednn.kernels.common import threads_for
from opdock_cpu.onednn.matmul import product
from opdock_cpu.onednn.memory import Desc, aligned, any_layout, dense
from opdock_cpu.onednn.packing import Call
from opdock_cpu.onednn.primitive import Plan, Primitive
from opdock_cpu.windows import Window

PRODUCTS = [(64, 64, 64), (64, 784, 128), (256, 256, 256), (512, 512, 512)]
REPEATED = [(1, 1024, 1024), (1, 2048, 4096), (32, 1024, 1024), (128, 1024, 4096), (512, 512, 512)]
FILTERS = [(16, 56, 64, 64, 3), (16, 56, 64, 256, 1), (16, 28, 128, 128, 3), (16, 14, 256, 256, 3)]

Run = Callable[[], object]


def medians(runs: list[Run], rounds: int, calls: int = 1) -> list[float]:
    """Microseconds a call of each, taking turns."""

    def several(run: Run) -> None:
        for _ in range(calls):
            run()

    times = [[seconds(lambda r=r: several(r)) for r in runs] for _ in range(rounds + 1)][1:]
    return [statistics.median(column) * 1e6 / calls for column in zip(*times, strict=True)]


def settled(measure: Callable[[], list[float]]) -> list[float]:
    """What `measure` finds once no thread spins any more."""
    time.sleep(0.5)
    return measure()


def factors(rows: int, inner: int, columns: int) -> list[np.ndarray]:
    """Two matrices and room for their product."""
    rng = np.random.default_rng(1)
    return [
        rng.random((rows, inner), np.float32), rng.random((inner, columns), np.float32),
        np.empty((rows, columns), np.float32),
    ]  # fmt: skip


def by_onednn(rows: int, inner: int, columns: int, count: int | None, packed: bool = False) -> Run:
    """A product on `count` threads; with `packed` of a second factor that is laid out already."""
    shapes = [(rows, inner), (inner, columns), (rows, columns)]
    a, b, out = (dense(s, F32) for s in shapes)
    arrays = factors(rows, inner, columns)
    primitive = product(a, b, out, None, (), count=count, packed=packed)
    if not packed:
        return lambda: primitive.run(*arrays)
    call = Call(primitive, [a, b, out], [2])
    laid_out, run = call.keep(1)(arrays[1]), call.bind()
    return lambda: run(arrays[0], laid_out, arrays[2])


def by_numpy(rows: int, inner: int, columns: int) -> Run:
    """The same product by NumPy, on the threads it takes."""
    a, b, out = factors(rows, inner, columns)
    return lambda: np.matmul(a, b, out)


def products(rounds: int) -> None:
    """Products on one thread and on all, beside NumPy, in runs of their own."""
    print("product, us a call: oneDNN on 1 thread, on all, NumPy")
    for shape in PRODUCTS:
        runs = by_onednn(*shape, 1), by_onednn(*shape, None), by_numpy(*shape)
        # One after the other: BLAS' threads would spin into the turns of the rest.
        found = [settled(lambda run=run: medians([run], rounds, 20))[0] for run in runs]
        print(f"  {shape}: " + ", ".join(f"{f:.1f}" for f in found))


def repeated(rounds: int) -> None:
    """What it gains to lay a second factor out once; of a row against BLAS, which serves else."""
    print("second factor laid out once: how many times as fast as the product of it as it is")
    for shape in REPEATED:
        count = threads_for(shape[0] * shape[1] * shape[2])
        plain = by_onednn(*shape, count)
        if shape[0] == 1:
            plain = blas.unshared(by_numpy(*shape))
        runs = [plain, by_onednn(*shape, count, packed=True)]
        before, after = settled(lambda runs=runs: medians(runs, rounds, 5))
        print(f"  {shape}: {before / after:.2f}")


def spinning(rounds: int) -> None:
    """A convolution after a row times a matrix, with BLAS' own threads and without."""
    where = Window.make((56, 56), (3, 3), (1, 1), (1, 1), "SAME")
    convolution = conv(ConvShape(1, 64, 64, 1, where, False, F32))
    row = by_numpy(1, 2048, 1000)

    def after(first: Run) -> Run:
        def both() -> None:
            first()
            for _ in range(10):
                convolution()

        return both

    alone, shared = (
        settled(lambda r=r: medians([after(r)], rounds))[0] for r in (blas.unshared(row), row)
    )
    print(f"a row times a matrix and ten convolutions: {shared / alone:.2f} times as long with "
          "BLAS' own threads")  # fmt: skip


def aftermath(rounds: int) -> None:
    """For how long a product on two threads takes twice as long after one of BLAS."""
    ours, theirs = by_onednn(256, 256, 256, None), by_numpy(256, 256, 256)
    slow = []
    for _ in range(rounds):
        time.sleep(0.5)
        usual = statistics.median(seconds(ours) for _ in range(100))
        theirs()
        begin, last = time.perf_counter(), 0.0
        while (now := time.perf_counter() - begin) < 0.3:
            # Of several calls: single ones are slow now and then anyway.
            if statistics.median(seconds(ours) for _ in range(9)) > 2 * usual:
                last = now
        slow.append(last * 1e3)
    print(f"ms for which BLAS' threads disturb: median {statistics.median(slow):.0f}, "
          f"longest {max(slow):.0f}")  # fmt: skip


def conv(shape: ConvShape) -> Run:
    """A forward convolution."""
    weights = any_layout(shape.weight_dims, F32)
    plan = Plan(
        "convolution_forward", Prop.INFERENCE, Alg.CONV_DIRECT, shape.src(), weights, None,
        shape.dst(), *shape.geometry, None,
    )  # fmt: skip
    weights = plan.desc(Query.WEIGHTS)
    return ready(plan, [(Arg.SRC, shape.src()), (Arg.WEIGHTS, weights), (Arg.DST, shape.dst())])


def ready(plan: Plan, args: list[tuple[int, Desc]]) -> Run:
    """A primitive over arrays of its own."""
    primitive, buffers = Primitive(plan, args), [aligned(d.size) for _, d in args]
    for buffer in buffers:
        buffer.view(np.float32)[:] = 0.5
    return lambda: primitive.run(*buffers)


def gradients(rounds: int) -> None:
    """A filter's gradient with its bias' and alone, channels last."""
    print("gradients of filter and bias: times as long as the filter's alone, channels last")
    for batch, size, channels, outputs, window in FILTERS:
        where = Window.make((size,) * 2, (window,) * 2, (1, 1), (1, 1), "SAME")
        shape = ConvShape(batch, channels, outputs, 1, where, False, F32)
        runs = [filter_gradient(shape, b) for b in (True, False)]
        both, alone = settled(lambda runs=runs: medians(runs, rounds))
        print(f"  {batch} x {size}^2 x {channels} -> {outputs}, {window} x {window}: "
              f"{both / alone:.2f}")  # fmt: skip


def filter_gradient(shape: ConvShape, with_bias: bool) -> Run:
    """The gradient of a convolution's filter, and of its bias if that is asked for."""
    src, dst, weights = shape.src(), shape.dst(), any_layout(shape.weight_dims, F32)
    where, bias = shape.geometry, dense((shape.outputs,), F32) if with_bias else None
    forward = Plan(
        "convolution_forward", Prop.TRAINING, Alg.CONV_DIRECT, src, weights, bias, dst, *where, None
    )
    plan = Plan(
        "convolution_backward_weights", Alg.CONV_DIRECT, src, weights, bias, dst, *where,
        forward, None,
    )  # fmt: skip
    args = [(Arg.SRC, src), (Arg.DIFF_DST, dst), (Arg.DIFF_WEIGHTS, plan.desc(Query.DIFF_WEIGHTS))]
    return ready(plan, args if bias is None else [*args, (Arg.DIFF_BIAS, bias)])


def main() -> None:
    """Prints every table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    print(f"{os.cpu_count()} cores")
    for table in (products, repeated, spinning, aftermath, gradients):
        table(rounds)


if __name__ == "__main__":
    main()
