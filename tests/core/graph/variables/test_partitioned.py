"""Partitioned variables: names, parts, saving and lookups."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.graph.variables.partitioned import PartitionedVariable, PartitionInfo


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def run(fetches, feed=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches, feed)


def test_parts_names_and_the_whole():
    whole = np.arange(10.0, dtype="float32").reshape(5, 2)
    v = tf.get_variable("emb", initializer=whole, partitioner=tf.fixed_size_partitioner(2))
    assert [p.op.name for p in v] == ["emb/part_0", "emb/part_1"]
    assert [p.shape.as_list() for p in v] == [[3, 2], [2, 2]]
    assert [p._get_save_slice_info().spec for p in v] == ["5 2 0,3:0,2", "5 2 3,2:0,2"]
    assert (len(v), v.shape.as_list(), v.name) == (2, [5, 2], "emb")
    value, doubled = run(
        [tf.convert_to_tensor(v), v * 2 if hasattr(v, "__mul__") else tf.multiply(v, 2)]
    )
    np.testing.assert_array_equal(value, whole)
    np.testing.assert_array_equal(doubled, 2 * whole)
    assert len(tf.trainable_variables()) == 2


@pytest.mark.parametrize("strategy", ["div", "mod"])
def test_lookup_and_its_gradient(strategy):
    table = np.arange(14.0, dtype="float32").reshape(7, 2)
    v = tf.get_variable("e", initializer=table, partitioner=tf.fixed_size_partitioner(3))
    rows = tf.nn.embedding_lookup(v, [6, 0, 3], partition_strategy=strategy)
    step = tf.train.GradientDescentOptimizer(1.0).minimize(tf.reduce_sum(rows))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        if strategy == "div":
            np.testing.assert_array_equal(session.run(rows), table[[6, 0, 3]])
        session.run(step)
        change = session.run(v.as_tensor()) - table
    assert change.sum() == -6


def test_reuse_and_its_errors():
    part = tf.fixed_size_partitioner(2)
    with tf.variable_scope("s", partitioner=part):
        v = tf.get_variable("v", [4, 3])
    assert len(v) == 2 and v.name == "s/v"
    with tf.variable_scope("s", reuse=True):
        assert tf.get_variable("v", [4, 3]) is v
        with pytest.raises(ValueError, match="does not exist"):
            tf.get_variable("w", [4, 3], partitioner=part)
        with pytest.raises(ValueError, match="found shape"):
            tf.get_variable("v", [5, 3])
    with tf.variable_scope("s"):
        with pytest.raises(ValueError, match="already exists"):
            tf.get_variable("v", [4, 3], partitioner=part)
        with pytest.raises(ValueError, match="partitioned version"):
            tf.get_variable("v", [4, 3])
    with pytest.raises(ValueError, match="more than one dimension"):
        tf.get_variable("u", [4, 4], partitioner=lambda **kw: [2, 2])
    with pytest.raises(ValueError, match="rank"):
        tf.get_variable("u", [4, 4], partitioner=lambda **kw: [2])
    scalar = tf.get_variable("scalar", [], partitioner=part)
    assert scalar.op.name == "scalar"


def test_initializers_see_where_their_part_lies():
    seen = []

    def init(shape, dtype=None, partition_info=None):
        seen.append((list(shape), partition_info.full_shape, partition_info.var_offset))
        return tf.zeros(shape, dtype)

    tf.get_variable("v", [5], initializer=init, partitioner=tf.fixed_size_partitioner(2))
    assert seen == [([3], [5], [0]), ([2], [5], [3])]


def test_partitioners():
    shape = tf.TensorShape([100, 8])
    assert tf.fixed_size_partitioner(3, axis=1)(shape=shape, dtype=tf.float32) == [1, 3]
    assert tf.variable_axis_size_partitioner(320)(shape=shape, dtype=tf.float32) == [10, 1]
    assert tf.variable_axis_size_partitioner(320, max_shards=4)(shape=shape, dtype=tf.float32) == [
        4,
        1,
    ]
    assert tf.min_max_variable_partitioner(8, min_slice_size=1000)(
        shape=shape, dtype=tf.float32
    ) == [4, 1]
    with pytest.raises(ValueError, match="positive"):
        tf.variable_axis_size_partitioner(0)


def test_create_partitioned_variables():
    parts = tf.create_partitioned_variables([6, 2], [3, 1], tf.ones_initializer())
    assert [p.op.name for p in parts] == [f"PartitionedVariable/part_{i}" for i in range(3)]
    assert run(parts)[0].tolist() == [[1, 1], [1, 1]]


def test_saved_as_one_and_restored_otherwise_cut(tmp_path):
    whole = np.arange(10.0, dtype="float32").reshape(5, 2)
    tf.get_variable("w", initializer=whole, partitioner=tf.fixed_size_partitioner(2))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "m"))
    with tf.Graph().as_default():
        v = tf.get_variable("w", [5, 2], partitioner=tf.fixed_size_partitioner(3))
        with tf.Session() as session:
            tf.train.Saver().restore(session, path)
            np.testing.assert_array_equal(session.run(v.as_tensor()), whole)
    with tf.Graph().as_default():
        v = tf.get_variable("w", [5, 2])
        with tf.Session() as session:
            tf.train.Saver().restore(session, path)
            np.testing.assert_array_equal(session.run(v), whole)


def test_slots_and_training():
    v = tf.get_variable(
        "v", initializer=np.ones(4, "float32"), partitioner=tf.fixed_size_partitioner(2)
    )
    optimizer = tf.train.AdamOptimizer(0.1)
    step = optimizer.minimize(tf.reduce_sum(v.as_tensor() ** 2))
    assert [s.op.name for s in (optimizer.get_slot(p, "m") for p in v)] == [
        "v/part_0/Adam",
        "v/part_1/Adam",
    ]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(step)
        np.testing.assert_allclose(session.run(v.as_tensor()), [0.9] * 4, rtol=1e-5)


# The names that TensorFlow 2.15 saves; those of canned estimators, whose scopes are open, are in
# the checkpoints of TensorFlow 1.
@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize(
    ("scope", "name", "slot"),
    [
        ("", "layer/w", "layer/w/Adagrad"),
        ("dnn", "layer/w", "dnn/layer/w/t_{}/Adagrad"),
        ("linear", "linear_model/w", "linear/linear_model/w/part_{}/Adagrad"),
    ],
)
def test_slots_of_parts_are_named_by_the_scope_that_is_open(scope, name, slot, use_resource):
    with tf.variable_scope(
        scope, partitioner=tf.fixed_size_partitioner(2), use_resource=use_resource
    ):
        whole = tf.get_variable(name, [4, 2])
        optimizer = tf.train.AdagradOptimizer(0.1)
        optimizer.minimize(tf.reduce_sum(tf.square(whole)))
    found = [optimizer.get_slot(part, "accumulator")._get_save_slice_info() for part in whole]
    assert [info.full_name for info in found] == [slot.format(i) for i in range(2)]
    assert [info.spec for info in found] == ["4 2 0,2:0,2", "4 2 2,2:0,2"]


def test_assign():
    v = tf.get_variable(
        "v", [4], partitioner=tf.fixed_size_partitioner(2), initializer=tf.zeros_initializer()
    )
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(v.assign([1.0, 2.0, 3.0, 4.0]))
        session.run(v.assign_add([1.0, 1.0, 1.0, 1.0]))
        assert session.run(v.as_tensor()).tolist() == [2, 3, 4, 5]


def test_a_tensor_says_the_type_of_the_parts():
    whole = tf.constant([[1, 2, 3, 4], [5, 6, 7, 8]])
    parts = tf.create_partitioned_variables([2, 4], [1, 2], whole)
    assert [v.dtype.base_dtype for v in parts] == [tf.int32] * 2
    with pytest.raises(ValueError, match="has shape"):
        tf.create_partitioned_variables([2, 5], [1, 2], whole)
    with pytest.raises(ValueError, match="more slices than elements"):
        tf.create_partitioned_variables([2, 4], [3, 1], whole)


@pytest.mark.parametrize("axis", [0, 1])
def test_parts_of_an_identity_matrix_make_one(axis):
    make = tf.initializers.identity(gain=3.0)
    v = tf.get_variable(
        "v", [5, 4], initializer=make, partitioner=tf.fixed_size_partitioner(2, axis)
    )
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(v.as_tensor()).tolist() == (3 * np.eye(5, 4)).tolist()


def test_parts_are_put_in_order_and_have_to_fit():
    def part(offset, full=(2,)):
        made = tf.Variable([offset])
        made._set_save_slice_info(tf.Variable.SaveSliceInfo("v", list(full), [offset], [1]))
        return made

    def whole(parts, shape=(2,), partitions=(2,)):
        return PartitionedVariable("whole", list(shape), tf.int32, parts, list(partitions))

    first, second = part(0), part(1)
    made = whole([second, first])
    assert list(made) == [first, second]
    assert run(tf.convert_to_tensor(made)).tolist() == [0, 1]
    for parts, shape, partitions, text in (
        ([], [2], [2], "variable_list may not be empty"),
        ([first], [2], [0], "must be positive"),
        ([tf.Variable([0])], [2], [1], "must have a save_slice_info"),
        ([first, second], [3], [2], "full shapes must match shape"),
        ([first, second], [2], [2, 1], r"len\(shape\) != len\(partitions\)"),
    ):
        with pytest.raises(ValueError, match=text):
            whole(parts, shape, partitions)
    with pytest.raises(TypeError, match="partitions is not a list"):
        PartitionedVariable("whole", [2], tf.int32, [first, second], 2)


def test_where_a_part_lies_is_within_the_whole():
    info = PartitionInfo((4, 2), [2, 0])
    assert (info.single_offset([2, 2]), info.single_slice_dim([2, 2])) == (2, 0)
    for wrong, error in (
        ((None, [0]), TypeError), (([1], "0"), TypeError), (([1, 2], [0]), ValueError),
        (([1, 1], [0, 1]), ValueError), (([1], [-1]), ValueError),
    ):  # fmt: skip
        with pytest.raises(error):
            PartitionInfo(*wrong)
