"""`tf.Variable`, both flavours: how it is made, read, written, saved in a MetaGraph."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def test_a_variable_without_elements_need_not_be_initialized():
    """So programs gather strings in one that is in no collection; a handle leads nowhere yet."""
    words = tf.Variable([], dtype=tf.string, collections=[], use_resource=False)
    table = tf.Variable(tf.zeros([2, 0]), use_resource=False)
    resource = tf.Variable(tf.zeros([2, 0]), use_resource=True)
    unknown = tf.Variable(tf.zeros([0]), validate_shape=False, use_resource=False)
    more = tf.assign(words, tf.concat([words, ["a"]], 0), validate_shape=False)
    with tf.Session() as session:
        assert session.run(words).shape == (0,)
        assert session.run(tf.assign_add(table, tf.zeros([2, 0]))).shape == (2, 0)
        lacking = tf.report_uninitialized_variables([table, resource, unknown])
        assert sorted(session.run(lacking)) == [b"Variable_2", b"Variable_3"]
        for variable in (resource, unknown):
            with pytest.raises(tf.errors.FailedPreconditionError):
                session.run(variable)
        # What has grown since is not taken for what it was.
        assert session.run(more).tolist() == [b"a"]
        assert session.run(more).tolist() == [b"a", b"a"]
        joined = tf.concat([tf.identity(words), ["b"]], 0)
        assert session.run(joined).tolist() == [b"a", b"a", b"b"]


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


both = pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])


def start():
    session = tf.Session()
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    return session


# ---------------------------------------------------------------- making
def test_nodes_of_a_reference_variable(graph):
    v = tf.Variable([1.0, 2.0], name="v")
    assert [(o.name, o.type) for o in graph.get_operations()] == [
        ("v/initial_value", "Const"), ("v", "VariableV2"), ("v/Assign", "Assign"),
        ("v/read", "Identity"),
    ]  # fmt: skip
    assert v.name == "v:0"
    assert v.dtype.name == "float32_ref"
    assert repr(v) == "<tf.Variable 'v:0' shape=(2,) dtype=float32_ref>"
    assert v.op.type == "VariableV2"
    assert v.initializer.name == "v/Assign"
    assert v.initial_value.name == "v/initial_value:0"
    assert v.value().name == "v/read:0"
    assert v.op.get_attr("shared_name") == b""


def test_nodes_of_a_resource_variable(graph):
    v = tf.Variable([1.0, 2.0], name="v", use_resource=True)
    assert [(o.name, o.type) for o in graph.get_operations()] == [
        ("v/Initializer/initial_value", "Const"), ("v", "VarHandleOp"),
        ("v/IsInitialized/VarIsInitializedOp", "VarIsInitializedOp"),
        ("v/Assign", "AssignVariableOp"), ("v/Read/ReadVariableOp", "ReadVariableOp"),
    ]  # fmt: skip
    assert repr(v) == "<tf.Variable 'v:0' shape=(2,) dtype=float32>"
    assert v.op.get_attr("shared_name") == b"v"
    assert v.handle.dtype is tf.resource


def test_the_second_positional_argument_is_trainable():
    assert tf.Variable([0.1], tf.float32) in tf.trainable_variables()
    assert tf.Variable([0.1], False) not in tf.trainable_variables()


@both
def test_types(resource):
    make = lambda *a, **k: tf.Variable(*a, use_resource=resource, **k).dtype.base_dtype
    assert make(1) is tf.int32
    assert make(1.0) is tf.float32
    assert make(1, dtype=tf.float32) is tf.float32
    assert make(np.ones(2)) is tf.float64
    assert make("text") is tf.string
    assert make(lambda: tf.ones([2], tf.int64)) is tf.int64
    assert make([True]) is tf.bool
    with pytest.raises((TypeError, ValueError)):
        make(1.5, dtype=tf.int32)
    with pytest.raises(ValueError):
        make(tf.ones([2]), dtype=tf.int32)


@both
def test_what_cannot_be_an_initial_value(resource):
    with pytest.raises(ValueError, match="initial_value must be specified"):
        tf.Variable(use_resource=resource)
    with pytest.raises(ValueError, match="must be a list, tuple, or set"):
        tf.Variable(1.0, collections="variables", use_resource=resource)
    with pytest.raises(ValueError, match="constraint"):
        tf.Variable(1.0, constraint=3, use_resource=resource)


def test_an_initial_value_of_unknown_shape():
    x = tf.placeholder_with_default([1.0, 2.0], [None])
    with pytest.raises(ValueError, match="must have a shape specified"):
        tf.Variable(x, use_resource=False)
    # A resource is as open as its first value, whatever it is told about shapes.
    for validate in (True, False):
        v = tf.Variable(x, validate_shape=validate, use_resource=True)
        assert v.shape.as_list() == [None]
    closed = tf.Variable([1.0], validate_shape=False, use_resource=True)
    assert closed.shape.as_list() == [1]


@both
def test_without_validate_shape_the_shape_is_open(resource):
    x = tf.placeholder_with_default([1.0, 2.0], None if resource else [None])
    v = tf.Variable(x, validate_shape=False, use_resource=resource)
    assert v.shape.ndims is None
    grow = tf.assign(v, [1.0, 2.0, 3.0], validate_shape=False)
    with start() as session:
        assert session.run(v).shape == (2,)
        session.run(grow)
        assert session.run(v).shape == (3,)


@both
def test_a_variable_from_another_does_not_depend_on_the_order(resource):
    a = tf.Variable([3.0], use_resource=resource, name="a")
    b = tf.Variable(a + 1, use_resource=resource)
    c = tf.Variable(a.initialized_value() * 2, use_resource=resource)
    with start() as session:
        assert session.run([b, c]) == [[4], [6]]
        session.run(a.assign([10.0]))
        session.run([b.initializer, c.initializer])
        assert session.run([b, c]) == [[11], [20]]


@both
def test_a_function_as_initial_value(resource):
    v = tf.Variable(lambda: tf.ones([3]), name="v", use_resource=resource)
    assert v.initial_value.op.name.startswith("v/Initializer/")
    with start() as session:
        assert list(session.run(v)) == [1, 1, 1]


@both
def test_made_inside_a_loop_or_branch_it_belongs_to_the_program(resource, graph):
    made = []

    def init_inside():
        # A function, as in TF: a tensor of the body could not leave it.
        v = tf.Variable(lambda: tf.constant(2.0), name="inner", use_resource=resource)
        made.append(v)
        return v * 3.0

    out = tf.cond(tf.constant(True), init_inside, lambda: tf.constant(0.0))
    assert made[0].graph is graph
    assert made[0] in tf.global_variables()
    with start() as session:
        assert session.run(out) == 6


# ---------------------------------------------------------------- reading and writing
@both
def test_uninitialized(resource):
    v = tf.Variable(1.0, name="lazy", use_resource=resource)
    w = tf.Variable(1.0, name="busy", use_resource=resource)
    with tf.Session() as session:
        text = "lazy" if resource else "Attempting to use uninitialized value lazy"
        for what in (v, v + 1):
            with pytest.raises(tf.errors.FailedPreconditionError, match=text):
                session.run(what)
        # Who updates a resource variable looks it up, and finds nothing.
        lacking = tf.errors.NotFoundError if resource else tf.errors.FailedPreconditionError
        with pytest.raises(lacking, match=text):
            session.run(v.assign_add(1.0))
        assert not session.run(tf.is_variable_initialized(v))
        session.run(w.initializer)
        assert list(session.run(tf.report_uninitialized_variables())) == [b"lazy"]
        session.run(v.initializer)
        assert session.run(tf.is_variable_initialized(v))
        assert list(session.run(tf.report_uninitialized_variables())) == []
        session.run(tf.assert_variables_initialized())


@both
def test_assignments_return_the_new_value(resource):
    v = tf.Variable([1.0, 2.0], use_resource=resource)
    with start() as session:
        assert list(session.run(v.assign([5.0, 6.0]))) == [5, 6]
        assert list(session.run(v.assign_add([1.0, 1.0]))) == [6, 7]
        assert list(session.run(v.assign_sub([2.0, 2.0]))) == [4, 5]
        assert list(session.run(tf.assign(v, [1.0, 1.0]))) == [1, 1]
        assert list(session.run(tf.assign_add(v, [1.0, 1.0]) * 10)) == [20, 20]
        assert list(session.run(v)) == list(v.eval(session)) == [2, 2]
        assert session.run(v.assign([0.0, 0.0], read_value=False)) is None


@both
def test_wrong_assignments(resource):
    v = tf.Variable([1.0, 2.0], use_resource=resource)
    with pytest.raises((ValueError, TypeError)):
        v.assign([1.0, 2.0, 3.0])
    with pytest.raises((ValueError, TypeError)):
        v.assign(tf.constant([1, 2]))
    with pytest.raises((ValueError, TypeError)):
        v.assign_add(tf.constant([1, 2]))


def test_an_assignment_of_another_shape_fails_when_it_runs():
    v = tf.Variable([1.0, 2.0])
    late = v.assign(tf.placeholder_with_default([1.0, 2.0, 3.0], None))
    with start() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="must be equal, but are 2 and 3"):
            session.run(late)
        assert list(session.run(v)) == [1, 2]


@both
def test_scatter(resource):
    v = tf.Variable([1.0, 2.0, 3.0], use_resource=resource)
    slices = tf.IndexedSlices(tf.constant([10.0, 20.0]), tf.constant([2, 0]))
    with start() as session:
        assert list(session.run(v.scatter_add(slices))) == [21, 2, 13]
        assert list(session.run(v.scatter_sub(slices))) == [1, 2, 3]
        assert list(session.run(v.scatter_update(slices))) == [20, 2, 10]
        assert list(session.run(v.scatter_nd_add([[1]], [5.0]))) == [20, 7, 10]
        assert list(session.run(v.scatter_nd_sub([[1]], [5.0]))) == [20, 2, 10]
        assert list(session.run(v.scatter_nd_update([[0], [1]], [0.0, 1.0]))) == [0, 1, 10]
        assert list(session.run(tf.scatter_add(v, [0, 0], [1.0, 2.0]))) == [3, 1, 10]
        assert list(session.run(tf.scatter_mul(v, [0], [2.0]))) == [6, 1, 10]
        assert list(session.run(tf.scatter_max(v, [0], [2.0]))) == [6, 1, 10]
        assert list(session.run(tf.scatter_min(v, [0], [2.0]))) == [2, 1, 10]
        with pytest.raises(tf.errors.InvalidArgumentError, match="3"):
            session.run(tf.scatter_add(v, tf.placeholder_with_default([3], [1]), [1.0]))
        assert list(session.run(v)) == [2, 1, 10]
    with pytest.raises(ValueError, match="not IndexedSlices"):
        v.scatter_add(tf.constant([1.0]))


def test_count_up_to():
    v = tf.Variable(0)
    count = v.count_up_to(2)
    with start() as session:
        assert [session.run(count), session.run(count)] == [0, 1]
        with pytest.raises(tf.errors.OutOfRangeError, match="2"):
            session.run(count)
        assert session.run(v) == 2


@both
def test_load_adds_nothing_to_the_graph(resource, graph):
    v = tf.Variable([1.0, 2.0], use_resource=resource)
    with start() as session:
        graph.finalize()
        v.load([7.0, 8.0], session)
        assert list(session.run(v)) == [7, 8]
        v.load(np.array([9.0, 9.0]))
        assert list(session.run(v)) == [9, 9]
    with pytest.raises(ValueError, match="session"):
        v.load([1.0, 1.0])


@both
def test_slices_of_a_variable_can_be_assigned(resource):
    v = tf.Variable(np.arange(6, dtype=np.float32).reshape(2, 3), use_resource=resource)
    with start() as session:
        session.run(v[0, 1:].assign([10.0, 20.0]))
        np.testing.assert_array_equal(session.run(v), [[0, 10, 20], [3, 4, 5]])


@both
def test_initialized_value(resource):
    v = tf.Variable(3.0, use_resource=resource)
    value = v.initialized_value()
    with tf.Session() as session:
        assert session.run(value) == 3
        session.run(v.initializer)
        session.run(v.assign(4.0))
        assert session.run(value) == 4


@both
def test_reads_follow_control_dependencies(resource):
    v = tf.Variable(1.0, use_resource=resource)
    with tf.control_dependencies([v.assign(5.0)]):
        later = v.read_value()
    with start() as session:
        assert session.run(later) == 5


def test_a_resource_snapshot_is_of_its_time():
    v = tf.Variable(1.0, use_resource=True)
    before = v.read_value()
    with tf.control_dependencies([before]):
        write = v.assign(5.0, read_value=False)
    with tf.control_dependencies([write]):
        after = v.read_value()
    with start() as session:
        assert session.run([before, after]) == [1, 5]


@both
def test_what_a_variable_is_not(resource):
    v = tf.Variable([1.0], use_resource=resource)
    with pytest.raises(TypeError, match="not iterable"):
        list(v)
    with pytest.raises(AttributeError):
        v.nothing
    assert v == v
    assert len({v, tf.Variable(1.0)}) == 2
    with pytest.raises(TypeError):
        bool(v > 0)


@both
def test_a_session_holds_its_own_values(resource):
    v = tf.Variable(1.0, use_resource=resource)
    bump = v.assign_add(1.0)
    with start() as first, start() as second:
        first.run(bump)
        assert first.run(v) == 2
        assert second.run(v) == 1


# ---------------------------------------------------------------- facts and protos
@both
def test_shape_and_flags(resource):
    constrain = lambda x: x
    v = tf.Variable(tf.zeros([2, 3]), constraint=constrain, use_resource=resource)
    assert v.shape.as_list() == v.get_shape().as_list() == [2, 3]
    assert v.constraint is constrain
    assert v.trainable
    assert v.graph is tf.get_default_graph()
    with tf.device("/cpu:0"):
        w = tf.Variable(1.0, use_resource=resource)
    assert w.device == "/device:CPU:0"
    assert w.value().device == "/device:CPU:0"


@both
def test_proto_round_trip(resource):
    with tf.name_scope("s"):
        v = tf.Variable([1.0, 2.0], name="v", trainable=False, use_resource=resource)
    proto = v.to_proto()
    assert (proto.variable_name, proto.is_resource) == ("s/v:0", resource)
    again = tf.Variable.from_proto(proto)
    assert again.op is v.op
    assert again.initializer is v.initializer
    assert again.trainable is False
    assert again.shape == v.shape
    with start() as session:
        assert list(session.run(again + 1)) == [2, 3]
        session.run(again.assign([0.0, 0.0]))
        assert list(session.run(v)) == [0, 0]
    assert v.to_proto(export_scope="other") is None
    inside = v.to_proto(export_scope="s")
    assert inside.variable_name == "v:0"
    assert tf.Variable.from_proto(inside, import_scope="s").op is v.op


def test_caching_device_and_colocation():
    v = tf.Variable(1.0, caching_device="/cpu:0", name="v")
    assert v.value().device == "/device:CPU:0"
    assert v.initializer.colocation_groups() == [b"loc:@v"]
    w = tf.Variable(1.0, name="w")
    assert w.value().op.colocation_groups() == [b"loc:@w"]


@pytest.mark.parametrize("use_resource", [False, True])
def test_made_in_a_branch_it_is_the_program_s_and_named_after_the_place(use_resource):
    with tf.Graph().as_default() as graph:
        made = []

        def branch():
            made.append(tf.Variable(1.0, name="x", use_resource=use_resource))
            with tf.name_scope("inner"):
                made.append(tf.Variable(1.0, name="x", use_resource=use_resource))
            with tf.variable_scope("vs", use_resource=use_resource):
                made.append(tf.get_variable("y", [2]))
            return made[0] * 2.0

        late = tf.no_op()
        with tf.name_scope("top"), tf.control_dependencies([late]):
            tf.cond(tf.placeholder(tf.bool, []), branch, lambda: 0.0)
        names = ["top/cond/x", "top/cond/inner/x", "vs/y"]
        assert [v.op.name for v in made] == names
        assert all(v.graph is graph for v in made)
        assert not any(v.initializer.control_inputs for v in made)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            assert sess.run(made[0]) == 1.0


# ---------------------------------------------------------------- a shape beside the value
@both
def test_a_shape_that_is_wider_than_the_initial_value(resource):
    v = tf.Variable(np.zeros([1, 1]), shape=tf.TensorShape(None), use_resource=resource)
    rows = tf.Variable(np.zeros([1, 2]), shape=[None, 2], use_resource=resource)
    assert v.shape.ndims is None and rows.shape.as_list() == [None, 2]
    with start() as session:
        assert session.run(v).shape == (1, 1)
        session.run([v.assign(np.ones([2, 3])), rows.assign(np.ones([4, 2]))])
        assert session.run(v.read_value()).shape == (2, 3)
        assert session.run(rows.read_value()).shape == (4, 2)
    with pytest.raises(ValueError, match=r"shape \(\(1, 2\)\) is not compatible.*\(\(3,\)\)"):
        tf.Variable(np.zeros([1, 2]), shape=[3], use_resource=resource)


# ---------------------------------------------------------------- parts of a value
def test_slices_at_coordinates_of_a_resource_variable():
    start_value = np.arange(6, dtype=np.float32).reshape(3, 2)
    v = tf.Variable(start_value, use_resource=True)
    rows, elements = tf.gather_nd(v, [[0], [2], [2]]), tf.gather_nd(v, [[0, 1], [2, 0]], name="e")
    assert rows.op.inputs[0].op.type == "ResourceGatherNd"
    assert rows.op.inputs[0].name == "GatherNd:0"
    assert elements.op.inputs[0].name == "e:0"
    assert rows.shape.as_list() == [3, 2] and elements.shape.as_list() == [2]
    of_rows, of_elements = (tf.gradients(y * y, v)[0] for y in (rows, elements))
    assert isinstance(of_rows, tf.IndexedSlices)
    with start() as session:
        np.testing.assert_array_equal(session.run(rows), start_value[[0, 2, 2]])
        np.testing.assert_array_equal(session.run(elements), [1, 4])
        slices = session.run(of_rows)
        np.testing.assert_array_equal(slices.values, 2 * start_value[[0, 2, 2]])
        np.testing.assert_array_equal(slices.indices, [0, 2, 2])
        np.testing.assert_array_equal(session.run(of_elements), [[0, 2], [0, 0], [8, 0]])


def test_gradients_of_slices_at_coordinates_in_a_loop():
    v = tf.Variable(tf.ones([3, 2]), use_resource=True)
    total = tf.while_loop(
        lambda i, _: i < 2,
        lambda i, a: (i + 1, a + tf.reduce_sum(tf.gather_nd(v, [[i]]))),
        [0, 0.0],
    )[1]
    with start() as session:
        slices = session.run(tf.gradients(total, v)[0])
        assert sorted(slices.indices) == [0, 1]
        np.testing.assert_array_equal(slices.values, np.ones((2, 2)))


@pytest.mark.parametrize("use_resource", [False, True])
def test_updates_of_another_shape_are_no_node(use_resource: bool) -> None:
    with tf.Graph().as_default():
        v = tf.Variable(tf.zeros([2, 2, 2]), use_resource=use_resource)
        with pytest.raises(ValueError, match="The outer 2 dimensions of indices.shape="):
            tf.scatter_nd_update(v, tf.zeros([3, 2, 2], tf.int32), tf.zeros([2, 2, 2]))
        with pytest.raises(ValueError, match=r"The inner 2 dimensions of input.shape=\[2,2,2\]"):
            tf.scatter_nd_update(v, tf.zeros([2, 2, 1], tf.int32), tf.zeros([2, 2]))
