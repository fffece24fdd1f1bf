"""A backend that fuses: clusters in plain array code, and patterns of several shapes.

Its kernels write down what they did, and refuse what the test tells them to.
"""

from __future__ import annotations

import sys

import array_api_compat.numpy as xp
import numpy as np

from opdock import plugin
from opdock.plugin import (
    CLUSTER,
    FLOATS,
    BackendSpec,
    BaseDevice,
    DeviceAttributes,
    FusionPattern,
    KernelTable,
    P,
    Probe,
    codegen,
    errors,
    hookimpl,
)  # fmt: skip

NAME = "melder-for-tests"
DEVICE = "/device:MELD:0"
calls = []
refused = {}  # op type or kind of cluster -> why its kernel declines when it is chosen
failing = {}  # op type -> the error that its kernel raises when it runs


@hookimpl
def opdock_backends():
    yield BackendSpec(
        name="melder", device_type="MELD", own_type="MELD", api=(1, 0), priority=-20,
        probe=f"{__name__}:probe", device=f"{__name__}:MeldDevice", kernels=(f"{__name__}:table",),
        fusions=(f"{__name__}:fusions",),
    )  # fmt: skip


def probe():
    return Probe(devices=[DeviceAttributes(index=0, description="melder")])


class MeldArray(np.ndarray):
    """Memory of its own."""


class MeldDevice(BaseDevice):
    namespace = xp

    def upload(self, array):
        return np.array(array, order="C").view(MeldArray)

    def download(self, buffer):
        return np.array(buffer, order="C", subok=False)


table = KernelTable()


def willing(sig):
    if sig.op == CLUSTER:
        if not codegen.can_render(sig.attrs["line"]):
            return "it has no spelling"
        kinds = ["reduce"] * bool(sig.attrs["reduces"])
        kinds += ["reduces"] * (len(sig.attrs["reduces"]) > 1)
        kinds += ["beside"] * (0 < len(sig.attrs["reduces"]) < len(sig.out_shapes))
        kinds += [f"reduce-{r.kind}" for r in sig.attrs["reduces"]]
        kinds += ["several"] * (len(sig.attrs["members"]) > 1)
        return next((refused[k] for k in (*kinds, CLUSTER) if k in refused), True)
    return refused.get(sig.op, True)


def noted(sig, run):
    def call(*arrays):
        calls.append((sig.op, sig.name))
        if sig.op in failing:
            raise failing[sig.op]
        return run(*arrays)

    return call


@table.binder(CLUSTER, when=willing)
def cluster(sig):
    check(sig)
    return noted(sig, codegen.evaluate_cluster(xp, sig))


def check(sig):
    """What the contract promises to kernels."""
    line, reduces, shape = (sig.attrs[k] for k in ("line", "reduces", "shape"))
    names = sig.attrs["names"]
    loads = [s.value for s in line.steps if s.op == "input"]
    assert sorted(loads) == sorted(names)
    assert len(names) == len(sig.in_shapes) == len(sig.in_dtypes)
    assert all(np.broadcast_shapes(s, shape) == shape for s in sig.in_shapes)
    assert not line.may_raise
    whole = len(line.results) - len(reduces)
    assert all(s == shape for s in sig.out_shapes[:whole])
    assert len(reduces) <= 16
    for reduce, got in zip(reduces, sig.out_shapes[whole:], strict=True):
        assert reduce.axes == tuple(sorted(set(reduce.axes)))
        kept = [n for a, n in enumerate(shape) if reduce.keep_dims or a not in reduce.axes]
        assert len(got) == len(kept)
    assert len(set(line.results[:whole])) == whole
    assert len(line.results) == len(sig.out_shapes) == len(sig.out_dtypes)
    assert all(line.steps[r].dtype is t for r, t in zip(line.results, sig.out_dtypes, strict=True))
    assert all(a < i for i, s in enumerate(line.steps) for a in s.args)
    few = 16 if np.prod(shape) <= 1024 else 1
    assert sum(1 for s in line.steps if s.op not in ("input", "number")) <= 64 * few
    assert all(
        s.dtype is sig.in_dtypes[names.index(s.value)] for s in line.steps if s.op == "input"
    )


def use_buffers():
    """From now on clusters are written to the buffers of the memory plan; returns what came."""
    given = []

    def binder(sig):
        run = codegen.evaluate_cluster(xp, sig)
        several = len(sig.out_shapes) > 1

        def call(*arrays):
            *inputs, out = arrays
            given.append(out)
            results = run(*inputs) if several else (run(*inputs),)
            buffers = out if several and out is not None else [out] * len(results)
            final = []
            for result, buffer in zip(results, buffers, strict=True):
                if buffer is not None:
                    assert (buffer.shape, buffer.dtype) == (result.shape, result.dtype)
                    same = [i for i in inputs if np.shares_memory(buffer, i)]
                    whole = result.shape == sig.attrs["shape"]
                    assert not same or (whole and all(i is buffer for i in same))
                    buffer[...] = result
                final.append(result if buffer is None else buffer)
            return tuple(final) if several else final[0]

        return call

    fast = KernelTable([k for k in table if k.op != CLUSTER])
    fast.binder(CLUSTER, out=True)(binder)
    globals()["table"] = fast
    plugin.register(sys.modules[__name__], NAME)
    return given


@table.binder("meld>BiasRelu", T=FLOATS, when=willing)
def bias_relu(sig):
    assert sig.attrs["bias"]["data_format"] == sig.attrs["bias"]["data_format"].upper()
    assert sig.attrs["T"] is sig.attrs[""]["T"] is sig.in_dtypes[0]
    return noted(sig, lambda value, bias: np.maximum(value + bias, value.dtype.type(0)))


@table.binder("meld>Swish", T=FLOATS, when=willing)
def swish(sig):
    return noted(sig, lambda x: x / (1 + np.exp(-x)))


@table.binder("meld>AddRelu", T=FLOATS, when=willing)
def add_relu(sig):
    return noted(sig, lambda a, b: (np.maximum(a + b, a.dtype.type(0)), a + b))


@table.binder("meld>SumAndScale", T=FLOATS, when=willing, host_inputs=("axes",))
def sum_and_scale(sig):
    def run(x, axes, factor):
        assert type(axes) is np.ndarray
        assert sig.const(1) is not None
        return x.sum(axis=tuple(axes.ravel())), x * factor

    return noted(sig, run)


@table.kernel("RandomUniform", host_inputs=("shape",))
def random_uniform(ctx, shape):
    """It would do for a pattern if it were not stateful."""
    return np.full(tuple(shape), 0.5, np.float32).view(MeldArray)


fusions = [
    FusionPattern(
        name="bias_relu", op="meld>BiasRelu", benefit=3,
        pattern=P("Relu|Relu6", P("BiasAdd", "value", "bias", name="bias", data_format="NHWC")),
        when=lambda nodes: nodes[""].op == "Relu" or "only Relu",
    ),
    FusionPattern(name="swish", op="meld>Swish", pattern=P("Mul", "x", P("Sigmoid", "x"))),
    FusionPattern(
        name="add_relu", op="meld>AddRelu", pattern=P("Relu", P("AddV2", "a", "b", name="sum")),
        outputs=(("", 0), ("sum", 0)),
    ),
    FusionPattern(
        name="sum_and_scale", op="meld>SumAndScale",
        pattern=P("Sum", "x", "axes", keep_dims=False), also=(P("Mul", "x", "f", name="scale"),),
        outputs=(("", 0), ("scale", 0)), benefit=0,
        when=lambda nodes: nodes[""].const(1) is not None or "its axes are not constant",
    ),
]  # fmt: skip


ORIGINAL = table


def reset():
    """Undoes what a test asked for."""
    globals()["table"] = ORIGINAL
    for record in (calls, refused, failing):
        record.clear()


def clusters(nodes):
    """Those that are clusters."""
    return [n for n in nodes if n.op == CLUSTER]


def decline(op, error=errors.UnimplementedError):
    failing[op] = error(None, None, "melder has had enough")
