"""Names of TF's internal tree that TensorFlow Probability, Sonnet and TF-Agents lean on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def _mapped() -> None:
    tf.install_as_tensorflow()


def test_conditions_that_only_folding_knows_are_known() -> None:
    from tensorflow.python import pywrap_tensorflow
    from tensorflow.python.framework import smart_cond

    known = tf.reduce_prod(tf.constant([2, 3])) > 5
    fed = tf.placeholder(tf.bool, [])
    ask = pywrap_tensorflow.TF_TryEvaluateConstant_wrapper
    assert tf.get_static_value(known) is None
    assert ask(known.graph._c_graph, known._as_tf_output()) is not None
    assert ask(fed.graph._c_graph, fed._as_tf_output()) is None
    assert smart_cond.smart_constant_value(known) is True
    assert smart_cond.smart_constant_value(fed) is None


def test_a_case_of_other_conditions() -> None:
    from tensorflow.python.ops import control_flow_ops

    def either(pred: Any, true_fn: Any, false_fn: Any, tag: str) -> Any:
        return (tag, true_fn() if pred else false_fn())

    pairs = [(False, lambda: "a"), (True, lambda: "b")]
    found = control_flow_ops._case_helper(
        either, pairs, lambda: "c", False, "case", allow_python_preds=True, tag="t"
    )
    assert found == ("t", ("t", "b"))
    with pytest.raises(TypeError, match="must be a Tensor or a Python bool"):
        control_flow_ops._case_helper(
            either, [(1, lambda: "a")], None, False, "case", allow_python_preds=True
        )


def test_a_convolution_as_an_object() -> None:
    from tensorflow.python.ops import nn_ops

    x, w = np.ones([1, 5, 5, 2], np.float32), np.ones([3, 3, 2, 4], np.float32)
    shapes = tf.TensorShape(x.shape), tf.TensorShape(w.shape)
    made = nn_ops.Convolution(*shapes, "VALID", dilation_rate=(2, 2), name="conv")
    with tf.Session() as sess:
        found, other = sess.run(
            [made(x, w), tf.nn.convolution(x, w, "VALID", dilation_rate=(2, 2))]
        )
    assert np.array_equal(found, other) and found.shape == (1, 1, 1, 4)
    with pytest.raises(ValueError, match="2 != 3"):
        nn_ops.Convolution(shapes[0], tf.TensorShape([3, 3, 3, 4]), "SAME")
    with pytest.raises(ValueError, match="filter|input tensor must have rank"):
        nn_ops.Convolution(tf.TensorShape([1, 5, 2]), shapes[1], "SAME")


def test_composites_are_not_converted() -> None:
    from tensorflow.python.framework import ops

    sparse = tf.SparseTensor([[0]], [1.0], [2])
    assert ops.convert_to_tensor_or_composite(sparse, tf.float32) is sparse
    assert ops.convert_to_tensor_or_composite([1, 2]).dtype is tf.int32
    with pytest.raises(ValueError, match="requested dtype int32"):
        ops.convert_to_tensor_or_composite(sparse, tf.int32)


def test_what_of_tfe_is_for_graphs() -> None:
    from tensorflow.contrib.eager.python import tfe
    from tensorflow.python.util import tf_inspect

    assert tfe.Variable is tf.contrib.eager.Variable and not tfe.in_eager_mode()
    assert tfe.run_test_in_graph_and_eager_modes(lambda self: None) is not None
    assert tf_inspect._inspect.__name__ == "inspect"


def test_a_variable_scope_without_a_name_scope() -> None:
    from tensorflow.python.ops import variable_scope as vs

    with tf.Graph().as_default(), vs._pure_variable_scope("s", dtype=tf.float64) as scope:
        made = tf.get_variable("v", [])
        assert (made.op.name, made.dtype.base_dtype) == ("s/v", tf.float64)
        assert tf.constant(1, name="c").op.name == "c"
        with vs._pure_variable_scope(scope, reuse=True, old_name_scope="old/") as inner:
            assert tf.get_variable("v", []) is made and inner.original_name_scope == "old/"
