"""A backend that compiles whole segments: it runs them by their meaning, and writes down what came.

What is traced are arrays of a class of their own, so a kernel that would look at a value, as no
tracer could, shows.
"""

from __future__ import annotations

import array_api_compat.numpy as xp
import numpy as np

from opdock.plugin import (
    BackendSpec,
    BaseDevice,
    DeviceAttributes,
    KernelTable,
    Probe,
    Refusal,
    errors,
    hookimpl,
)

NAME = "welder-for-tests"
DEVICE = "/device:WELD:0"
segments = []  # those that were compiled
runs = []  # of each run (the segment's name, how many inputs, how many values of variables)
refused = {}  # op type -> why it cannot be compiled
failing = []  # errors that the next executables raise after they have computed
entirely = []  # reasons why nothing is compiled


@hookimpl
def opdock_backends():
    yield BackendSpec(
        name="welder", device_type="WELD", own_type="WELD", api=(1, 1), priority=-20,
        probe=f"{__name__}:probe", device=f"{__name__}:WeldDevice", kernels=(f"{__name__}:table",),
        compiler=f"{__name__}:compile_segment",
    )  # fmt: skip


def probe():
    return Probe(devices=[DeviceAttributes(index=0, description="welder")])


class WeldArray(np.ndarray):
    """Memory of its own."""


class WeldDevice(BaseDevice):
    namespace = xp

    def upload(self, array):
        return np.array(array, order="C").view(WeldArray)

    def download(self, buffer):
        return np.array(buffer, order="C", subok=False)


table = KernelTable()


def every(segment):
    for node in segment.nodes:
        yield node
        for body in node.bodies.values():
            yield from every(body)


def compile_segment(segment):
    if entirely:
        return Refusal(entirely[0])
    bad = {n: refused[n.op] for n in every(segment) if n.op in refused}
    if bad:
        return Refusal(nodes=bad)
    segments.append(segment)

    def run(inputs, state, places):
        runs.append((segment.name, len(inputs), sum(x is not None for x in state)))
        out = segment.run(inputs, state, places, call=step)
        if failing:
            raise failing.pop()
        return out

    return run


def step(node, args):
    if "cond" in node.bodies:
        values = args
        while bool(node.bodies["cond"].walk(values, step)[0]):
            values = node.bodies["body"].walk(values, step)
        return values if len(values) != 1 else values[0]
    if node.bodies:
        taken = "then_branch" if bool(args[0]) else "else_branch"
        out = node.bodies[taken].walk(args[1:], step)
        return out if len(out) != 1 else out[0]
    return node.call(*args)


def forget():
    for kept in (segments, runs, refused, failing, entirely):
        kept.clear()


__all__ = ["DEVICE", "NAME", "errors"]
