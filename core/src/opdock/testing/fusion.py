"""Level L5: each fusion that a plugin declares gives what the unfused ops give.

A test graph follows from the pattern itself: its ops over captures filled with data.  Shapes and
attributes that a pattern cannot say come from the samples of its innermost op.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock import dtypes
from opdock.graph import registry
from opdock.graph.registry import OpSpec
from opdock.plugins.records import FusionPattern, P
from opdock.testing.case import Failure, Result, Unit, describe
from opdock.testing.device import DeviceUnderTest
from opdock.testing.forward import session_config
from opdock.testing.namespace import tf
from opdock.testing.sample import Sample, Sampler, samples_for
from opdock.testing.tolerances import compare, tolerance_for

__all__ = ["fusion_units"]

Array = npt.NDArray[Any]


def fusion_units(dut: DeviceUnderTest, only: frozenset[str] = frozenset()) -> Iterator[Unit]:
    """One unit per declared fusion; none is fine."""
    for pattern in dut.fusions:
        if not only or pattern.name in only or pattern.op in only:
            yield Unit(
                "L5", pattern.name, "float32",
                lambda pattern=pattern: _results(dut, pattern),  # type: ignore[misc]
            )  # fmt: skip


def _results(dut: DeviceUnderTest, pattern: FusionPattern) -> Iterator[Result]:
    if not dut.kernels.entries(pattern.op):
        raise Failure(f"fusion {pattern.name!r} becomes {pattern.op}, which has no kernel")
    fused = 0
    innermost = list(pattern.pattern.nodes())[-1]
    rejections: list[str] = []
    for op in innermost.ops:
        for number, sample in enumerate(samples_for(op, np.float32)):
            label = f"{op}-{sample.tag or number}"
            try:
                outcome = _compare(dut, pattern, op, sample)
            except Exception as error:
                yield Result("L5", pattern.name, "float32", label, "failed", describe(error))
                continue
            if outcome:
                rejections.append(f"{label}: {outcome}")
            else:
                fused += 1
                yield Result("L5", pattern.name, "float32", label)
    if not fused:
        why = "; ".join(rejections[:3]) or "its innermost op has no samples"
        raise Failure(f"the fusion was never applied: {why}")


@dataclass
class _Graph:
    """The pattern's ops as a graph over one sample of its innermost op."""

    sample: Sample
    captures: dict[str, Any] = field(default_factory=dict)
    feeds: dict[Any, Array] = field(default_factory=dict)

    def build(self, node: P, innermost: str) -> Any:
        """The outermost tensor."""
        op = next((o for o in node.ops if o == innermost), node.ops[0])
        spec = registry.get(op)
        if op == innermost and not any(isinstance(i, P) for i in node.inputs):
            return self._leaf(node, spec)
        tensors: list[Any] = [
            self.build(i, innermost) if isinstance(i, P) else None for i in node.inputs
        ]
        inner = next(t for t in tensors if t is not None)
        for i, value in enumerate(node.inputs):
            if isinstance(value, str):
                tensors[i] = self._capture(value, spec, inner)
        return _first(spec(*tensors, **dict(node.attrs)))

    def _leaf(self, node: P, spec: OpSpec) -> Any:
        tensors = []
        for name, value in zip(node.inputs, self.sample.inputs, strict=False):
            array = np.asarray(value)
            if array.dtype.kind in "iu" and array.dtype != np.float32:
                tensors.append(tf.constant(array))
                continue
            tensors.append(self._feed(str(name), array.astype(np.float32)))
        attrs = {
            k: v for k, v in self.sample.attrs.items() if k not in spec.definition.inferred
        }
        return _first(spec(*tensors, **{**attrs, **dict(node.attrs)}))

    def _capture(self, name: str, spec: OpSpec, inner: Any) -> Any:
        """Another operand: a vector over the channels for a bias, else the inner op's shape."""
        shape = inner.get_shape().as_list()
        if spec.name.startswith("BiasAdd") or "BatchNorm" in spec.name:
            shape = shape[-1:]
        array = Sampler(np.float32, f"fusion/{name}").uniform(shape, 0.5, 1.5)
        return self._feed(name, array)

    def _feed(self, name: str, array: Array) -> Any:
        if name not in self.captures:
            tensor = tf.placeholder(tf.float32, array.shape)
            self.captures[name] = tensor
            self.feeds[tensor] = array
        return self.captures[name]


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, (list, tuple)) else result


def _compare(dut: DeviceUnderTest, pattern: FusionPattern, op: str, sample: Sample) -> str:
    """Empty when fused equals unfused, else why the fusion was not applied.

    Raises:
        Failure: it was applied and gives something else.
    """
    with tf.Graph().as_default() as graph:
        made = _Graph(sample)
        with tf.device(dut.scope):
            output = made.build(pattern.pattern, op)
        values = []
        for optimize in (True, False):
            config = session_config(soft=True, optimize=optimize)
            with tf.Session(graph=graph, config=config) as session:
                rows = session.explain(output, made.feeds).rows
                applied = any(r.op == pattern.op for r in rows)
                if optimize and not applied:
                    return "the compiler did not match it"
                if not optimize and applied:
                    raise Failure("the fusion is applied although optimization is off")
                values.append(session.run(output, made.feeds))
    dtype = dtypes.as_dtype(values[1].dtype)
    mismatch = compare(values[0], values[1], tolerance_for(dtype.np), "fused against unfused")
    if mismatch is not None:
        raise Failure(mismatch.text)
    return ""
