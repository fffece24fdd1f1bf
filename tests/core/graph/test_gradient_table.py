"""`ops._gradient_registry`: gradients are read, replaced for a while, and put back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.graph.nodes.gradient_table import GRADIENTS
from opdock.python.framework import ops

TABLE = GRADIENTS._registry


def test_it_is_where_libraries_look_for_it() -> None:
    assert ops._gradient_registry is GRADIENTS
    assert "Relu" in TABLE
    assert "MatMul" in GRADIENTS.list()
    assert "NoSuchOp" not in TABLE
    assert GRADIENTS.lookup("Shape") is None
    assert TABLE["Relu"]["location"][0].endswith(".py")
    with pytest.raises(LookupError, match="NoSuchOp"):
        GRADIENTS.lookup("NoSuchOp")


def test_a_gradient_gives_way_and_comes_back() -> None:
    x = tf.constant([-1.0, 2.0])
    y = tf.nn.relu(x)
    own = TABLE["Relu"]["type"]

    def doubled(op: Any, grad: Any) -> Any:
        return 2 * own(op, grad) + 1

    TABLE["Relu"]["type"] = doubled
    assert TABLE["Relu"]["type"] is doubled
    (changed,) = tf.gradients(y, x)
    TABLE["Relu"]["type"] = own
    (before,) = tf.gradients(y, x)
    with tf.Session() as sess:
        np.testing.assert_array_equal(sess.run([changed, before]), [[1, 3], [0, 1]])


def test_what_was_replaced_is_deleted_and_names_of_ones_own_too() -> None:
    TABLE["Relu"] = {"type": None, "location": ()}
    x = tf.constant([1.0])
    assert tf.gradients(tf.nn.relu(x), x) == [None]
    del TABLE["Relu"]
    assert tf.gradients(tf.nn.relu(x), x) != [None]
    TABLE["TensorListReserve"] = {"type": None, "location": ()}
    del TABLE["TensorListReserve"]
    TABLE["my_Relu"] = {"type": lambda op, grad: -grad, "location": ()}
    with tf.get_default_graph().gradient_override_map({"Relu": "my_Relu"}):
        (found,) = tf.gradients(tf.nn.relu(x), x)
    with tf.Session() as sess:
        assert sess.run(found) == [-1]
    del TABLE["my_Relu"]
    assert "my_Relu" not in TABLE
    with pytest.raises(KeyError):
        del TABLE["my_Relu"]


def test_a_type_is_found_by_its_number() -> None:
    by_number = {each.as_datatype_enum: each.name for each in (tf.float32, tf.string, tf.bool)}
    assert by_number[tf.float32] == "float32"
    assert by_number[tf.string] == "string"
    assert tf.int8 not in by_number
    assert {tf.float32: 1}[1] == 1
