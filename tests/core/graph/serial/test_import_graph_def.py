"""import_graph_def: names, maps, order, devices, and every way to be malformed."""

from __future__ import annotations

from typing import Any

import pytest

import opdock as tf
from opdock.graph.nodes import registry
from opdock.io import protos


@pytest.fixture(autouse=True)
def _graph():
    with tf.Graph().as_default():
        yield


def small() -> tf.GraphDef:
    with tf.Graph().as_default() as graph:
        p, two = tf.placeholder(tf.float32, [2], name="p"), tf.constant(2.0, name="two")
        with tf.control_dependencies([tf.no_op(name="n")]):
            tf.multiply(p, two, name="q")
        return graph.as_graph_def()


def node(graph_def: tf.GraphDef, name: str) -> Any:
    return next(n for n in graph_def.node if n.name == name)


def names() -> list[str]:
    return [op.name for op in tf.get_default_graph().get_operations()]


def test_prefixes() -> None:
    assert tf.import_graph_def(small()) is None
    tf.import_graph_def(small())
    tf.import_graph_def(small(), name="mine")
    tf.import_graph_def(small(), name="")
    tf.import_graph_def(small(), name="")
    with tf.name_scope("outer"):
        tf.import_graph_def(small(), name="inner")
    found = [n for n in names() if n.endswith(("/q", "q", "q_1"))]
    assert found == ["import/q", "import_1/q", "mine/q", "q", "q_1", "outer/inner/q"]
    assert tf.get_default_graph().get_operation_by_name("q_1").inputs[0].op.name == "p_1"


def test_names_do_not_clash_with_scopes() -> None:
    with tf.name_scope("p"):
        tf.constant(1.0)
    tf.import_graph_def(small(), name="")
    assert "p_1" in names()
    assert tf.constant(0.0, name="q").op.name == "q_1"


def test_input_map_and_return_elements() -> None:
    a = tf.constant([3.0, 4.0])
    gate = tf.no_op()
    q, op = tf.import_graph_def(
        small(), input_map={"p": a, "^n": gate}, return_elements=["q:0", "q"]
    )
    assert q.op is op
    assert op.inputs[0] is a
    assert op.control_inputs == [gate]
    with tf.Session() as sess:
        assert sess.run(q).tolist() == [6, 8]
    (mapped,) = tf.import_graph_def(small(), input_map={"p:0": a}, return_elements=["p:0"])
    assert mapped is a


def test_values_that_are_no_tensors() -> None:
    (q,) = tf.import_graph_def(small(), input_map={"p:0": [1.0, 2.0]}, return_elements=["q:0"])
    assert q.op.inputs[0].op.name == "import/_inputs/Const"
    with pytest.raises(ValueError, match="non-empty `name`"):
        tf.import_graph_def(small(), input_map={"p:0": [1.0, 2.0]}, name="")


def test_nodes_in_any_order() -> None:
    graph_def = small()
    turned = tf.GraphDef(node=list(reversed(graph_def.node)), versions=graph_def.versions)
    (q,) = tf.import_graph_def(turned, return_elements=["q:0"], input_map={"p:0": tf.ones([2])})
    with tf.Session() as sess:
        assert sess.run(q).tolist() == [2, 2]


def test_devices_and_colocation() -> None:
    graph_def = small()
    node(graph_def, "p").device = "/gpu:1"
    node(graph_def, "q").attr["_class"].list.s.append(b"loc:@p")
    with tf.device("/job:w/cpu:0"):
        tf.import_graph_def(graph_def)
    graph = tf.get_default_graph()
    assert graph.get_operation_by_name("import/p").device == "/job:w/device:GPU:1"
    assert graph.get_operation_by_name("import/n").device == "/job:w/device:CPU:0"
    q = graph.get_operation_by_name("import/q")
    assert q.colocation_groups() == [b"loc:@import/p"]
    assert q.device == "/job:w/device:GPU:1"


def test_a_branch_may_be_beside_what_is_around_it() -> None:
    with tf.Graph().as_default() as graph:
        v = tf.Variable(2.0, name="v", use_resource=False)

        def beside() -> tf.Tensor:
            with tf.colocate_with(v, ignore_existing=True):
                return tf.zeros([])

        tf.identity(tf.cond(v > 1.0, beside, lambda: v + 1.0), name="y")
        written = graph.as_graph_def()
    y, assign, start = tf.import_graph_def(
        written, return_elements=["y:0", "v/Assign", "v/initial_value:0"]
    )
    with tf.Session() as session:
        session.run(assign)
        assert session.run(y) == 0.0
        session.run(assign, {start: 1.0})
        assert session.run(y) == 2.0


def test_a_colocated_node_takes_its_partners_device_whatever_its_own() -> None:
    graph_def = small()
    node(graph_def, "q").device = "/gpu:1"
    node(graph_def, "q").attr["_class"].list.s.append(b"loc:@p")
    (q,) = tf.import_graph_def(graph_def, return_elements=["q"])
    assert q.device == ""
    node(graph_def, "q").attr["_class"].list.s[:] = [b"loc:@q"]
    (q,) = tf.import_graph_def(graph_def, return_elements=["q"])
    assert q.device == "/device:GPU:1"


def test_names_as_bytes() -> None:
    a = tf.constant([3.0, 4.0])
    (q,) = tf.import_graph_def(small(), input_map={b"p:0": a}, return_elements=[b"q"])
    assert q.inputs[0] is a


def test_the_graph_is_as_old_as_its_oldest_part() -> None:
    for producer, consumer in (27, 1), (12, 3), (40, 2):
        graph_def = small()
        graph_def.versions.CopyFrom(
            protos.VersionDef(producer=producer, min_consumer=consumer, bad_consumers=[producer])
        )
        tf.import_graph_def(graph_def)
    assert tf.get_default_graph().as_graph_def().versions == protos.VersionDef(
        producer=12, min_consumer=3, bad_consumers=[12, 27, 40]
    )


def test_probes_build_and_are_no_part_of_the_op_set() -> None:
    graph_def = tf.GraphDef()
    graph_def.node.add(name="a", op="ListOutput").attr["T"].list.type.extend([3, 1])
    graph_def.node.add(name="b", op="TwoIntInputs", input=["a", "a:1"])
    with pytest.raises(ValueError, match="was passed float from import/a:1 .* expected int32"):
        tf.import_graph_def(graph_def)
    assert tf.raw_ops.DefaultAttrs().get_attr("tensor_val").int_val[:] == [1]
    assert "ListOutput" in dir(tf.raw_ops)
    assert "ListOutput" not in {spec.name for spec in registry.all_ops()}


def test_control_dependencies_of_the_caller() -> None:
    first = tf.no_op(name="first")
    with tf.control_dependencies([first]):
        tf.import_graph_def(small())
    graph = tf.get_default_graph()
    assert graph.get_operation_by_name("import/p").control_inputs == [first]


def test_defaults_are_filled_in_and_inferred() -> None:
    graph_def = small()
    del node(graph_def, "q").attr["T"]
    (q,) = tf.import_graph_def(graph_def, return_elements=["q"])
    assert q.get_attr("T") is tf.float32


def test_later_attributes() -> None:
    graph_def = small()
    node(graph_def, "q").attr["grad_x"].b = False
    tf.import_graph_def(graph_def)
    node(graph_def, "q").attr["narrow_range"].b = True
    with pytest.raises(ValueError, match="mentions attr 'narrow_range' not in Op<name=Mul>"):
        tf.import_graph_def(graph_def)
    ops = protos.OpList()
    producer = ops.op.add(name="Mul")
    producer.attr.add(name="narrow_range", type="bool").default_value.b = True
    tf.import_graph_def(graph_def, producer_op_list=ops)


def test_output_shapes_refine() -> None:
    graph_def = small()
    shapes = node(graph_def, "p").attr["_output_shapes"].list
    shapes.shape.add().dim.add(size=2)
    (p,) = tf.import_graph_def(graph_def, return_elements=["p"])
    assert "_output_shapes" not in p.attrs
    shapes.shape[0].dim[0].size = 3
    with pytest.raises(ValueError, match="inconsistent with the GraphDef for output #0"):
        tf.import_graph_def(graph_def)


def test_old_shapes_of_handles_are_passed_over() -> None:
    graph_def = tf.GraphDef()
    made = graph_def.node.add(name="b", op="Barrier")
    made.attr["component_types"].list.type.append(1)
    made.attr["_output_shapes"].list.shape.add()
    (barrier,) = tf.import_graph_def(graph_def, return_elements=["b:0"])
    assert barrier.shape == [2]


def broken(change: Any) -> tf.GraphDef:
    graph_def = small()
    change(graph_def)
    return graph_def


def add_loop(graph_def: tf.GraphDef) -> None:
    node(graph_def, "q").input[0] = "r"
    made = graph_def.node.add(name="r", op="Identity", input=["q"])
    made.attr["T"].type = 1


BROKEN = {
    "bad-name": (lambda g: setattr(g.node[0], "name", "a b"), "invalid characters"),
    "no-name": (lambda g: setattr(g.node[0], "name", ""), "invalid characters"),
    "twice": (lambda g: g.node.add().CopyFrom(g.node[0]), "not unique"),
    "no-source": (lambda g: node(g, "q").input.__setitem__(0, "zz"), "Unknown input node 'zz'"),
    "bad-index": (lambda g: node(g, "q").input.__setitem__(0, "p:7"), "invalid output 7"),
    "bad-text": (lambda g: node(g, "q").input.__setitem__(0, "p:x"), "Unknown input node .p:x."),
    "too-few": (lambda g: node(g, "q").input.__delitem__(0), "do not match 1 inputs"),
    "too-many": (lambda g: node(g, "q").input.insert(0, "p"), "do not match 3 inputs"),
    "control-first": (lambda g: node(g, "q").input.insert(0, "^n"), "must come after"),
    "no-attr": (lambda g: node(g, "p").attr.__delitem__("dtype"), "missing attr 'dtype'"),
    "attr-type": (lambda g: setattr(node(g, "p").attr["dtype"], "s", b"x"), "type expected"),
    "type-set": (lambda g: setattr(node(g, "q").attr["T"], "type", 7), "list of allowed values"),
    "unknown-type": (lambda g: setattr(node(g, "p").attr["dtype"], "type", 99), "99"),
    "dim": (lambda g: setattr(node(g, "p").attr["shape"].shape.dim[0], "size", -7), "-7"),
    "mismatch": (lambda g: setattr(node(g, "q").attr["T"], "type", 2), "expected double"),
    "loc": (lambda g: node(g, "q").attr["_class"].list.s.append(b"loc:@zz"), "unknown node 'zz'"),
    "cycle": (add_loop, "cycle"),
    "consumer": (lambda g: setattr(g.versions, "min_consumer", 9999), "above current version"),
    "device": (lambda g: setattr(g.node[0], "device", "/nonsense:x"), "nonsense"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_malformed_graphs(change: Any, message: str) -> None:
    tf.constant(1.0, name="before")
    with pytest.raises(ValueError, match=message):
        tf.import_graph_def(broken(change))
    # All or nothing: a graph that fails half-way leaves no node behind.
    assert names() == ["before"]


def test_a_tensor_that_lies_about_its_size() -> None:
    graph_def = tf.GraphDef()
    made = graph_def.node.add(name="c", op="Const")
    made.attr["dtype"].type = 1
    tensor = made.attr["value"].tensor
    tensor.dtype = 1
    tensor.tensor_shape.dim.add(size=2**40)
    tensor.tensor_content = b"1234"
    with pytest.raises(ValueError, match="tensor_content has 4"):
        tf.import_graph_def(graph_def)


def test_a_node_with_a_billion_outputs() -> None:
    graph_def = small()
    made = graph_def.node.add(name="s", op="Unpack", input=["p"])
    made.attr["T"].type = 1
    made.attr["num"].i = 2**31
    with pytest.raises(ValueError, match="2147483648"):
        tf.import_graph_def(graph_def)


def test_unregistered_ops() -> None:
    graph_def = small()
    graph_def.node[0].op = "NoSuchOp"
    with pytest.raises(tf.errors.NotFoundError, match="'NoSuchOp'"):
        tf.import_graph_def(graph_def)


def test_bad_arguments() -> None:
    a = tf.constant([1.0, 2.0])
    with pytest.raises(TypeError, match="must be a GraphDef proto"):
        tf.import_graph_def("graph")
    with pytest.raises(TypeError, match="mapping strings"):
        tf.import_graph_def(small(), input_map={1: a})
    with pytest.raises(TypeError, match="list of strings"):
        tf.import_graph_def(small(), return_elements=[7])
    with pytest.raises(ValueError, match=r"not found in graph_def: \[zz:0\]"):
        tf.import_graph_def(small(), input_map={"zz:0": a})
    with pytest.raises(ValueError, match="Requested return tensor 'zz:0' not found"):
        tf.import_graph_def(small(), return_elements=["zz:0"])
    with pytest.raises(ValueError, match="Requested return node 'zz' not found"):
        tf.import_graph_def(small(), return_elements=["zz"])
    with pytest.raises(ValueError, match="Invalid return output 5 of node 'q'"):
        tf.import_graph_def(small(), return_elements=["q:5"])
    with pytest.raises(ValueError, match="incompatible with expected float"):
        tf.import_graph_def(small(), input_map={"p:0": tf.constant([1, 2])})


def test_finalized_graphs() -> None:
    tf.get_default_graph().finalize()
    with pytest.raises(RuntimeError, match="finalized"):
        tf.import_graph_def(small(), name="")


@pytest.mark.parametrize(("producer", "rank"), [(21, None), (0, None), (22, 0)])
def test_a_scalar_placeholder_of_an_old_program_may_be_anything(producer, rank):
    with tf.Graph().as_default() as graph:
        tf.placeholder(tf.float32, [], "x")
    graph_def = graph.as_graph_def()
    graph_def.versions.producer = producer
    with tf.Graph().as_default():
        (x,) = tf.import_graph_def(graph_def, return_elements=["x:0"])
        assert x.shape.ndims == rank


def test_ids_of_segments_of_newer_versions_are_long() -> None:
    with tf.Graph().as_default() as written:
        x = tf.placeholder(tf.float32, [3, 2], name="x")
        tf.sparse_segment_sum(x, [0, 2], tf.placeholder(tf.int32, [2], name="ids"), name="y")
    made = written.as_graph_def()
    for node in made.node:
        if node.name == "ids":
            node.attr["dtype"].type = tf.int64.as_datatype_enum
        if node.name == "y":
            node.attr["Tsegmentids"].type = tf.int64.as_datatype_enum
            node.attr["sparse_gradient"].b = True
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(made, name="")
        found = session.run("y:0", {"x:0": [[1, 2], [3, 4], [5, 6]], "ids:0": [0, 0]})
        assert found.tolist() == [[6.0, 8.0]]


def test_branches_that_write_variables_come_back():
    with tf.Graph().as_default() as graph:
        v = tf.Variable(1.0, name="v", use_resource=False)
        choice = tf.placeholder(tf.bool, [], name="choice")
        tf.cond(choice, lambda: v.assign_add(2.0), lambda: v.assign(-1.0), name="either")
    with tf.Graph().as_default() as again, tf.Session() as sess:
        tf.import_graph_def(graph.as_graph_def(), name="")
        result = again.get_tensor_by_name("either:0")
        sess.run("v/Assign")
        assert sess.run(result, {"choice:0": True}) == 3.0
        assert sess.run("v:0") == 3.0
        assert sess.run(result, {"choice:0": False}) == -1.0
