"""Bad calls that follow from an op's definition and its shape function, made of its samples.

Families write error samples for what is special about an op. What every op has to refuse is known
without them: elements of a type that it does not take, and shapes that its shape function refuses,
which it has to refuse again when a step feeds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.nodes.registry import OpSpec
from opdock.testing.harness.build import build_case
from opdock.testing.harness.claims import numpy_dtype, possible_dtypes, varied_attr
from opdock.testing.harness.namespace import tf
from opdock.testing.harness.sample import ErrorSample, Sample, error_samples_for, samples_for

__all__ = ["error_samples_of", "misuses"]

Array = npt.NDArray[Any]

# What is assigned to a variable may have another shape than it, when it is run.
_TAKEN: Final = frozenset({"AssignVariableOp"})
_STRANGE: Final = (dtypes.string, dtypes.complex64, dtypes.bool, dtypes.float32, dtypes.int32)


def error_samples_of(spec: OpSpec) -> Iterator[ErrorSample]:
    """An op's own error samples; those that follow from its definition where it has none."""
    own = list(error_samples_for(spec.name))
    yield from own or misuses(spec)


def misuses(spec: OpSpec) -> Iterator[ErrorSample]:
    """Calls of an op that must fail, for its first sample in which there are any."""
    attr = varied_attr(spec)
    for dtype in sorted(possible_dtypes(spec), key=lambda d: (d is not dtypes.float32, d.name)):
        for sample in samples_for(spec.name, numpy_dtype(dtype.name)):
            found = [*_wrong_types(spec, sample), *_wrong_shapes(spec, sample, attr, dtype)]
            if found:
                yield from found
                return


def _wrong_types(spec: OpSpec, sample: Sample) -> Iterator[ErrorSample]:
    """The sample with elements of a type that the definition excludes."""
    args = spec.definition.inputs
    for attr in dict.fromkeys(arg.type_attr for arg in args if arg.type_attr):
        allowed = spec.definition.attrs[attr].allowed
        strange = next((d for d in _STRANGE if d not in (allowed or _STRANGE)), None)
        if strange is not None:
            inputs = [
                _filled(value, strange) if arg.type_attr == attr else value
                for arg, value in zip(args, sample.inputs, strict=True)
            ]
            yield ErrorSample(inputs, sample.attrs, "TypeError", phase="build", tag="type")
            return


def _filled(value: Any, dtype: DType) -> Any:
    """Elements of another type in the place of an argument's."""
    if isinstance(value, (list, tuple)):
        return [_filled(item, dtype) for item in value]
    if dtype is dtypes.string:
        return np.full(np.shape(value), b"x", object)
    return np.ones(np.shape(value), dtype.np)


def _wrong_shapes(spec: OpSpec, sample: Sample, attr: str, dtype: DType) -> Iterator[ErrorSample]:
    """The sample with a shape that the shape function refuses: when built, and when fed."""
    for place, arg in enumerate(spec.definition.inputs):
        if arg.is_ref or arg.dtype is dtypes.resource:  # its shape is known before it is fed
            continue
        for inputs in _shaped_otherwise(sample.inputs, place):
            if _refused(spec, inputs, sample, attr, dtype):
                bad = ErrorSample(
                    inputs, sample.attrs, "ValueError", phase="build", tag="shape",
                    dtype=dtype.name,
                )  # fmt: skip
                yield bad
                if spec.name not in _TAKEN:
                    yield replace(bad, exception="OpError", phase="run")
                return


def _shaped_otherwise(inputs: Sequence[Any], place: int) -> Iterator[list[Any]]:
    """The inputs with another shape of one, or of the first of a list."""
    given = inputs[place]
    if not isinstance(given, (list, tuple)):
        for other in _other_shapes(np.asarray(given)):
            yield [*inputs[:place], other, *inputs[place + 1 :]]
    elif given:
        for other in _other_shapes(np.asarray(given[0])):
            yield [*inputs[:place], [other, *given[1:]], *inputs[place + 1 :]]


def _other_shapes(value: Array) -> Iterator[Array]:
    """A dimension more, one that is longer, one less, and none at all."""
    yield value[None]
    if value.size:
        for axis in range(value.ndim):
            yield np.concatenate([value, value.take([0], axis)], axis)
        if value.ndim:
            yield value[0]
            yield value.reshape(-1)[:1].reshape(())


def _refused(spec: OpSpec, inputs: Sequence[Any], sample: Sample, attr: str, dtype: DType) -> bool:
    """Whether the op cannot be built of constants and placeholders of these shapes."""
    with tf.Graph().as_default():
        try:
            build_case(
                spec, inputs, sample.attrs, attr=attr, dtype=dtype, variant="plain", scope="",
                name="case",
            )  # fmt: skip
        except ValueError:
            return True
    return False
