"""Convolutions of oneDNN on plain channels-last activations beside the layouts it would choose.

    .venv/bin/python benchmarks/onednn_layouts.py [--rounds N] [--threads N]

Both take turns on the same shapes; weights lie as each implementation wants them. Copies into a
chosen layout and out of it are not counted, so the ratio is the most that blocked activations kept
between neighbours could gain.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from opdock_cpu.onednn.conv import ConvShape
from opdock_cpu.onednn.declarations import Alg, Arg, Prop, Query
from opdock_cpu.onednn.memory import Desc, aligned, any_layout
from opdock_cpu.onednn.primitive import Plan, Primitive
from opdock_cpu.threads import use_threads
from opdock_cpu.windows import Window

F32 = 3
SHAPES = [  # batch, size, channels, outputs, window, stride
    (64, 32, 64, 64, 3, 1),
    (16, 56, 64, 64, 3, 1),
    (16, 56, 64, 256, 1, 1),
    (16, 56, 128, 128, 3, 2),
    (16, 28, 128, 128, 3, 1),
    (16, 14, 256, 256, 3, 1),
    (16, 14, 1024, 256, 1, 1),
    (16, 7, 512, 512, 3, 1),
    (16, 112, 3, 64, 7, 2),
    (1, 56, 64, 64, 3, 1),
    (1, 14, 256, 256, 3, 1),
    (1, 7, 512, 512, 3, 1),
]
ROLES = {  # what the primitive of a direction takes, the result last
    "forward": ("SRC", "WEIGHTS", "DST"),
    "data": ("DIFF_DST", "WEIGHTS", "DIFF_SRC"),
    "weights": ("SRC", "DIFF_DST", "DIFF_WEIGHTS"),
}


class Case(NamedTuple):
    """A primitive that is ready to run."""

    implementation: str
    run: Callable[[], None]


def case(shape: ConvShape, direction: str, chosen: bool) -> Case:
    """One pass of a convolution; with `chosen` oneDNN picks the layouts of its activations."""
    src, dst, weights = shape.src(), shape.dst(), any_layout(shape.weight_dims, F32)
    if chosen:
        src, dst = (any_layout(d.dims, F32) for d in (src, dst))
    where = shape.geometry
    plan = forward = Plan(
        "convolution_forward", Prop.TRAINING, Alg.CONV_DIRECT, src, weights, None, dst, *where, None
    )
    if direction != "forward":
        bias = [None] if direction == "weights" else []
        plan = Plan(
            f"convolution_backward_{direction}", Alg.CONV_DIRECT, src, weights, *bias, dst, *where,
            forward, None,
        )  # fmt: skip
    args: list[tuple[int, Desc]] = [
        (getattr(Arg, role), plan.desc(getattr(Query, role))) for role in ROLES[direction]
    ]
    primitive, buffers = Primitive(plan, args), [aligned(d.size) for _, d in args]
    for buffer in buffers:
        buffer.view(np.float32)[:] = np.random.default_rng(1).random(buffer.size // 4)
    return Case(plan.implementation, lambda: primitive.run(*buffers))


def seconds(run: Callable[[], None]) -> float:
    """How long one call takes."""
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def main() -> None:
    """Prints a line a shape and direction, and the geometric mean of the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    use_threads(options.threads)
    ratios = []
    for batch, size, channels, outputs, window, stride in SHAPES:
        where = Window.make((size,) * 2, (window,) * 2, (stride,) * 2, (1, 1), "SAME")
        shape = ConvShape(batch, channels, outputs, 1, where, False, F32)
        for direction in ROLES:
            plain, chosen = (case(shape, direction, c) for c in (False, True))
            pairs = [(seconds(plain.run), seconds(chosen.run)) for _ in range(options.rounds + 1)]
            ours, theirs = (min(times) * 1e3 for times in zip(*pairs[1:], strict=True))
            ratios.append(ours / theirs)
            print(
                f"{batch:3} x {size:3}^2 x {channels:4} -> {outputs:3}, {window} x {window} "
                f"stride {stride}, {direction:8}: plain {ours:8.3f} ms ({plain.implementation}), "
                f"chosen {theirs:8.3f} ms ({chosen.implementation}), ratio {ratios[-1]:.2f}"
            )
    print(f"geometric mean of the ratios: {statistics.geometric_mean(ratios):.3f}")


if __name__ == "__main__":
    main()
