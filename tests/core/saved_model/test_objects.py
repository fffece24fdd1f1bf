"""`tf.saved_model.load_v2` of objects: their variables, constants and functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.graph.nodes.typespec import TensorSpec
from opdock.io import protos
from opdock.ops.composed.defined_function import Defun
from opdock.saved_model.file import parse_saved_model
from opdock.saved_model.imported import load_partial, load_v2
from opdock.saved_model.nested_structure_coder import StructureCoder
from opdock.util.inspecting import FullArgSpec

_INPUT = TensorSpec([None], tf.float32, name="x")
_OUTPUT = {"y": TensorSpec([None], tf.float32)}


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


def saved(folder: Path, found: dict[str, Any] | None = None) -> str:
    """A model of a variable `v` = 5, a list of a constant, and f(x, power=1) = c * x * v ** power.

    It is written as TensorFlow 2 writes it: f has a concrete function for the powers 1 and 2, and a
    signature calls the second from a function of its own.
    """
    path = folder / "model"
    with tf.Graph().as_default() as graph, tf.Session() as session:
        v = tf.get_variable("v", initializer=5.0, use_resource=True)
        c = tf.constant(3.0, name="three")

        @Defun(tf.float32)
        def once(x):
            return c * x * v

        @Defun(tf.float32)
        def twice(x):
            return c * x * v * v

        @Defun(tf.float32)
        def wrapper(x):
            inside = tf.raw_ops.StatefulPartitionedCall
            return inside(args=[x, *twice.captured_inputs], Tout=[tf.float32], f=twice)[0]

        for function in (once, twice, wrapper):
            function.add_to_graph(graph)
            assert [t.op.type for t in function.captured_inputs] == ["Const", "VarHandleOp"]
        session.run(v.initializer)
        tf.train.Checkpoint(v=v).write(str(path / "variables/variables"), session)
        model = protos.SavedModel(saved_model_schema_version=1)
        meta = model.meta_graphs.add()
        meta.meta_info_def.tags.append("serve")
        meta.graph_def.CopyFrom(graph.as_graph_def())
    describe(meta.object_graph_def, once.name, twice.name, wrapper.name, **(found or {}))
    (path / "saved_model.pb").write_bytes(model.SerializeToString())
    return str(path)


def describe(graph: Any, once: str, twice: str, wrapper: str, constant: str = "three") -> None:
    """Fills an object graph."""
    children = {"v": 1, "constants": 2, "f": 4, "signatures": 5, "__call__": 4}
    root, variable, items, three, function, signatures, bare = (graph.nodes.add() for _ in range(7))
    for name, number in children.items():
        root.children.add(local_name=name, node_id=number)
    root.user_object.identifier = "_generic_user_object"
    variable.variable.dtype, variable.variable.trainable = tf.float32.as_datatype_enum, True
    variable.variable.shape.SetInParent()
    variable.variable.name = "v"
    items.user_object.identifier = "trackable_list_wrapper"
    items.children.add(local_name="0", node_id=3)
    three.constant.operation = constant
    function.function.concrete_functions.extend([once, twice])
    spec = StructureCoder().encode_structure
    arguments = FullArgSpec(["x", "power"], None, None, (1,), [], None, {})
    function.function.function_spec.fullargspec.CopyFrom(spec(arguments))
    signatures.user_object.identifier = "signature_map"
    signatures.children.add(local_name="serving_default", node_id=6)
    bare.bare_concrete_function.concrete_function_name = wrapper
    bare.bare_concrete_function.argument_keywords.append("x")
    for name, takes, gives in (
        (once, ((_INPUT, 1), {}), _OUTPUT["y"]),
        (twice, ((_INPUT, 2), {}), _OUTPUT["y"]),
        (wrapper, ((), {"x": _INPUT}), _OUTPUT),
    ):
        concrete = graph.concrete_functions[name]
        concrete.bound_inputs.extend([3, 1])
        concrete.canonicalized_input_signature.CopyFrom(spec(takes))
        concrete.output_signature.CopyFrom(spec(gives))


def run(fetches: Any) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches)


def test_functions_are_chosen_by_their_arguments(tmp_path) -> None:
    model = load_v2(saved(tmp_path))
    x = tf.constant([1.0, 2.0])
    calls = [model.f(x), model.f(x, power=2), model([1.0], 1), model.f([0.5], 2)]
    assert [c.tolist() for c in run(calls)] == [[15, 30], [75, 150], [15], [37.5]]
    assert run([model.constants[0].value]) == [3.0]
    with pytest.raises(ValueError, match="Could not find matching function"):
        model.f(x, 3)
    with pytest.raises(ValueError, match="Could not find matching function"):
        model.f(tf.constant([1, 2]))


def test_signatures_have_gradients_for_the_variables(tmp_path) -> None:
    model = load_v2(saved(tmp_path))
    assert list(model.signatures) == ["serving_default"]
    assert model.v.trainable and not tf.trainable_variables()
    y = model.signatures["serving_default"](x=tf.constant([2.0]))["y"]
    slopes = tf.gradients(y, [model.v])
    assert slopes[0].shape == ()
    (value, slope) = run([y, slopes[0]])
    np.testing.assert_array_equal(value, [150.0])
    assert slope == 60.0
    with pytest.raises(TypeError, match="takes"):
        model.signatures["serving_default"](z=1.0)


def test_two_models_do_not_meet(tmp_path) -> None:
    path = saved(tmp_path)
    first, second = load_v2(path), load_v2(path)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(first.v.assign(0.0))
        assert session.run([first.v, second.v]) == [0.0, 5.0]


def test_a_model_that_contradicts_itself_says_so(tmp_path) -> None:
    with pytest.raises(tf.errors.DataLossError, match="constant 'gone'"):
        load_v2(saved(tmp_path, {"constant": "gone"}))


def test_arguments_that_are_none_and_ways_that_lead_nowhere_are_told(tmp_path: Path) -> None:
    path = saved(tmp_path)
    assert load_partial(path, {"root": None})["root"].v.shape == []
    with pytest.raises(ValueError, match="nothing at '.other'"):
        load_partial(path, {"root.other": None})
    model = parse_saved_model(path)
    for node in model.meta_graphs[0].object_graph_def.nodes:
        if node.HasField("function"):
            node.function.function_spec.fullargspec.CopyFrom(StructureCoder().encode_structure([1]))
    (Path(path) / "saved_model.pb").write_bytes(model.SerializeToString())
    with pytest.raises(tf.errors.DataLossError, match="of its arguments"):
        load_v2(path)
