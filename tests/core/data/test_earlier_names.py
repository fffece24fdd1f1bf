"""Graphs from before TensorFlow 1.15 call many ops of datasets Experimental..."""

from __future__ import annotations

import pytest

import opdock as tf
from opdock.graph.nodes import registry
from opdock.io import protos

NAMES = sorted(op.name for op in registry.all_ops() if op.name.startswith("Experimental"))


def earlier(graph_def: protos.GraphDef) -> int:
    """Gives the nodes of a graph, and those of its functions, the earlier names."""
    found = 0
    for nodes in (graph_def.node, *(f.node_def for f in graph_def.library.function)):
        for node in nodes:
            if registry.find(f"Experimental{node.op}") is not None:
                node.op = f"Experimental{node.op}"
                found += 1
    return found


def ops_of(graph_def: protos.GraphDef) -> list[str]:
    return sorted(node.op for f in graph_def.library.function for node in f.node_def)


def built(session: tf.Session) -> list[object]:
    """Elements of a pipeline of most of these ops."""
    data = tf.data.Dataset.range(20).apply(tf.data.experimental.ignore_errors())
    data = data.apply(tf.data.experimental.scan(tf.constant(0, tf.int64), lambda s, x: (s + x, s)))
    data = data.apply(tf.data.experimental.take_while(lambda x: x < 100))
    data = data.map(lambda x: x % 7).apply(tf.data.experimental.unique())
    data = data.apply(
        tf.data.experimental.group_by_window(
            lambda x: x % 2, lambda key, some: some.batch(2), window_size=2
        )
    )
    data = data.apply(tf.data.experimental.unbatch())
    data = data.apply(tf.data.experimental.map_and_batch(lambda x: x * 2, 2))
    return [tf.data.make_one_shot_iterator(data).get_next(name="next")]


def elements(session: tf.Session, fetch: object) -> list[list[int]]:
    found = []
    with pytest.raises(tf.errors.OutOfRangeError):
        while True:
            found.append(session.run(fetch).tolist())
    return found


def test_a_pipeline_of_earlier_names_gives_the_same() -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        (following,) = built(session)
        wanted = elements(session, following)
        graph_def = graph.as_graph_def()
    assert wanted and earlier(graph_def) >= 7
    with tf.Graph().as_default() as graph, tf.Session() as session:
        (again,) = tf.import_graph_def(graph_def, return_elements=["next:0"], name="")
        assert elements(session, again) == wanted
        assert ops_of(graph.as_graph_def()) == ops_of(graph_def), "names stay as they came"


@pytest.mark.parametrize("name", NAMES)
def test_each_is_the_op_of_today(name: str) -> None:
    old, new = registry.get(name), registry.get(name.removeprefix("Experimental"))
    assert old.shape_fn is new.shape_fn
    proto = new.to_proto()
    proto.name = name
    assert old.to_proto() == proto
