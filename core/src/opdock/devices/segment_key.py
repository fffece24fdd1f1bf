"""What a segment computes, in bytes that are the same in every process: a name for it on disk."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from opdock import errors
from opdock.dtypes import DType

if TYPE_CHECKING:
    from opdock.devices.segment import Segment, SegmentNode

__all__ = ["content_key"]

_SILENT: Final = frozenset({"_class", "_gradient_op_type", "_output_shapes", "members"})
"""Attributes that say where a node stands, how it is differentiated or what it is called."""


def content_key(segment: Segment) -> str:
    """A digest of all that decides what a segment computes, and of no names.

    Raises:
        UnimplementedError: an attribute is of a kind that cannot be written down.
    """
    digest = hashlib.sha256()
    _feed(digest.update, segment)
    return digest.hexdigest()


def _feed(add: Callable[[bytes], Any], segment: Segment) -> None:
    def tell(*parts: Any) -> None:
        add(_told(parts).encode() + b"\n")

    for kind in (segment.inputs, segment.outputs):
        tell("values", *((v.slot, v.dtype, v.shape) for v in kind))
    tell("state", *((v.slot, v.dtype, v.shape, v.read, v.written) for v in segment.variables))
    for slot, value in segment.constants.items():
        on_host = isinstance(value, np.ndarray)
        tell("constant", slot, value if on_host else segment.device.download(value))
    for node in segment.nodes:
        tell(node.op, node.inputs, node.outputs, _qualname(node.call))
        _feed_attrs(tell, node)
        for name, body in sorted(node.bodies.items()):
            tell("body", name)
            _feed(add, body)


def _feed_attrs(tell: Callable[..., None], node: SegmentNode) -> None:
    for name, value in sorted(node.attrs.items()):
        if name in _SILENT or name in node.bodies:
            continue
        try:
            tell(name, value)
        except TypeError as e:
            text = f"{node.name} ({node.op}): attribute {name} is {e}, so the segment has no key"
            raise errors.UnimplementedError(None, None, text) from None


def _told(value: Any) -> str:
    """A value in words that another process finds the same; TypeError if there are none."""
    if isinstance(value, DType):
        return value.name
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes())
        return f"array {value.dtype} {value.shape} {content.hexdigest()}"
    if isinstance(value, np.generic):
        return f"{value.dtype} {value.tobytes().hex()}"
    if value is None or isinstance(value, (str, bytes, int, float, complex)):
        return repr(value)
    if isinstance(value, Mapping):
        items = (f"{_told(k)}: {_told(v)}" for k, v in value.items() if k not in _SILENT)
        return f"{{{', '.join(sorted(items))}}}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(_told, value))})"
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(map(_told, value)))}}}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = (getattr(value, f.name) for f in dataclasses.fields(value))
        return f"{type(value).__qualname__}{_told(tuple(parts))}"
    raise TypeError(f"a {type(value).__qualname__}")


def _qualname(call: Any) -> str:
    while isinstance(call, functools.partial):
        call = call.func
    named = call if hasattr(call, "__qualname__") else type(call)
    return f"{named.__module__}.{named.__qualname__}"
