"""Types beside the one that claims range over: an index of int32 is tried as int64 too.

Claims are per element type of an op's data. Many ops have further type attributes that choose
between int32 and int64 (`Tidx`, `Tindices`, `out_type`); a sample is one or the other. For each
that no sample has, the first sample that can is taken again with the other type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from opdock import dtypes
from opdock.dtypes import DType
from opdock.graph.nodes.opdef import AttrDef
from opdock.graph.nodes.registry import OpSpec
from opdock.testing.harness.sample import Sample

__all__ = ["twins"]

_EITHER = frozenset({dtypes.int32, dtypes.int64})


def twins(spec: OpSpec, varied: str, samples: Sequence[Sample]) -> Iterator[Sample]:
    """Samples in the types that `samples` leave out.

    Args:
        spec: the op.
        varied: the type attribute that the claim is about.
        samples: the op's samples.
    """
    for attr in spec.definition.attrs.values():
        if attr.type != "type" or attr.name == varied or frozenset(attr.allowed or ()) != _EITHER:
            continue
        seen = {_value(spec, attr, s) for s in samples}
        for dtype in sorted(_EITHER - seen, key=lambda d: d.name):
            first = next((s for s in samples if _value(spec, attr, s) is not None), None)
            if first is not None:
                yield _retyped(spec, attr, first, dtype)


def _value(spec: OpSpec, attr: AttrDef, sample: Sample) -> DType | None:
    """The type that a sample gives to an attribute."""
    for arg, value in zip(spec.definition.inputs, sample.inputs, strict=True):
        if arg.type_attr == attr.name:
            items = value if isinstance(value, (list, tuple)) and arg.is_list else [value]
            return dtypes.as_dtype(np.asarray(items[0]).dtype) if len(items) else None
    given = sample.attrs.get(attr.name, attr.default)
    return None if given is None else dtypes.as_dtype(given)


def _retyped(spec: OpSpec, attr: AttrDef, sample: Sample, dtype: DType) -> Sample:
    inputs, found = [], False
    for arg, value in zip(spec.definition.inputs, sample.inputs, strict=True):
        if arg.type_attr != attr.name:
            inputs.append(value)
            continue
        found = True
        inputs.append(_cast(value, dtype))
    attrs = dict(sample.attrs)
    if not found or attr.name in attrs:
        attrs[attr.name] = dtype.np
    tag = f"{sample.tag}.{attr.name}-{dtype.name}".lstrip(".")
    return replace(sample, inputs=inputs, attrs=attrs, tag=tag)


def _cast(value: Any, dtype: DType) -> Any:
    if isinstance(value, (list, tuple)):
        return [np.asarray(v).astype(dtype.np) for v in value]
    return np.asarray(value).astype(dtype.np)
