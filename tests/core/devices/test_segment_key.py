"""The key of a segment: which attributes tell segments apart, and which cannot be written down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opdock import dtypes, errors
from opdock.devices.segment import Segment, SegmentNode, SegmentValue
from opdock.kernels.expr.cluster import Reduce


def key(name: str = "a", **attrs: Any) -> str:
    """Of one node with such attributes."""
    value = SegmentValue(0, dtypes.float32, (2,), name)
    result = SegmentValue(1, dtypes.float32, (2,), name)
    node = SegmentNode(name, "Op", attrs, (0,), (1,), (result,), np.negative)
    return Segment(name, None, (node,), (0,), (value,), (result,), (), {}, ()).key


DIFFERENT = [
    1, 1.0, True, "1", b"1", None, -0.0, 0.0, float("nan"), 1j, (1, 2), ("1", 2), {1, 2}, {"a": 1},
    {"a": {"b": 1}}, dtypes.float32, dtypes.int32, np.float32(1), np.float64(1), np.int64(1),
    np.ones(2, np.float32), np.ones(2, dtypes.bfloat16.np), np.ones((2, 1), np.float32),
    np.array([1, 2], np.float32), Reduce("sum", (0,), True), Reduce("sum", (1,), True),
]  # fmt: skip


def test_whatever_an_attribute_is_it_tells_segments_apart():
    found = [key(x=value) for value in DIFFERENT]
    assert len(set(found)) == len(DIFFERENT)
    assert found == [key(x=value) for value in DIFFERENT]


def test_names_and_orders_tell_nothing():
    assert key("a", x=1, y=2) == key("b", y=2, x=1)
    assert key(x={"a": 1, "b": 2}) == key(x={"b": 2, "a": 1})
    assert key(x=1, _class=["loc:@a"], members=(("a", "Add"),)) == key(x=1)
    assert key(x={"a": 1, "_class": ["loc:@a"]}) == key(x={"a": 1})
    assert key(x=1) != key(x=1, _hint=1)


@pytest.mark.parametrize("value", [object(), [object()], {"a": object()}, np.array([object()])])
def test_what_cannot_be_written_down_is_told(value):
    with pytest.raises(errors.UnimplementedError, match=r"a \(Op\): attribute x is a"):
        key(x=value).strip()
