"""How transforms and their options are written, and what is said of what is not."""

from __future__ import annotations

import types
from typing import Any

import pytest

import opdock as tf
from opdock import plugin
from opdock.plugins import manager
from opdock.plugins.ownership import CORE_TRANSFORMS
from opdock.transforms import (
    Editor,
    TransformGraph,
    find_transform,
    transform_graph,
    transform_names,
)
from opdock.transforms.calls import Call, parse_calls


def graph() -> Any:
    with tf.Graph().as_default() as made:
        tf.identity(tf.placeholder(tf.float32, [2], name="x"), name="y")
        return made.as_graph_def()


def test_calls() -> None:
    text = """
      one two(a=b, a="c, d" ,e=-1.5/f_G) \\
      three( ) four(quoted="say \\"a\\"")five
    """
    assert parse_calls(text) == [
        Call("one", {}),
        Call("two", {"a": ["b", "c, d"], "e": ["-1.5/f_G"]}),
        Call("three", {}),
        Call("four", {"quoted": ['say "a"']}),
        Call("five", {}),
    ]
    assert parse_calls(" ") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(a=b)", r"Looking for transform name, but found \(a=b\)"),
        ("a(b", "Looking for =, but found the end"),
        ("a(b=", "Looking for parameter value, but found the end"),
        ("a(b=!)", r"Looking for parameter value, but found !\)"),
        ('a(b="c)', 'Looking for parameter value, but found "c'),
        ("a(=b)", r"Looking for parameter name, but found =b\)"),
        (
            "fold_constant",
            "Transform 'fold_constant' not recognized. Did you mean 'fold_con",
        ),
        (
            "round_weights(steps=1)",
            "round_weights has no option 'steps'; it has: ignore_errors, num",
        ),
        ("round_weights(num_steps=a)", "interpret the num_steps argument as a number:a"),
        ("round_weights(num_steps=0)", "num_steps is 0, expected 1 or more"),
        ("round_weights(num_steps=1, num_steps=2)", "a single 'num_steps' parameter, but found 2"),
        ("set_device(if_default=maybe)", "as a boolean:maybe"),
        ("fold_constants(ignore_errors=2)", "as a boolean:2"),
        ("remove_nodes", "remove_nodes expects at least one 'op' argument"),
        ("rename_op(old_op_name=a)", "expects exactly one 'new_op_name' argument"),
        ("quantize_nodes(input_min=0)", "both input_min and input_max"),
        ("quantize_nodes(fallback_min=1, fallback_max=0)", "fallback_min 1 must be less than"),
        ('strip_unused_nodes(shape="1,x")', "parse as shape: '1,x'"),
        ("strip_unused_nodes(type=flat)", "understand type argument 'flat'"),
        ("strip_unused_nodes(name=x)strip_unused_nodes(type_for_name=int32)", "for every 'name'"),
        ("freeze_requantization_ranges", "exactly one 'min_max_log_file'"),
        ("freeze_requantization_ranges(min_max_log_file=a, max_percentile=101)", "is 101, not in"),
        ("quantize_layers(min_max_log_file=a, min_percentile=-1)", "quantize_layers: min_per.* -1"),
    ],
)
def test_what_is_wrong_is_named(text: str, message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        transform_graph(graph(), ["x"], ["y"], text)


@pytest.mark.parametrize("name", ["fold_constants", "strip_unused_nodes"])
def test_inputs_and_outputs_must_exist(name: str) -> None:
    for inputs, outputs, what in ((["z"], ["y"], "input"), (["x"], ["z"], "output")):
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=f"no node 'z', which is an {what}"
        ):
            TransformGraph(graph(), inputs, outputs, [name])
    same = TransformGraph(graph(), ["x"], ["z"], [f"{name}(ignore_errors=true)"])
    assert same == graph()


def test_broken_graphs() -> None:
    broken = graph()
    broken.node[1].input[0] = "nothing"
    with pytest.raises(tf.errors.InternalError, match="'nothing' of node 'y'"):
        transform_graph(broken, ["x"], ["y"], "remove_device")
    broken.node[1].input[0] = "x:one"
    with pytest.raises(tf.errors.InvalidArgumentError, match="x:one"):
        transform_graph(broken, ["x"], ["y"], "remove_device")
    broken.node[1].input[0] = "x"
    broken.node[1].name = "x"
    with pytest.raises(tf.errors.InvalidArgumentError, match="Two nodes have the name 'x'"):
        transform_graph(broken, ["x"], ["x"], "remove_device")
    odd = graph()
    odd.node[1].op = "MaxPool"
    with pytest.raises(tf.errors.InvalidArgumentError, match="missing attr 'ksize'|fold_constants"):
        transform_graph(odd, ["x"], ["y"], "fold_constants")


def test_the_list_of_own_names_is_that_of_the_files() -> None:
    assert set(CORE_TRANSFORMS) <= set(transform_names())
    assert [n for n in transform_names() if not find_transform(n).plugin] == sorted(CORE_TRANSFORMS)
    assert all(find_transform(name).summary for name in transform_names())


# ---------------------------------------------------------------- plugins
def acme_mark(graph_def: Any, context: Any, *, op: str, mark: int = 1) -> Any:
    """Marks the nodes of an op."""
    editor = Editor(graph_def, context.ends)
    for node in editor:
        if node.op == op:
            node.attr["_acme_mark"].i = mark
    return editor.result()


def test_a_transform_of_a_plugin() -> None:
    @plugin.hookimpl
    def opdock_graph_transforms() -> Any:
        yield plugin.GraphTransform(name="acme_mark", run=acme_mark)
        yield plugin.GraphTransform(name="acme_odd", run=lambda graph_def, context: None)

    module = types.SimpleNamespace(opdock_graph_transforms=opdock_graph_transforms)
    plugin.register(module, "acme")
    try:
        assert "acme_mark" in transform_names()
        out = transform_graph(graph(), ["x"], ["y"], "acme_mark(op=Identity, mark=3)")
        assert [n.attr["_acme_mark"].i for n in out.node if "_acme_mark" in n.attr] == [3]
        with pytest.raises(tf.errors.InvalidArgumentError, match="exactly one 'op'"):
            transform_graph(graph(), ["x"], ["y"], "acme_mark")
        with pytest.raises(TypeError, match="'acme_odd' must return a GraphDef"):
            transform_graph(graph(), ["x"], ["y"], "acme_odd")
    finally:
        manager.reset_manager()


def test_names_of_transforms_are_words_and_not_cores() -> None:
    with pytest.raises(TypeError, match="must be a word"):
        plugin.GraphTransform(name="a b", run=acme_mark)
    with pytest.raises(TypeError, match="must be callable"):
        plugin.GraphTransform(name="a", run=None)

    @plugin.hookimpl
    def opdock_graph_transforms() -> Any:
        yield plugin.GraphTransform(name="fold_constants", run=acme_mark)

    module = types.SimpleNamespace(opdock_graph_transforms=opdock_graph_transforms)
    try:
        with pytest.raises(plugin.PluginError, match="'fold_constants' of its own"):
            plugin.register(module, "thief")
    finally:
        manager.reset_manager()


def test_hostile_graphs() -> None:
    broken = graph()
    broken.node.add(name="z", op="Neg", input=["y:5"]).attr["T"].type = tf.float32.as_datatype_enum
    with pytest.raises(tf.errors.InvalidArgumentError, match="'y' has no output 5"):
        transform_graph(broken, ["x"], ["z"], "insert_logging")
    huge = tf.GraphDef()
    value = huge.node.add(name="c", op="Const").attr["value"].tensor
    value.dtype = tf.float32.as_datatype_enum
    value.float_val.append(1.0)
    value.tensor_shape.dim.add(size=1 << 48)
    huge.node[0].attr["dtype"].type = value.dtype
    with pytest.raises(tf.errors.ResourceExhaustedError, match="quantize_weights: Unable to alloc"):
        transform_graph(huge, [], ["c"], "quantize_weights")
    assert transform_graph(huge, [], ["c"], "fold_constants") == huge
