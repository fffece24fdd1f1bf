"""`tf.wrap_function`: traced once, called often, and no more runs than the results need."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def session():
    with tf.Graph().as_default(), tf.Session() as made:
        yield made


def test_variables_are_the_programs_and_each_call_works_on_them(session):
    calls = []

    def f(x, do_add):
        calls.append(x)
        v = tf.Variable(5.0)
        op = v.assign_add(x) if do_add else v.assign_sub(x)
        with tf.control_dependencies([op]):
            return v.read_value()

    add = tf.wrap_function(f, [tf.TensorSpec((), tf.float32), True])
    sub = tf.wrap_function(f, [tf.TensorSpec((), tf.float32), False])
    session.run(tf.global_variables_initializer())
    once = add(1.0)
    assert session.run(once) == 6.0
    assert session.run(once) == 7.0
    assert session.run(sub(1.0)) == 4.0
    assert len(calls) == 2
    assert tf.global_variables() == [*add.variables, *sub.variables]


def test_only_what_the_results_need_runs(session):
    seen = []

    def note(word):
        return tf.py_func(lambda: seen.append(word) or np.int32(0), [], tf.int32)

    def f():
        note("A")
        with tf.control_dependencies([note("B")]):
            return tf.constant(10)

    assert session.run(tf.wrap_function(f, [])()) == 10
    assert seen == ["B"]


def test_structures_captures_and_operations(session):
    scale = tf.placeholder_with_default(3.0, [])
    with tf.variable_scope("w", use_resource=True):
        count = tf.get_variable("count", initializer=0)

    def f(pair):
        return {"sum": (pair[0] + pair[1]) * scale, "done": tf.assign_add(count, 1).op, "no": None}

    wrapped = tf.wrap_function(f, [(tf.TensorSpec([2]), tf.TensorSpec([2]))], name="named")
    session.run(tf.global_variables_initializer())
    found = wrapped(([1.0, 2.0], [3.0, 4.0]))
    assert found["done"] is None and found["no"] is None
    assert found["sum"].shape == [2]
    # Who asks for one result has the operations run, too.
    assert session.run(found["sum"]).tolist() == [12.0, 18.0]
    assert session.run(count) == 1
    assert session.run(tf.gradients(found["sum"], scale)) == [10.0]
    with pytest.raises(TypeError, match="takes 1 arguments, got 2"):
        wrapped([1.0, 2.0], [3.0, 4.0])
    with pytest.raises(ValueError, match="has shape"):
        wrapped(([1.0], [3.0, 4.0]))


def test_a_function_without_results_is_an_operation(session):
    v = tf.get_variable("v", initializer=1.0, use_resource=True)
    double = tf.wrap_function(lambda: tf.assign(v, 2.0 * v).op, [])
    session.run(tf.global_variables_initializer())
    session.run(double())
    assert session.run(v) == 2.0


def test_prune_gives_the_function_between_two_tensors(session):
    offset = tf.placeholder_with_default(100.0, [])

    def f(x):
        y = tf.multiply(x, 2.0, name="y")
        return tf.add(y, 1.0, name="z"), y + offset

    whole = tf.wrap_function(f, [tf.TensorSpec([], tf.float32, "x")])
    y = whole.graph.get_tensor_by_name("y:0")
    assert session.run(whole.prune(whole.inputs, "z:0")(10.0)) == 21.0
    assert session.run(whole.prune([y], ["z:0"])(10.0)) == [11.0]
    assert session.run(whole.prune("x:0", whole.structured_outputs[1])(1.0)) == 102.0
    with pytest.raises(ValueError, match="depend on 'x'"):
        whole.prune([], y)
    with pytest.raises(ValueError, match="Feeds must be tensors"):
        whole.prune([y.op], y)
    with pytest.raises(ValueError, match="from this graph"):
        whole.prune([offset], y)


def test_a_graph_with_a_wrapped_function_goes_out_and_in(session):
    wrapped = tf.wrap_function(lambda x: x * 2.0, [tf.TensorSpec([])])
    tf.identity(wrapped(4.0), name="out")
    graph_def = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default(), tf.Session() as other:
        (out,) = tf.import_graph_def(graph_def, return_elements=["out:0"])
        assert other.run(out) == 8.0


def test_sparse_and_ragged_arguments(session):
    def f(rows, cells, scale):
        return rows * scale, tf.sparse.reduce_sum(cells), {"both": (cells, rows + 1.0)}

    whole = tf.wrap_function(
        f,
        [
            tf.RaggedTensorSpec([None, None], tf.float32),
            tf.SparseTensorSpec([2, 2], tf.float32),
            tf.TensorSpec([], tf.float32),
        ],
    )
    rows = tf.ragged.constant([[1.0, 2.0], [3.0]])
    cells = tf.SparseTensor([[0, 1], [1, 0]], [4.0, 5.0], [2, 2])
    scaled, total, more = session.run(whole(rows, cells, 2.0))
    assert scaled.to_list() == [[2.0, 4.0], [6.0]] and total == 9.0
    assert more["both"][0].values.tolist() == [4.0, 5.0]
    assert more["both"][1].to_list() == [[2.0, 3.0], [4.0]]
    # The feeds of a part are the tensors of which the ragged one is made.
    part = whole.prune([*whole.inputs[:2], whole.inputs[-1]], whole.structured_outputs[0])
    assert session.run(part(rows.values, rows.row_splits, 3.0)).to_list() == [[3.0, 6.0], [9.0]]
