"""Level L5: each fusion of a device gives what the unfused ops give.

The test graph of a pattern follows from the pattern itself: its ops over captures filled with data.
Shapes and attributes that a pattern cannot say come from the samples of its innermost op.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock import dtypes
from opdock.graph.nodes import registry
from opdock.graph.nodes.registry import OpSpec
from opdock.plugins.records import FusionPattern, P
from opdock.testing.harness.case import Failure, Result, Skip, Unit, describe
from opdock.testing.harness.namespace import tf
from opdock.testing.harness.sample import Sample, Sampler, samples_for
from opdock.testing.harness.tolerances import compare, tolerance_for
from opdock.testing.levels.clusters import cluster_units
from opdock.testing.levels.device import DeviceUnderTest
from opdock.testing.levels.forward import session_config, without

__all__ = ["fusion_units"]

Array = npt.NDArray[Any]


def fusion_units(dut: DeviceUnderTest, only: frozenset[str] = frozenset()) -> Iterator[Unit]:
    """One unit per declared pattern, and those of clusters if the device computes them."""
    for pattern in dut.fusions:
        if not only or pattern.name in only or pattern.op in only:
            yield Unit(
                "L5", pattern.name, "float32",
                lambda pattern=pattern: _results(dut, pattern),  # type: ignore[misc]
            )  # fmt: skip
    yield from cluster_units(dut, only)


def _results(dut: DeviceUnderTest, pattern: FusionPattern) -> Iterator[Result]:
    if not dut.kernels.entries(pattern.op):
        raise Failure(f"fusion {pattern.name!r} becomes {pattern.op}, which has no kernel")
    fused = 0
    innermost = list(pattern.pattern.nodes())[-1]
    if not any(map(_takes_floats, innermost.ops)):
        raise Skip(
            "exempt",
            "its innermost op takes no float32, of which test graphs are made; the backend's own "
            "tests compare it with its ops",
        )
    rejections: list[str] = []
    for op in innermost.ops:
        for number, sample in enumerate(samples_for(op, np.float32)):
            label = f"{op}-{sample.tag or number}"
            if not _has_attrs(op, sample, innermost.attrs):
                continue
            try:
                outcome = _compare(dut, pattern, op, sample) and _compare(
                    dut, pattern, op, sample, column=True
                )
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


def _has_attrs(op: str, sample: Sample, wanted: Mapping[str, Any]) -> bool:
    """Whether a sample of an op has the attributes that a pattern asks for, as far as it says."""
    defined = registry.get(op).definition.attrs
    told = {name: sample.attrs.get(name, defined[name].default) for name in wanted}
    return all(told[name] in (None, value) for name, value in wanted.items())


def _takes_floats(op: str) -> bool:
    definition = registry.get(op).definition
    kind = definition.attrs.get(definition.inputs[0].type_attr)
    return kind is None or kind.allowed is None or dtypes.float32 in kind.allowed


@dataclass
class _Graph:
    """The pattern's ops as a graph over one sample of its innermost op.

    Attributes:
        column: whether further operands have one element in the last dimension, as a factor for
            each row has, instead of the innermost op's shape.
        made: the outputs of each of the pattern's nodes.
    """

    sample: Sample
    innermost: str
    column: bool = False
    captures: dict[str, Any] = field(default_factory=dict)
    feeds: dict[Any, Array] = field(default_factory=dict)
    made: dict[P, list[Any]] = field(default_factory=dict)

    def outputs(self, pattern: FusionPattern) -> list[Any]:
        """The tensors that the fused op gives."""
        for root in (pattern.pattern, *pattern.also):
            self.build(root)
        named = pattern.named()
        return [self.made[named[name]][index] for name, index in pattern.outputs]

    def build(self, node: P) -> Any:
        """The output of a node that the pattern means."""
        if node not in self.made:
            op = self.innermost if self.innermost in node.ops else node.ops[0]
            spec = registry.get(op)
            inner = [self.build(i) for i in node.inputs if isinstance(i, P)]
            known = [self.captures[i] for i in node.inputs if i in self.captures]
            if op == self.innermost and not inner:
                result = self._leaf(node, spec)
            else:
                like = (inner or known or list(self.captures.values()))[0]
                result = spec(
                    *(
                        self.build(i) if isinstance(i, P) else self._capture(i, spec, like)
                        for i in node.inputs
                    ),
                    **dict(node.attrs),
                )
            self.made[node] = list(result) if isinstance(result, (list, tuple)) else [result]
        return self.made[node][node.output]

    def _leaf(self, node: P, spec: OpSpec) -> Any:
        tensors = []
        for name, value in zip(node.inputs, self.sample.inputs, strict=False):
            array = np.asarray(value)
            if array.dtype.kind in "iu" and array.dtype != np.float32:
                self.captures.setdefault(str(name), tf.constant(array))
                tensors.append(self.captures[str(name)])
                continue
            tensors.append(self._feed(str(name), array.astype(np.float32)))
        attrs = {k: v for k, v in self.sample.attrs.items() if k not in spec.definition.inferred}
        return spec(*tensors, **{**attrs, **dict(node.attrs)})

    def _capture(self, name: str, spec: OpSpec, inner: Any) -> Any:
        """Another operand: a vector over the channels for a bias, else the inner op's shape."""
        if name in self.captures:
            return self.captures[name]
        shape = inner.get_shape().as_list()
        if spec.name.startswith("BiasAdd") or "BatchNorm" in spec.name:
            shape = shape[-1:]
        elif self.column and shape:
            shape = [*shape[:-1], 1]
        return self._feed(name, Sampler(np.float32, f"fusion/{name}").uniform(shape, 0.5, 1.5))

    def _feed(self, name: str, array: Array) -> Any:
        if name not in self.captures:
            tensor = tf.placeholder(tf.float32, array.shape)
            self.captures[name] = tensor
            self.feeds[tensor] = array
        return self.captures[name]


def _compare(
    dut: DeviceUnderTest, pattern: FusionPattern, op: str, sample: Sample, column: bool = False
) -> str:
    """Empty when fused equals unfused, else why the fusion was not applied.

    Raises:
        Failure: it was applied and gives something else.
    """
    with tf.Graph().as_default() as graph:
        made = _Graph(sample, op, column)
        with tf.device(dut.scope):
            outputs = made.outputs(pattern)
        others = {p.name for p in dut.fusions if p is not pattern}
        with without({*others, "fold", "cse", "simplify", "cluster", "memory"}):
            fused, explanation = _run(graph, outputs, made.feeds, optimize=True)
        if not any(r.op == pattern.op for r in explanation.rows):
            missed = {m for r in explanation.rows for m in r.missed}
            return "; ".join(sorted(missed)) or "the compiler did not match it"
        plain, explanation = _run(graph, outputs, made.feeds, optimize=False)
        if any(r.op == pattern.op for r in explanation.rows):
            raise Failure("the fusion is applied although optimization is off")
    for i, (got, want) in enumerate(zip(fused, plain, strict=True)):
        dtype = dtypes.as_dtype(want.dtype)
        name = f"fused against unfused, output {i}"
        mismatch = compare(got, want, tolerance_for(dtype.np), name)
        if mismatch is not None:
            raise Failure(mismatch.text)
    return ""


def _run(
    graph: Any, outputs: list[Any], feeds: dict[Any, Array], *, optimize: bool
) -> tuple[list[Array], Any]:
    config = session_config(soft=True, optimize=optimize)
    with tf.Session(graph=graph, config=config) as session:
        return session.run(outputs, feeds), session.explain(outputs, feeds)
