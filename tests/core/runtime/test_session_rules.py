"""What sessions refuse, warn of and report, in TensorFlow's words."""

from __future__ import annotations

import threading
import warnings

import pytest

import opdock as tf
from opdock.graph.nodes.default_session import pop_default_session


def test_contexts_nest_properly() -> None:
    outer, inner = tf.Session(), tf.Session()
    with pytest.raises(RuntimeError, match="not re-entrant"), outer, outer:
        pass
    first, second = outer.as_default(), inner.as_default()
    first.__enter__()
    second.__enter__()
    with pytest.raises(AssertionError, match="Nesting violated for default stack"):
        first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert tf.get_default_session() is outer
    pop_default_session(outer)


def test_a_second_interactive_session_warns() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tf.InteractiveSession().close()
        first = tf.InteractiveSession()
    with pytest.warns(UserWarning, match="An interactive session is already active"):
        second = tf.InteractiveSession()
    first.close()
    assert tf.get_default_session() is second
    second.close()
    assert tf.get_default_session() is None


def test_targets() -> None:
    with pytest.raises(TypeError, match="target must be a string, but got <class 'int'>"):
        tf.Session(37)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"Did you do \"Session\(config\)\""):
        tf.Session(tf.ConfigProto())


def test_a_device_that_nobody_has_fails_any_step_but_an_interactive_one(graph) -> None:
    with tf.device("/device:NONESUCH:7"):
        tf.constant(1.0)
    fine = tf.constant(2.0)
    with tf.Session() as sess:
        with pytest.raises(tf.errors.InvalidArgumentError, match="NONESUCH"):
            sess.run(fine)
    pruned = tf.ConfigProto(graph_options=tf.GraphOptions(place_pruned_graph=True))
    for config in pruned, tf.ConfigProto(allow_soft_placement=True):
        with tf.Session(config=config) as sess:
            assert sess.run(fine) == 2
    interactive = tf.InteractiveSession()
    assert fine.eval() == 2
    interactive.close()


def test_names_as_bytes(graph) -> None:
    c = tf.constant(42.0, name=b"c")
    assert c.name == "c:0"
    with tf.Session() as sess:
        assert sess.run(b"c:0") == 42
        assert sess.run([b"c", {"x": b"c:0"}], {b"c:0": 1.0}) == [None, {"x": 1.0}]


def test_shapes_in_the_graph_def_on_request(graph) -> None:
    tf.constant([[1, 2]])
    config = tf.ConfigProto(graph_options=tf.GraphOptions(infer_shapes=True))
    assert "_output_shapes" in tf.Session(config=config).graph_def.node[0].attr
    assert "_output_shapes" not in tf.Session().graph_def.node[0].attr


def test_metadata_tells_of_the_last_step_alone(graph) -> None:
    a = tf.constant(1)
    meta = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
    with tf.Session() as sess:
        sess.run(a, options=options, run_metadata=meta)
        # A constant that is fetched is part of the step, though nothing computes it.
        assert [n.node_name for n in meta.step_stats.dev_stats[0].node_stats] == ["Const"]
        assert meta.partition_graphs
        sess.run(a, run_metadata=meta)
        assert not meta.ListFields()


def test_cost_models(graph) -> None:
    config = tf.ConfigProto(
        graph_options=tf.GraphOptions(build_cost_model=3, build_cost_model_after=2)
    )
    x = tf.placeholder(tf.float32, [])
    y = x * 2 + 1
    with tf.Session(config=config) as sess:
        told = []
        for _ in range(9):
            meta = tf.RunMetadata()
            sess.run(y, {x: 1.0}, run_metadata=meta)
            told.append(meta.HasField("cost_graph"))
    assert told == [False, False, False, False, True, False, False, True, False]


def test_feeding_a_value_that_static_shapes_rest_on(graph) -> None:
    a, size = tf.constant([2.0] * 4), tf.constant([2, 2])
    square = tf.reshape(a, size) + 0.0
    with tf.Session() as sess:
        assert sess.run(square, {size: [4, 1]}).shape == (4, 1)
        with pytest.raises(tf.errors.InvalidArgumentError, match="requested shape has 21"):
            sess.run(square, {size: [3, 7]})


@pytest.mark.parametrize(
    ("dtype", "value"), [(tf.string, 1), (tf.bool, 2), (tf.float32, 2**24 + 1), (tf.uint8, -1)]
)
def test_integers_that_the_type_does_not_have(graph, dtype, value) -> None:
    x = tf.placeholder(dtype, [])
    with tf.Session() as sess, pytest.raises(TypeError, match="Type of feed value .* is not"):
        sess.run(x, {x: value})


def test_threads_build_one_graph(graph) -> None:
    failed: list[BaseException] = []

    def build() -> None:
        try:
            with graph.as_default():
                for turn in range(3):
                    with tf.name_scope("scope"), tf.device("/cpu:0"):
                        x = tf.placeholder(tf.float32, [])
                        loop = tf.while_loop(lambda v: v < 9, lambda v: v + 1, [x])
                    assert x.op.name.startswith("scope")
                    assert x.op.name.count("scope") == 1
                    tf.gradients(loop, x)
                    written = graph.as_graph_def()
                    if turn == 0:
                        tf.import_graph_def(written)
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=build) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
    assert len({op.name for op in graph.get_operations()}) == len(graph.get_operations())


def test_sparse_placeholders(graph) -> None:
    value = tf.SparseTensorValue([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
    anything = tf.sparse_placeholder(tf.float32, name="any")
    assert anything.values.op.name == "any/values"
    fixed = tf.sparse_placeholder(tf.float32, shape=[2, 2])
    partial = tf.sparse_placeholder(tf.float32, shape=[None, 2])
    assert fixed.get_shape().as_list() == [2, 2]
    assert partial.indices.shape.as_list() == [None, 2]
    with tf.Session() as sess:
        assert sess.run(anything, {anything: value}).dense_shape.tolist() == [2, 2]
        assert sess.run(fixed, {fixed: value[:2]}).values.tolist() == [2, 3]
        assert sess.run(partial, {partial: tuple(value)}).indices.tolist() == [[0, 1], [1, 0]]


def test_a_check_speaks_before_shapes_that_do_not_fit() -> None:
    with tf.Graph().as_default() as graph:
        weights, losses = tf.placeholder(tf.float32), tf.ones([3, 2])
        check = tf.Assert(tf.equal(tf.rank(weights), 2), ["weights have the wrong rank"])
        with tf.control_dependencies([check]):
            weighted = weights * losses
        with tf.Session(graph=graph) as session:
            with pytest.raises(tf.errors.InvalidArgumentError, match="the wrong rank"):
                session.run(weighted, {weights: [1.0, 2.0, 3.0]})
            with pytest.raises(tf.errors.InvalidArgumentError, match="Incompatible shapes"):
                session.run(weighted, {weights: [[1.0, 2.0, 3.0]]})


GUARDED = {
    # What folding finds out, and what only binding does.
    "fold": lambda n: tf.reshape(tf.constant([1.0, 2.0, 3.0]), tf.stack([n])),
    "bind": lambda n: tf.slice(tf.zeros([4, 5]), [0, 0], tf.stack([n, n])),
}


@pytest.mark.parametrize("found", GUARDED)
def test_a_check_comes_before_the_error_that_it_guards_from(found: str) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        n = tf.placeholder_with_default(tf.constant(7), [])
        with tf.control_dependencies([tf.assert_less(n, 3, message="too many")]):
            n = tf.identity(n)
        with pytest.raises(tf.errors.InvalidArgumentError, match="too many"):
            sess.run(GUARDED[found](n))


@pytest.mark.parametrize("found", GUARDED)
def test_without_a_check_the_op_has_its_own_words(found: str) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        wanted = {"fold": "Input to reshape is a tensor with 3 values", "bind": r"size\[0\] in"}
        with pytest.raises(tf.errors.InvalidArgumentError, match=wanted[found]):
            sess.run(GUARDED[found](tf.placeholder_with_default(tf.constant(7), [])))


def test_devices_of_a_session_have_incarnations() -> None:
    with tf.Session() as sess:
        found = [device.incarnation for device in sess.list_devices()]
    assert 0 not in found and len(set(found)) == len(found)
