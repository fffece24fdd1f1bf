"""Graphs as GraphDef: what is written, functions included, and node by node the way back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from google.protobuf import text_format

import opdock as tf
from opdock.graph.nodes import registry
from opdock.graph.serial.attr_proto import encode_attr, native_attr
from opdock.io import protos


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def test_a_node_def() -> None:
    a, b = tf.placeholder(tf.float32, [None, 3], name="a"), tf.ones([3, 2])
    with tf.device("/gpu:1"), tf.control_dependencies([tf.no_op(name="first")]):
        op = tf.matmul(a, b, name="mm").op
    node = op.node_def
    assert (node.name, node.op, node.device) == ("mm", "MatMul", "/device:GPU:1")
    assert list(node.input) == ["a", "ones", "^first"]
    assert node.attr["T"].type == 1
    assert node.attr["transpose_a"].b is False
    shape = a.op.node_def.attr["shape"].shape
    assert [d.size for d in shape.dim] == [-1, 3]


def test_versions_and_shapes() -> None:
    tf.placeholder(tf.float32, name="p")
    graph = tf.get_default_graph()
    assert graph.as_graph_def().versions.producer == 134
    node = graph.as_graph_def(add_shapes=True).node[0]
    assert node.attr["_output_shapes"].list.shape[0].unknown_rank
    assert "_output_shapes" not in graph.as_graph_def().node[0].attr


def test_from_version() -> None:
    tf.constant(1, name="old")
    version = tf.get_default_graph().version
    tf.constant(2, name="new")
    found = tf.get_default_graph().as_graph_def(from_version=version)
    assert [n.name for n in found.node] == ["new"]


def test_splats_stay_small() -> None:
    tf.constant(0.5, shape=[300, 300], name="c")
    graph_def = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        assert graph.as_graph_def().ByteSize() <= graph_def.ByteSize()


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (3, "int"), (True, "bool"), (1.5, "float"), ("s", "string"), (b"\xff", "string"),
        (tf.int8, "type"), ((2, None), "shape"), (None, "shape"), ([], "list(int)"),
        ([1, 2], "list(int)"), (["a"], "list(string)"), ([None, ()], "list(shape)"),
        ([tf.float32], "list(type)"), ([True], "list(bool)"), ([0.5], "list(float)"),
    ],
)  # fmt: skip
def test_attributes_there_and_back(value, kind: str) -> None:
    for declared in (kind, None):
        proto = encode_attr(value, declared)
        assert (
            native_attr(protos.AttrValue.FromString(proto.SerializeToString()), declared) == value
        )


def test_floats_have_32_bits_before_they_are_written() -> None:
    """What a node in memory computes with is what a reader of the graph finds."""
    x = tf.constant([-1.0, 0.3], tf.float64, name="x")
    made = tf.get_default_graph()
    by_call = tf.nn.leaky_relu(x, alpha=0.1).op
    by_name = made.create_op("LeakyRelu", [x], attrs={"alpha": 0.1})
    by_edit = made.create_op("LeakyRelu", [x])
    by_edit._set_attr("alpha", 0.1)
    edges = tf.raw_ops.Bucketize(input=x, boundaries=[0.1, 0.3]).op
    ops = [by_call, by_name, by_edit, edges]
    with tf.Session() as sess:
        before = sess.run([op.outputs[0] for op in ops])
    read = tf.Graph()
    with read.as_default():
        tf.import_graph_def(tf.GraphDef.FromString(made.as_graph_def().SerializeToString()))
    there = [read.get_operation_by_name(f"import/{op.name}") for op in ops]
    for op, again in zip(ops, there, strict=True):
        assert op.attrs == again.attrs
        assert op.node_def.attr == again.node_def.attr
    with tf.Session(graph=read) as sess:
        after = sess.run([op.outputs[0] for op in there])
    for one, other in zip(before, after, strict=True):
        assert one.tobytes() == other.tobytes()
    assert before[0][0] == -float(np.float32(0.1))
    assert by_call.get_attr("alpha") == np.float32(0.1)
    assert edges.get_attr("boundaries") == [np.float32(0.1), np.float32(0.3)]


def test_a_float_beyond_32_bits_is_infinite() -> None:
    op = tf.raw_ops.ApproximateEqual(x=1.0, y=2.0, tolerance=1e300).op
    assert op.get_attr("tolerance") == op.node_def.attr["tolerance"].f == float("inf")


def test_defaults_of_every_op_are_what_a_reader_finds() -> None:
    """A node that takes a default computes as one that was written and read."""
    floats = 0
    for spec in registry.all_ops():
        for attr in spec.definition.attrs.values():
            if attr.has_default and attr.type in ("float", "list(float)"):
                proto = encode_attr(attr.default, attr.type)
                assert native_attr(proto, attr.type) == attr.default, (spec.name, attr.name)
                floats += 1
    assert floats > 20


def test_attributes_of_a_wrong_type() -> None:
    with pytest.raises(TypeError, match="type int, string expected"):
        native_attr(protos.AttrValue(i=3), "string")
    with pytest.raises(TypeError, match="no value"):
        native_attr(protos.AttrValue(), "int")
    with pytest.raises(TypeError, match="cannot be an attribute"):
        encode_attr(object(), None)
    mixed = protos.AttrValue()
    mixed.list.i.append(1)
    mixed.list.s.append(b"a")
    with pytest.raises(TypeError, match="several types"):
        native_attr(mixed)


def test_every_op_has_an_op_def() -> None:
    for spec in registry.all_ops():
        definition = spec.to_proto()
        assert definition.name == spec.name
        names = {a.name for a in definition.attr}
        for arg in [*definition.input_arg, *definition.output_arg]:
            used = {arg.type_attr, arg.number_attr, arg.type_list_attr} - {""}
            assert used <= names
            assert used or arg.type


def test_create_op_by_name() -> None:
    graph = tf.get_default_graph()
    a = tf.constant([1.0, 2.0])
    op = graph.create_op(
        "Sum", [a, tf.constant(0)], name="s", attrs={"keep_dims": protos.AttrValue(b=True)}
    )
    assert op.outputs[0].shape.as_list() == [1]
    assert op.get_attr("T") is tf.float32
    with pytest.raises(tf.errors.NotFoundError, match="NoSuchOp"):
        graph.create_op("NoSuchOp", [])
    with pytest.raises(ValueError, match="do not match 1 inputs"):
        graph.create_op("Sum", [a])


def test_write_graph(tmp_path: Path) -> None:
    tf.constant(1.0, name="c")
    graph_def = tf.get_default_graph().as_graph_def()
    path = tf.train.write_graph(tf.get_default_graph(), str(tmp_path / "new"), "g.pbtxt")
    assert path == str(tmp_path / "new/g.pbtxt")
    assert text_format.Parse(Path(path).read_text(), tf.GraphDef()) == graph_def
    path = tf.train.write_graph(graph_def, str(tmp_path), "g.pb", as_text=False)
    assert tf.GraphDef.FromString(Path(path).read_bytes()) == graph_def


def functional() -> tf.GraphDef:
    x = tf.placeholder(tf.float32, [], name="x")
    y = tf.cond(x > 0, lambda: x * 2.0, lambda: x - 1.0)
    z = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * y), [tf.constant(0), x])[1]
    tf.identity(z, name="out")
    return tf.get_default_graph().as_graph_def()


def test_functions_are_written_and_read() -> None:
    graph_def = functional()
    assert len(graph_def.library.function) == 4
    for function in graph_def.library.function:
        assert function.signature.output_arg
        assert set(function.ret) == {a.name for a in function.signature.output_arg}
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        tf.import_graph_def(tf.GraphDef.FromString(graph_def.SerializeToString()), name="")
        assert sess.run("out:0", {"x:0": 2.0}) == 2 * 4.0**3
        assert sess.run("out:0", {"x:0": -1.0}) == 8.0
        again = graph.as_graph_def()
    assert [n.name for n in again.node] == [n.name for n in graph_def.node]
    assert len(again.library.function) == 4


def test_malformed_libraries() -> None:
    graph_def = functional()
    missing = tf.GraphDef()
    missing.CopyFrom(graph_def)
    del missing.library.function[:]
    with tf.Graph().as_default(), pytest.raises(ValueError, match="not in the library"):
        tf.import_graph_def(missing)
    broken = tf.GraphDef()
    broken.CopyFrom(graph_def)
    function = broken.library.function[0]
    function.ret[function.signature.output_arg[0].name] = "nothing:z:0"
    with tf.Graph().as_default(), pytest.raises(ValueError, match="no value 'nothing:z:0'"):
        tf.import_graph_def(broken)


def test_big_graphs_are_linear() -> None:
    t = tf.constant(np.float32(1.0))
    for _ in range(2000):
        t = tf.add(t, t)
    graph_def = tf.get_default_graph().as_graph_def()
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        assert graph.as_graph_def() == graph_def
