"""Which kernels a compiler of whole programs can trace: functions of arrays without values."""

from __future__ import annotations

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import opdock as tf
from opdock import dtypes
from opdock.graph.nodes import registry
from opdock.kernels.select.arguments import flat_inputs
from opdock.kernels.select.signature import NodeSig
from opdock.plugin import tracing
from opdock.plugins.manager import get_manager
from opdock.testing.harness.build import build_case
from opdock.testing.harness.claims import varied_attr
from opdock.testing.harness.sample import samples_for
from opdock_jax.device import HELD

# The size of a result, or the number of turns that it takes, is a matter of values.
BY_VALUES = {"CTCGreedyDecoder", "CombinedNonMaxSuppression", "ComputeAccidentalHits",
             "DynamicPartition", "DynamicStitch", "ListDiff", "NonMaxSuppression",
             "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4",
             "NonMaxSuppressionV5", "NonMaxSuppressionWithOverlaps", "ParallelDynamicStitch",
             "RandomGammaGrad", "SparseAdd", "Unique", "UniqueV2", "UniqueWithCounts",
             "UniqueWithCountsV2", "Where"}  # fmt: skip
TYPES = (dtypes.float32, dtypes.int32, dtypes.complex64, dtypes.bool)


@pytest.fixture(scope="module")
def opened():
    return get_manager().open(next(d for d in get_manager().devices() if d.spec.name == "jax"))


class Cell:
    """What stands for a variable while its updates are traced."""

    def __init__(self, value):
        self.name, self.lock, self.value = "v", contextlib.nullcontext(), value

    def read(self):
        return self.value

    def write(self, value):
        self.value = value


def kernels(opened):
    """The best kernel of each op that is a function of its inputs."""
    for op in opened.kernels.ops():
        spec = registry.find(op)
        if spec is None or spec.stateful or any(
            a.dtype in (dtypes.variant, dtypes.resource, dtypes.string)
            for a in (*spec.definition.inputs, *spec.definition.outputs)
        ):  # fmt: skip
            continue
        yield spec, opened.kernels.entries(op)[0].kernel


def first_case(spec, kernel):
    """A node with values for its inputs, in a type that the kernel takes."""
    attr = varied_attr(spec)
    allowed = spec.definition.attrs[attr].allowed if attr else None
    for dtype in TYPES:
        held = kernel.dtypes.get(attr, HELD)
        if dtype not in held or (allowed is not None and dtype not in allowed):
            continue
        for sample in samples_for(spec.name, dtype.np):
            with tf.Graph().as_default():
                return build_case(
                    spec, sample.inputs, sample.attrs, attr=attr, dtype=dtype,
                    variant="plain", scope="", name="case",
                )  # fmt: skip
    return None


def trace(opened, kernel, case):
    """The kernel's arrays without values, and the checks that it left to whoever runs it."""
    node = case.op
    flat = [v for x in case.inputs for v in (x if isinstance(x, list) else [x])]
    sig = NodeSig(
        node.type, node.name, node.attrs, [v.shape for v in flat], [t.dtype for t in node.inputs],
        [None] * len(node.outputs), [t.dtype for t in node.outputs], device=opened.device,
    )  # fmt: skip
    host = flat_inputs(node.type, kernel.host_inputs, node.attrs)
    device = [i for i in range(len(flat)) if i not in host]
    variables = [i for i, t in enumerate(node.inputs) if t.dtype is not t.dtype.base_dtype]
    run = kernel.bind(sig)

    def function(*arrays):
        every = list(flat)
        for i, array in zip(device, arrays, strict=True):
            every[i] = Cell(array) if i in variables else array
        out = run(*every)
        out = [*(out if isinstance(out, tuple) else (out,)), *(every[i].value for i in variables)]
        return [x for x in out if isinstance(x, jax.Array)]

    with tracing.deferring() as checks, jax.enable_x64(True):
        jax.make_jaxpr(function)(*(jnp.asarray(flat[i]) for i in device))
    return checks


def test_all_kernels_but_those_that_wait_for_values_can_be_traced(opened):
    refused, count = {}, 0
    for spec, kernel in kernels(opened):
        case = first_case(spec, kernel)
        if case is None:
            continue
        count += 1
        try:
            trace(opened, kernel, case)
        except jax.errors.JAXTypeError as e:
            refused[spec.name] = str(e).partition("\n")[0]
    assert count > 250
    assert set(refused) == BY_VALUES & set(opened.kernels.ops()), refused


@pytest.mark.parametrize(
    ("op", "values", "fails"),
    [
        (lambda x, i: tf.gather(x, i), ([1.0, 2.0], [0, 1]), False),
        (lambda x, i: tf.gather(x, i), ([1.0, 2.0], [0, 2]), True),
        (lambda x, y: x // y, ([4, 2], [1, 2]), False),
        (lambda x, y: x // y, ([4, 2], [1, 0]), True),
        (lambda x, y: tf.linalg.solve(x, y), ([[1.0, 0.0], [0.0, 2.0]], [[1.0], [1.0]]), False),
        (lambda x, y: tf.linalg.solve(x, y), ([[1.0, 2.0], [2.0, 4.0]], [[1.0], [1.0]]), True),
    ],
)
def test_checks_of_values_come_with_the_trace(opened, op, values, fails):
    """What a kernel would refuse is a truth value of the traced function."""
    kinds = [np.float32 if np.asarray(v).dtype.kind == "f" else np.int32 for v in values]
    arrays = [np.asarray(v, kind) for v, kind in zip(values, kinds, strict=True)]
    with tf.Graph().as_default():
        node = op(*map(tf.constant, arrays)).op
        host = [np.asarray(0)] if node.type == "GatherV2" else []
        sig = NodeSig(
            node.type, node.name, node.attrs, [None] * len(node.inputs),
            [t.dtype for t in node.inputs], [None], [t.dtype for t in node.outputs],
            device=opened.device,
        )  # fmt: skip
    run = opened.select(sig).kernel.bind(sig)

    def function(*inputs):
        with tracing.deferring() as checks:
            run(*inputs, *host)
        return checks

    checks = jax.jit(function)(*arrays)
    assert checks
    assert any(bool(c) for c in checks) == fails


def test_without_anybody_to_collect_them_checks_are_not_dropped(opened):
    from opdock_jax.namespace import namespace

    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.make_jaxpr(lambda x: namespace.defer(x > 0))(1.0)
