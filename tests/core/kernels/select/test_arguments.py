"""Positions of named arguments, and shapes by an op's shape function."""

from __future__ import annotations

import numpy as np
import pytest

from opdock.dtypes import float32, int32
from opdock.kernels.select.arguments import flat_inputs, flat_outputs, infer_shapes, input_positions
from opdock.kernels.select.signature import NodeSig


def test_positions_of_fixed_arguments():
    assert flat_inputs("Reshape", ["shape"], {}) == {1}
    assert flat_inputs("Reshape", [], {}) == frozenset()
    assert flat_outputs("Reshape", ["output"], {}) == {0}


def test_positions_behind_a_list():
    assert flat_inputs("ConcatV2", ["axis"], {"N": 3, "T": float32}) == {3}
    assert input_positions("ConcatV2", {"N": 2})["values"] == range(2)


def test_an_unknown_op_has_none():
    assert flat_inputs("NoSuchOp", ["x"], {}) == frozenset()


def test_shapes_follow_from_values():
    sig = NodeSig(
        "Reshape", "r", {"T": float32, "Tshape": int32}, [(6,), (2,)], [float32, int32], [None],
        [float32],
    )  # fmt: skip
    values = {1: np.array([2, -1], np.int32)}
    assert infer_shapes(sig, [(6,), (2,)], values.get) == [(2, 3)]
    with pytest.raises(ValueError, match="'r'"):
        infer_shapes(sig, [(7,), (2,)], values.get)
