"""What TensorFlow's modules of ops, cells and versions have inside."""

from __future__ import annotations

import importlib

import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def _installed() -> None:
    tf.install_as_tensorflow()


def test_sparse_tensors_by_their_internal_functions() -> None:
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import gradients_impl, sparse_ops

    assert dtypes._TYPE_TO_STRING[1] == "float32" and callable(
        gradients_impl._hessian_vector_product
    )
    assert sparse_ops._DEFAULT_HASH_KEY == 0xDECAFCAFFE
    with tf.Graph().as_default(), tf.Session() as session:
        value = tf.SparseTensor([[0, 1], [1, 0]], [3, 4], [2, 2])
        handles = sparse_ops._add_many_sparse_to_tensors_map(value)
        taken = sparse_ops._take_many_sparse_from_tensors_map(handles.op, handles, rank=2)
        read = sparse_ops.deserialize_sparse(tf.serialize_sparse(value), tf.int32, rank=2)
        more = sparse_ops.sparse_dense_cwise_add(value, [[10, 20]])
        found = session.run([taken, read, more])
        assert [each.values.tolist() for each in found] == [[3, 4], [3, 4], [23, 14]]


def test_what_the_variables_of_cells_are_called() -> None:
    from tensorflow.python.ops import rnn_cell_impl

    with tf.Graph().as_default():
        cell = tf.nn.rnn_cell.BasicLSTMCell(2)
        cell(tf.ones([1, 3]), cell.zero_state(1, tf.float32))
        names = [v.op.name for v in cell.variables]
        assert names == [
            f"basic_lstm_cell/{name}"
            for name in (rnn_cell_impl._WEIGHTS_VARIABLE_NAME, rnn_cell_impl._BIAS_VARIABLE_NAME)
        ]
        tf.TensorArray(tf.float32, 1).unstack([1.0]).mark_used()
        variable = tf.get_variable("v", [], use_resource=True)
        assert variable._graph_element is tf.get_default_graph().as_graph_element(variable)


def test_generated_functions_by_the_type_of_the_op() -> None:
    from tensorflow.python.ops import gen_math_ops

    assert gen_math_ops.Add(x=1.0, y=2.0).op.type == gen_math_ops.add(1.0, 2.0).op.type == "Add"
    with pytest.raises(TypeError, match="only takes keyword args"):
        gen_math_ops.Add(1.0, 2.0)


def test_a_module_of_ragged_tensors_joins_plain_lists_as_such() -> None:
    from tensorflow.python.ops.ragged import ragged_concat_ops

    with pytest.raises(ValueError, match="rt_inputs may not be empty"):
        ragged_concat_ops.concat([], axis=0)
    unknown = tf.placeholder(tf.int64)
    with pytest.raises(ValueError, match="axis may only be negative if ndims is statically known"):
        ragged_concat_ops.concat([unknown, unknown], -1)


def test_what_tensorflow_tells_of_itself() -> None:
    from tensorflow.python.framework import versions

    for module in (importlib.import_module("tensorflow"), versions):
        told = module.__version__, module.__git_version__, module.__compiler_version__
        assert told == (tf.VERSION, tf.GIT_VERSION, tf.COMPILER_VERSION)
        assert (module.__cxx11_abi_flag__, module.__monolithic_build__) == (1, 0)


def test_the_ops_under_variables() -> None:
    from tensorflow.python.ops import init_ops, state_ops

    with tf.Graph().as_default(), tf.Session() as session:
        fixed = state_ops.variable_op([1, 2], tf.float32, name="fixed")
        free = state_ops.variable_op_v2(None, tf.int32, name="free", shared_name="kept")
        anew = state_ops.variable_op([2], tf.float32, set_shape=False)
        assert fixed.shape.as_list() == [1, 2] and fixed.dtype._is_ref_dtype
        assert free.shape.ndims is None and anew.shape.ndims is None
        begun = [
            state_ops.init_variable(fixed, init_ops.ones_initializer()),
            state_ops.init_variable(free, [3, 4, 5]),
        ]
        assert begun[0].op.name == "fixed/init"
        session.run(begun)
        again = state_ops.variable_op_v2([3], tf.int32, shared_name="kept")
        assert session.run(again).tolist() == [3, 4, 5]
        assert session.run(state_ops.assign_add(fixed, [[1.0, 2.0]])).tolist() == [[2, 3]]
        with pytest.raises(ValueError, match="shape"):
            state_ops.init_variable(free, init_ops.ones_initializer())


def test_loops_are_in_no_context_of_control_flow():
    from opdock.python.ops import control_flow_util, summary_op_util, variable_scope

    assert control_flow_util.GetContainingWhileContext(None, stop_ctxt=None) is None
    assert control_flow_util.GetContainingXLAContext(None) is None
    assert summary_op_util.skip_summary() is False
    assert variable_scope.EagerVariableStore is tf.contrib.eager.EagerVariableStore
