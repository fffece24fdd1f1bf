"""Hostile graphs: control flow of both kinds, functions, datasets, collections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import opdock as tf
from opdock.io import protos
from tests.core.graph.control.v1_graphs import FLOAT, INT, Loop, Text, branch, count_to
from tests.hostile.base import Format, by_message, parsed, write

CONFIG = tf.ConfigProto(operation_timeout_in_ms=1000)
"""A graph may ask for a loop without end: that is no fault, if it can be ended."""


def variables() -> None:
    """Variables of several types, one in two parts."""
    tf.get_variable("f", initializer=np.arange(6, dtype=np.float32).reshape(2, 3))
    tf.get_variable("i", initializer=np.arange(4), use_resource=True)
    tf.get_variable("s", initializer=tf.constant([b"a", b"bc"]))
    tf.get_variable(
        "p", [4, 2], initializer=tf.ones_initializer(),
        partitioner=tf.fixed_size_partitioner(2),
    )  # fmt: skip


def tracked() -> Any:
    """A variable, and an optimizer with its slot."""
    variable = tf.get_variable("v", initializer=2.0, use_resource=True)
    optimizer = tf.train.AdamOptimizer()
    optimizer.minimize(variable * variable)
    return tf.train.Checkpoint(v=variable, optimizer=optimizer)


def _dense() -> None:
    x = tf.placeholder_with_default(np.ones((2, 3), np.float32), [None, 3], name="x")
    w = tf.constant(np.arange(12, dtype=np.float32).reshape(3, 4))
    y = tf.nn.relu(tf.matmul(x, w) + tf.constant(0.5, shape=[4]))
    parts = tf.split(tf.reshape(y, [-1, 2]), 2, axis=1)
    tf.concat([tf.transpose(p) for p in parts], 0, name="out")
    tf.strided_slice(y, [0, 1], [2, 3], name="slice")
    tf.range(0, 10, 3, name="range")
    tf.fill([2, 2], 3, name="fill")
    tf.as_string(tf.cast(tf.argmax(y, 1), tf.int32), name="text")


def _control() -> None:
    a = tf.placeholder_with_default(np.float32(2.0), [], name="a")
    tf.cond(a > 1, lambda: tf.cond(a > 3, lambda: a, lambda: a * 2), lambda: a - 1, name="c")
    tf.while_loop(
        lambda i, s: i < 5,
        lambda i, s: (i + 1, s + tf.cond(s > 3, lambda: a, lambda: -a)),
        [0, a], name="w",
    )  # fmt: skip
    tf.gradients(tf.while_loop(lambda t: t < 9, lambda t: t * t, [a]), a)


def _first_control_flow() -> bytes:
    """A cond in a cond, a loop, and a cond in a loop, with the nodes of TF 1's first kind."""
    g = Text()
    for name, value in (("p", True), ("q", False), ("x", 5.0), ("n", 3), ("two", 2.0)):
        g.const(name, value)
    branch(g, "cond/cond", "q", "x", 2.0, 1.0)
    branch(g, "cond", "p", "cond/cond/Merge", 2.0, 1.0)
    count_to(g, "while", "n", "x", "two")
    g.const("zero", 0)
    loop = Loop(g, "w", [("zero", INT), ("x", FLOAT)])
    g.node("w/Less", "Less", "w/Merge_0", loop.enter("Less/Enter", "n", INT), T=INT)
    loop.cond("w/Less")
    g.const("w/one", 1, "^w/Identity_0")
    g.node("w/add", "Add", "w/Identity_0", "w/one", T=INT)
    g.node("w/small", "Less", "w/Identity_1", loop.enter("limit", "two", FLOAT), T=FLOAT)
    branch(g, "w/cond", "w/small", "w/Identity_1", 2.0, 3.0)
    loop.close("w/add", "w/cond/Merge")
    return bytes(g.graph_def.SerializeToString(deterministic=True))


def _input() -> None:
    data = tf.data.Dataset.range(5).map(lambda x: x * 2).filter(lambda x: x > 1).batch(2)
    tf.data.make_one_shot_iterator(data).get_next(name="next")
    queue = tf.FIFOQueue(3, [tf.int32], [[]])
    tf.group(queue.enqueue([1]), name="put")


def _library() -> bytes:
    """Functions that call each other by op type, by attribute and in branches, and a gradient."""
    graph = tf.GraphDef()
    graph.versions.producer = tf.GRAPH_DEF_VERSION
    calls: dict[str, tuple[str, list[str], dict[str, Any]]] = {
        "F": ("Neg", ["x"], {"T": FLOAT}),
        "G": ("F", ["x"], {}),
        "H": ("PartitionedCall", ["x"], {"Tin": [FLOAT], "Tout": [FLOAT], "f": "G"}),
        "I": (
            "If", ["x", "x"],
            {"Tcond": FLOAT, "Tin": [FLOAT], "Tout": [FLOAT], "then_branch": "H",
             "else_branch": "F"},
        ),
    }  # fmt: skip
    for name, (op, inputs, attrs) in calls.items():
        function = graph.library.function.add(ret={"y": "a:y:0" if op in "NegF" else "a:output:0"})
        function.signature.name = name
        function.signature.input_arg.add(name="x", type=FLOAT)
        function.signature.output_arg.add(name="y", type=FLOAT)
        made = function.node_def.add(name="a", op=op, input=inputs)
        for key, value in attrs.items():
            if isinstance(value, str):
                made.attr[key].func.name = value
            elif isinstance(value, list):
                made.attr[key].list.type.extend(value)
            else:
                made.attr[key].type = value
    graph.library.gradient.add(function_name="F", gradient_func="G")
    one = graph.node.add(name="one", op="Const")
    one.attr["dtype"].type = FLOAT
    one.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(1.0))
    for name in calls:
        graph.node.add(name=f"call{name}", op=name, input=["one"])
    return bytes(graph.SerializeToString(deterministic=True))


def graph_defs() -> Sequence[bytes]:
    """GraphDefs."""
    found = [_first_control_flow(), _first_control_flow(), _library(), _library()]
    for build in (_dense, _control, _input):
        with tf.Graph().as_default() as graph:
            build()
            found.append(graph.as_graph_def().SerializeToString(deterministic=True))
    return found


def meta_graphs() -> Sequence[bytes]:
    """MetaGraphDefs, with collections, a saver and a signature."""
    with tf.Graph().as_default():
        variables()
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        y = tf.layers.dense(x, 2, name="layer")
        tf.losses.add_loss(tf.reduce_sum(y))
        tf.add_to_collection("numbers", 7)
        tf.add_to_collection("names", "text")
        tf.cond(tf.size(x) > 1, lambda: x, lambda: x * 2)
        tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
        queue = tf.train.string_input_producer(["a", "b"])
        queue.dequeue()
        tf.train.Saver()
        meta = tf.train.export_meta_graph(saver_def=tf.train.Saver().saver_def)
        signature = tf.saved_model.signature_def_utils.predict_signature_def({"x": x}, {"y": y})
        meta.signature_def["serving_default"].CopyFrom(signature)
        return [meta.SerializeToString(deterministic=True)]


def import_and_run(load: Callable[[], Any]) -> None:
    """Loads into a new graph, writes that out again, and runs some of it without any feed."""
    with tf.Graph().as_default() as graph:
        load()
        protos.GraphDef.FromString(graph.as_graph_def().SerializeToString(deterministic=True))
        used = {t for op in graph.get_operations() for t in op.inputs}
        ends = [t for op in graph.get_operations() for t in op.outputs if t not in used]
        with tf.Session(config=CONFIG) as session:
            failed: Exception | None = None
            for tensor in [t for t in ends if not t.dtype._is_ref_dtype][:6]:
                try:
                    session.run(tensor)
                except (tf.errors.OpError, TypeError) as e:
                    failed = failed or e
            if failed is not None:
                raise failed


# ---------------------------------------------------------------- what reads them
def _read_graph(data: bytes, folder: Path) -> None:
    graph_def = parsed(protos.GraphDef, data)
    if graph_def is not None:
        import_and_run(lambda: tf.import_graph_def(graph_def, name=""))


def _read_meta_graph(data: bytes, folder: Path) -> None:
    meta = parsed(protos.MetaGraphDef, data)
    if meta is not None:
        import_and_run(lambda: tf.train.import_meta_graph(meta))


def _saved_model_seeds() -> Sequence[bytes]:
    found = []
    for meta in meta_graphs():
        model = protos.SavedModel(saved_model_schema_version=1)
        model.meta_graphs.add().ParseFromString(meta)
        model.meta_graphs[0].meta_info_def.tags.append("serve")
        found.append(model.SerializeToString(deterministic=True))
    return found


def _read_saved_model(data: bytes, folder: Path) -> None:
    write(folder, "saved_model.pb", data)
    with tf.Graph().as_default(), tf.Session(config=CONFIG) as session:
        try:
            tf.saved_model.loader.load(session, ["serve"], str(folder))
        except RuntimeError as e:  # TF's for tags that there are not
            if "could not be found in SavedModel" not in str(e):
                raise


FORMATS = {
    "graph": Format(graph_defs, partial(by_message, protos.GraphDef), _read_graph),
    "meta_graph": Format(meta_graphs, partial(by_message, protos.MetaGraphDef), _read_meta_graph),
    "saved_model": Format(
        _saved_model_seeds, partial(by_message, protos.SavedModel), _read_saved_model
    ),
}
