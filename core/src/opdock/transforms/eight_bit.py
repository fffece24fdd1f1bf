"""The ops that have 8-bit equivalents, and how to call those."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from opdock import dtypes, errors
from opdock.dtypes import DType
from opdock.graph.nodes import registry
from opdock.transforms.definitions import attribute, input_types, output_types

__all__ = ["EIGHT_BIT", "EightBit", "equivalent"]

_SUMS: Final = {"T1": dtypes.quint8, "T2": dtypes.quint8, "Toutput": dtypes.qint32}
_FILTERED: Final = {"Tinput": dtypes.quint8, "Tfilter": dtypes.quint8, "out_type": dtypes.qint32}
_BIASED: Final = {"T1": dtypes.quint8, "T2": dtypes.quint8, "out_type": dtypes.qint32}
_SAME: Final = {"T": dtypes.quint8}
_ACTIVE: Final = {"Tinput": dtypes.quint8, "out_type": dtypes.quint8}
_WINDOW: Final = ("ksize", "strides", "padding")


@dataclass(frozen=True, slots=True)
class EightBit:
    """The equivalent of an op of floats.

    Attributes:
        op: its type.
        types: its attributes that are types.
        copied: the attributes that it has from the float op.
        plain: indices of inputs that are no numbers to compute with; counted from the end if
            negative.
        lists: whether all lower ends come before all upper ends.
    """

    op: str
    types: dict[str, DType]
    copied: tuple[str, ...] = ()
    plain: frozenset[int] = frozenset()
    lists: bool = False

    @property
    def is_wide(self) -> bool:
        """Whether its results are sums of 32 bits."""
        return dtypes.qint32 in self.types.values()


EIGHT_BIT: Final[dict[str, EightBit]] = {
    "Add": EightBit("QuantizedAdd", _SUMS),
    "AddV2": EightBit("QuantizedAdd", _SUMS),
    "AvgPool": EightBit("QuantizedAvgPool", _SAME, _WINDOW),
    "BiasAdd": EightBit("QuantizedBiasAdd", _BIASED),
    "Concat": EightBit("QuantizedConcat", _SAME, ("N",), frozenset({0}), lists=True),
    "ConcatV2": EightBit("QuantizedConcat", _SAME, ("N",), frozenset({-1}), lists=True),
    "Conv2D": EightBit("QuantizedConv2D", _FILTERED, ("strides", "padding")),
    "MatMul": EightBit("QuantizedMatMul", _SUMS, ("transpose_a", "transpose_b")),
    "MaxPool": EightBit("QuantizedMaxPool", _SAME, _WINDOW),
    "Mul": EightBit("QuantizedMul", _SUMS),
    "Relu": EightBit("QuantizedRelu", _ACTIVE),
    "Relu6": EightBit("QuantizedRelu6", _ACTIVE),
    "Reshape": EightBit("QuantizedReshape", _SAME, (), frozenset({1})),
    "ResizeBilinear": EightBit(
        "QuantizedResizeBilinear", _SAME, ("align_corners", "half_pixel_centers"), frozenset({1})
    ),
}


def equivalent(node: Any) -> EightBit | None:
    """The 8-bit equivalent of a node, if there is one that computes the same."""
    found = EIGHT_BIT.get(node.op)
    if found is None or registry.find(found.op) is None or not _is_plain(node):
        return None
    types = input_types(node)
    data = sum(not text.startswith("^") for text in node.input)
    if len(types) != data:
        raise errors.InvalidArgumentError(
            None, None, f"Node '{node.name}' has {data} inputs, but {node.op} takes {len(types)}"
        )
    plain = {i % len(types) for i in found.plain}
    floats = [t for i, t in enumerate(types) if i not in plain] + output_types(node)
    return found if all(t is dtypes.float32 for t in floats) else None


def _is_plain(node: Any) -> bool:
    """Whether a node has no attribute that the 8-bit op lacks."""
    match attribute(node, "strides") or [1] * 4:
        case [1, rows, columns, 1] if rows == columns:
            pass
        case _:
            return False
    return (
        attribute(node, "data_format") in (None, "NHWC")
        and attribute(node, "padding") != "EXPLICIT"
        and attribute(node, "dilations") in (None, [], [1] * 4)
    )
