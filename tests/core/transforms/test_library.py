"""What each transform makes of a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.transforms import transform_graph
from tests.core.transforms.graphs import IMAGES, Builder, network, ops, ran

RATE = np.array([[0.0, 0.5, -0.25, 1.0]], np.float32)


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def made() -> Any:
    return tf.get_default_graph().as_graph_def()


def nodes(graph_def: Any) -> dict[str, Any]:
    return {node.name: node for node in graph_def.node}


@pytest.mark.parametrize(
    ("layer", "transforms", "gone"),
    [
        ("product norm", "fold_constants fold_batch_norms", "Mul"),
        ("fused norm", "fold_old_batch_norms", "FusedBatchNormV3"),
        ("older norm", "fold_old_batch_norms", "BatchNormWithGlobalNormalization"),
        ("two normal convs", "fold_old_batch_norms", "FusedBatchNormV3"),
        ("atrous", "flatten_atrous_conv", "BatchToSpaceND"),
        ("resized", "fuse_resize_and_conv", "ResizeBilinear"),
        ("mirrored", "fuse_pad_and_conv", "MirrorPad"),
        ("constants", "fold_constants", "Exp"),
        ("branches", "backport_concatv2", "ConcatV2"),
        ("checked", "remove_nodes(op=CheckNumerics)", "CheckNumerics"),
    ],
)
def test_what_goes(layer: str, transforms: str, gone: str) -> None:
    before = network(1, [layer])
    after = transform_graph(before, ["x"], ["y"], transforms)
    assert gone in ops(before)
    assert gone not in ops(after)
    assert len(after.node) <= len(before.node)


def test_normalization_after_blocks_goes_into_the_convolution() -> None:
    builder = Builder(2)
    x = tf.placeholder(tf.float32, [2, 8, 8, 3], name="x")
    spread = tf.space_to_batch_nd(x, [2, 2], [[2, 2], [2, 2]])
    conv = tf.nn.conv2d(spread, builder.weights(3, 3, 3, 4), [1, 1, 1, 1], "VALID")
    joined = tf.batch_to_space_nd(conv, [2, 2], [[0, 0], [0, 0]])
    tf.identity(builder.normal(joined), name="y")
    after = transform_graph(made(), ["x"], ["y"], "fold_old_batch_norms")
    assert "BiasAdd" in ops(after)
    assert "FusedBatchNormV3" not in ops(after)
    np.testing.assert_allclose(ran(after), ran(made()), rtol=0, atol=2e-5)


def test_what_is_used_elsewhere_stays() -> None:
    builder = Builder(3)
    x = tf.placeholder(tf.float32, [None, 8, 8, 3], name="x")
    weights = builder.weights(1, 1, 3, 4)
    shared = tf.nn.conv2d(x, weights, [1, 1, 1, 1], "SAME", name="conv")
    alone = tf.nn.conv2d(x, weights, [1, 1, 1, 1], "SAME")
    tf.add(builder.normal(shared) + shared, builder.normal(alone), name="y")
    after = transform_graph(made(), ["x"], ["y", "conv"], "fold_old_batch_norms")
    # One is folded, with weights of its own; the other has a user beside the normalization.
    assert ops(after).count("FusedBatchNormV3") == 1
    for fetch in ("y:0", "conv:0"):
        np.testing.assert_allclose(ran(after, fetch), ran(made(), fetch), rtol=0, atol=2e-5)


@pytest.mark.parametrize("layer", ["product norm", "fused norm", "two normal convs"])
def test_weights_of_another_shape_stay(layer: str) -> None:
    graph_def = network(1, [layer])
    for node in graph_def.node:
        if node.op == "Const" and len(node.attr["value"].tensor.tensor_shape.dim) == 4:
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(1.0))
    transforms = "fold_batch_norms fold_old_batch_norms"
    after = transform_graph(graph_def, ["x"], ["y"], transforms)
    assert ops(after).count("Conv2D") == ops(graph_def).count("Conv2D")


def test_control_inputs_stay() -> None:
    x = tf.placeholder(tf.float32, [2], name="x")
    other = tf.placeholder(tf.float32, [2], name="other")
    check = tf.check_numerics(other, "x")
    with tf.control_dependencies([check]):
        first = tf.identity(x, name="first")
    with tf.control_dependencies([first]):
        tf.negative(other, name="y")
    after = nodes(transform_graph(made(), ["x"], ["y"], "remove_nodes(op=Identity)"))
    assert list(after["y"].input) == ["other", "^x", "^CheckNumerics"]
    bare = transform_graph(made(), ["x"], ["y"], "remove_control_dependencies")
    assert not any(text.startswith("^") for node in bare.node for text in node.input)


def test_what_goes_hands_on_what_it_waited_for() -> None:
    builder = Builder(9)
    x = tf.placeholder(tf.float32, [1, 4, 4, 3], name="x")
    size = tf.constant([5, 5])
    with tf.control_dependencies([tf.no_op(name="first")]):
        resized = tf.raw_ops.ResizeBilinear(images=x, size=size)
    tf.nn.conv2d(resized, builder.weights(1, 1, 3, 2), [1, 1, 1, 1], "SAME", name="y")
    after = nodes(transform_graph(made(), ["x"], ["y"], "fuse_resize_and_conv"))
    assert after["y"].op == "FusedResizeAndPadConv2D"
    assert after["y"].input[-1] == "^first"
    assert "first" in after


def test_folding_leaves_what_is_excluded_or_large() -> None:
    x = tf.placeholder(tf.float32, [2], name="x")
    two = tf.exp(tf.constant([1.0, 2.0]), name="two")
    tf.add(x * tf.tanh(two), tf.fill([2], 3.0), name="y")
    assert ops(transform_graph(made(), ["x"], ["y"], "fold_constants")) == [
        "Add", "Const", "Const", "Mul", "Placeholder",
    ]  # fmt: skip
    kept = transform_graph(made(), ["x"], ["y"], "fold_constants(exclude_op=Exp)")
    assert {"Exp", "Tanh"} <= set(ops(kept))
    assert "Fill" not in ops(kept)
    kept = transform_graph(made(), ["x"], ["y"], "fold_constants(exclude_node=two)")
    assert {"Exp", "Tanh"} <= set(ops(kept))
    small = transform_graph(made(), ["x"], ["y"], "fold_constants(max_constant_size_in_bytes=4)")
    assert {"Exp", "Tanh", "Fill"} <= set(ops(small))


def test_inputs_may_be_anything() -> None:
    x = tf.placeholder_with_default(tf.constant([1.0, 2.0]), [2], name="x")
    tf.multiply(x, tf.constant(2.0) + 1.0, name="y")
    after = transform_graph(made(), ["x"], ["y"], "fold_constants")
    assert ops(after) == ["Const", "Mul", "Placeholder"]
    assert ops(transform_graph(made(), [], ["y"], "fold_constants")) == ["Const"]
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="'y' was expected to be a Placeholder"
    ):
        transform_graph(made(), ["y"], ["y"], "fold_constants")


def test_stripping_makes_placeholders() -> None:
    before = network(4, ["relu"])
    call = (
        'strip_unused_nodes(type=half, shape="3,-1", name=Mean, type_for_name=float,'
        ' shape_for_name="2,3")'
    )
    after = transform_graph(before, ["Mean", "Relu"], ["y"], call)
    found = nodes(after)
    assert "unused" not in found
    assert (found["Mean"].op, found["Mean"].attr["dtype"].type) == ("Placeholder", tf.float32)
    assert [d.size for d in found["Mean"].attr["shape"].shape.dim] == [2, 3]
    assert [d.size for d in found["Relu"].attr["shape"].shape.dim] == [3, -1]


def test_names_and_attributes() -> None:
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.device("/device:CPU:0"):
        long = tf.tanh(x, name="some/long/name")
    with tf.control_dependencies([long]):
        tf.multiply(x, x, name="y")
    before = made()
    short = transform_graph(before, ["x"], ["y"], "obfuscate_names")
    assert [n.name for n in short.node] == ["x", "0", "y"]
    assert list(short.node[2].input) == ["x", "x", "^0"]
    renamed = transform_graph(
        before, ["x"], ["y"],
        "rename_op(old_op_name=Tanh, new_op_name=Sigmoid)"
        " rename_attribute(old_attribute_name=T, new_attribute_name=U, op_name=Mul)"
        " remove_attribute(attribute_name=T, op_name=Sigmoid)"
        " set_device(device=a, if_default=true)",
    )  # fmt: skip
    found = nodes(renamed)
    assert found["some/long/name"].op == "Sigmoid"
    assert set(found["y"].attr) == {"U"}
    assert set(found["some/long/name"].attr) == set()
    assert [n.device for n in renamed.node] == ["a", "/device:CPU:0", "a"]
    assert not any(n.device for n in transform_graph(renamed, [], [], "remove_device").node)
    full = transform_graph(renamed, [], [], "add_default_attributes")
    assert "dtype" in nodes(full)["x"].attr


def test_order() -> None:
    before = network(5, ["conv", "relu"])
    backward = tf.GraphDef()
    backward.node.extend(reversed(list(before.node)))
    after = transform_graph(backward, ["x"], ["y"], "sort_by_execution_order")
    seen: set[str] = set()
    for node in after.node:
        assert set(node.input) <= seen
        seen.add(node.name)
    loop = tf.GraphDef()
    loop.node.add(name="a", op="Neg", input=["b"])
    loop.node.add(name="b", op="Neg", input=["a"])
    with pytest.raises(tf.errors.InvalidArgumentError, match="2 nodes in a cycle"):
        transform_graph(loop, [], [], "sort_by_execution_order")


def test_duplicates() -> None:
    x = tf.placeholder(tf.float32, [2], name="x")
    same = [tf.tanh(x * tf.constant(2.0)) for _ in range(3)]
    drawn = [tf.random.uniform([2], seed=1) for _ in range(2)]
    tf.add_n([*same, *drawn], name="y")
    after = ops(transform_graph(made(), ["x"], ["y"], "merge_duplicate_nodes"))
    assert (after.count("Tanh"), after.count("Mul")) == (1, 3)
    assert after.count("RandomUniform") == 2


def test_rounded_weights_are_few_numbers() -> None:
    values = np.linspace(-1, 1, 99, dtype=np.float32)
    tf.constant(values, name="y")
    after = transform_graph(made(), [], ["y"], "round_weights(num_steps=8)")
    rounded = ran(after, feeds={})
    assert len(np.unique(rounded)) == 8
    np.testing.assert_allclose(rounded, values, rtol=0, atol=1 / 8)


def test_weights_take_a_quarter() -> None:
    values = np.random.RandomState(0).standard_normal((64, 64)).astype(np.float32)
    tf.constant(values, name="y")
    small = tf.constant(values[:4, 0])
    after = transform_graph(made(), [], ["y", small.op.name], "quantize_weights")
    assert after.ByteSize() < made().ByteSize() / 3.5
    np.testing.assert_allclose(ran(after, feeds={}), values, rtol=0, atol=np.ptp(values) / 255)
    assert nodes(after)[small.op.name].op == "Const"


def test_gathering_from_a_column_of_zeros(tmp_path: Path) -> None:
    column = np.zeros((50, 1), np.float32)
    column[[3, 7, 49], 0] = [1.5, -2.0, 0.25]
    ids = tf.placeholder(tf.int32, [None], name="x")
    tf.gather(tf.identity(tf.constant(column)), ids, name="y")
    after = transform_graph(made(), ["x"], ["y"], "sparsify_gather(group_init_node=fill)")
    assert "HashTable" in ops(after)
    assert after.ByteSize() < made().ByteSize() * 3
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(after, name="")
        session.run("fill")
        np.testing.assert_array_equal(session.run("y:0", {"x:0": [0, 3, 49]}), column[[0, 3, 49]])
    with tf.Graph().as_default() as wide:
        tf.gather(tf.identity(tf.zeros([4, 2]) + tf.constant(1.0)), [1], name="z")
        tf.gather(tf.identity(tf.constant(np.ones((4, 2), np.float32))), [1], name="y")
        with pytest.raises(tf.errors.FailedPreconditionError, match=r"of shape \[N, 1\]"):
            transform_graph(wide.as_graph_def(), [], ["y"], "sparsify_gather")


# ---------------------------------------------------------------- 8 bits
def test_placeholders_of_bytes() -> None:
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    tf.nn.relu(tf.matmul(x, tf.constant(np.eye(4, dtype=np.float32))), name="y")
    after = transform_graph(
        made(), ["x"], ["y"],
        "quantize_weights(minimum_size=4)"
        " quantize_nodes(input_min=-1, input_max=1, fallback_min=-1, fallback_max=1)",
    )  # fmt: skip
    assert not {"QuantizeV2", "RequantizationRange", "Min"} & set(ops(after))
    as_bytes = np.clip(np.rint(RATE * 127.5) + 128, 0, 255).astype(np.uint8)
    got = ran(after, feeds={"x:0": as_bytes.view(tf.quint8.as_numpy_dtype)})
    np.testing.assert_allclose(got, np.maximum(RATE, 0), rtol=0, atol=0.02)


def test_trained_ranges_are_kept() -> None:
    x = tf.placeholder(tf.float32, [None, 4], name="x")
    product = tf.nn.relu(tf.matmul(x, tf.constant(np.eye(4, dtype=np.float32))))
    tf.quantization.fake_quant_with_min_max_vars(product, 0.0, 0.75, name="y")
    after = transform_graph(made(), ["x"], ["y"], "quantize_nodes")
    found = nodes(after)
    assert found["y"].op == "Dequantize"
    assert "FakeQuantWithMinMaxVars" not in ops(after)
    (narrowed,) = (n for n in after.node if n.op == "Requantize")
    ends = [found[text].attr["value"].tensor.float_val[0] for text in narrowed.input[3:]]
    assert ends == [0.0, 0.75]
    got = ran(after, feeds={"x:0": RATE})
    np.testing.assert_allclose(got, np.clip(RATE, 0, 0.75), rtol=0, atol=0.02)


def test_ranges_of_many_runs_become_constants(tmp_path: Path, capfd: Any) -> None:
    before = network(6, ["conv", "relu", "conv", "bias"])
    small = transform_graph(
        before, ["x"], ["y"], "quantize_weights(minimum_size=16) quantize_nodes"
    )
    call = 'insert_logging(op=RequantizationRange, show_name=true, message="__requant_min_max:")'
    logged = transform_graph(small, ["x"], ["y"], call)
    capfd.readouterr()
    for factor in (0.5, 0.75, 1.0):
        ran(logged, feeds={"x:0": IMAGES * factor})
    log = tmp_path / "log.txt"
    log.write_text(f"other words\n{capfd.readouterr().err}", encoding="utf-8")
    call = f"freeze_requantization_ranges(min_max_log_file={log}"
    frozen = transform_graph(small, ["x"], ["y"], f"{call}, min_percentile=0, max_percentile=0)")
    assert ops(small).count("RequantizationRange") == ops(small).count("Requantize") > 2
    assert "RequantizationRange" not in ops(frozen)
    np.testing.assert_allclose(ran(frozen), ran(before), rtol=0, atol=0.12)
    with pytest.raises(tf.errors.InvalidArgumentError, match="aren't present in the graph"):
        transform_graph(before, ["x"], ["y"], f"{call})")
    log.write_text("nothing", encoding="utf-8")
    with pytest.raises(tf.errors.InvalidArgumentError, match="No min/max range logs were found"):
        transform_graph(small, ["x"], ["y"], f"{call})")


def test_what_has_no_equivalent_stays_float() -> None:
    x = tf.placeholder(tf.float32, [1, 3, 8, 8], name="x")
    weights = tf.constant(np.ones((1, 1, 3, 2), np.float32))
    tf.nn.conv2d(x, weights, [1, 1, 1, 1], "SAME", data_format="NCHW", name="y")
    tf.matmul(tf.ones([2, 2], tf.float64), tf.ones([2, 2], tf.float64), name="z")
    after = transform_graph(made(), ["x"], ["y", "z"], "quantize_nodes")
    assert ops(after) == ops(made())
    kept = transform_graph(network(8, ["conv"]), ["x"], ["y"], "quantize_nodes(ignore_op=Conv2D)")
    assert "Conv2D" in ops(kept)
