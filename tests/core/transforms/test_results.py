"""Transforms keep what a graph computes: exactly, up to rounding, or as bytes can tell it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opdock.transforms import transform_graph, transform_names
from tests.core.transforms.graphs import IMAGES, LAYERS, inception, network, ops, ran

EXACT, ROUNDED, BYTES = 0.0, 2e-5, 0.12
# Transform -> how far a probability may move.
PROMISES: dict[str, float] = {
    "add_default_attributes": EXACT,
    "backport_concatv2": EXACT,
    "backport_tensor_array_v3": EXACT,
    "flatten_atrous_conv": ROUNDED,
    "fold_constants": EXACT,
    "fold_constants fold_batch_norms": ROUNDED,
    "fold_old_batch_norms": ROUNDED,
    "fuse_convolutions": ROUNDED,
    "fuse_pad_and_conv": ROUNDED,
    "fuse_resize_and_conv": ROUNDED,
    "fuse_resize_pad_and_conv": ROUNDED,
    "insert_logging(op=MatMul, first_n=0)": EXACT,
    "merge_duplicate_nodes": EXACT,
    "obfuscate_names": EXACT,
    "quantize_weights(minimum_size=16)": BYTES,
    "quantize_weights(minimum_size=16) quantize_nodes": BYTES,
    "remove_attribute(attribute_name=_output_shapes)": EXACT,
    "remove_control_dependencies": EXACT,
    "remove_device": EXACT,
    "remove_nodes(op=Identity, op=CheckNumerics)": EXACT,
    "rename_attribute(old_attribute_name=_a, new_attribute_name=_b)": EXACT,
    "rename_op(old_op_name=A, new_op_name=B)": EXACT,
    "round_weights": BYTES,
    'set_device(device="/device:CPU:0")': EXACT,
    "sort_by_execution_order": EXACT,
    "sparsify_gather": EXACT,
    "strip_unused_nodes": EXACT,
}
# Those that ask for more than a graph, and are proven beside it.
ELSEWHERE = {"freeze_requantization_ranges", "quantize_layers"}


def test_each_transform_has_a_promise() -> None:
    said = {name.partition("(")[0] for names in PROMISES for name in names.split()}
    assert set(transform_names()) <= said | ELSEWHERE


RANDOM = given(
    seed=st.integers(0, 2**16),
    layers=st.lists(st.sampled_from(LAYERS), min_size=1, max_size=6),
    transform=st.sampled_from(sorted(PROMISES)),
)


@settings(max_examples=15)
@RANDOM
def test_random_graphs(seed: int, layers: list[str], transform: str) -> None:
    keeps_results(seed, layers, transform)


@pytest.mark.prove
@settings(max_examples=400)
@RANDOM
def test_many_random_graphs(seed: int, layers: list[str], transform: str) -> None:
    keeps_results(seed, layers, transform)


def keeps_results(seed: int, layers: list[str], transform: str) -> None:
    before = network(seed, layers)
    kept = before.SerializeToString(deterministic=True)
    after = transform_graph(before, ["x"], ["y"], transform)
    assert before.SerializeToString(deterministic=True) == kept
    np.testing.assert_allclose(ran(after), ran(before), rtol=0, atol=PROMISES[transform])


SEED = """
    add_default_attributes strip_unused_nodes(type=float, shape="1,8,8,3")
    remove_nodes(op=Identity, op=CheckNumerics) fold_constants(ignore_errors=true)
    fold_batch_norms fold_old_batch_norms quantize_weights(minimum_size=32) quantize_nodes
    strip_unused_nodes sort_by_execution_order
"""


def test_the_command_that_makes_an_inception_of_bytes() -> None:
    before = inception()
    after = transform_graph(before, ["Mul"], ["softmax"], SEED)
    assert {"Conv2D", "Relu", "MaxPool", "ConcatV2", "CheckNumerics"} <= set(ops(before))
    left = {n.op for n in after.node} - {"Const", "Placeholder", "Softmax"}
    floats = {"Reshape", "Min", "Max", "QuantizeV2", "Dequantize"}  # at both ends
    assert all(op in floats or op.startswith(("Quantized", "Requant")) for op in left), left
    assert ops(after).count("QuantizedConv2D") == 9
    # Bytes stay bytes: only the image becomes bytes on the way, and the constants that are small.
    sources = {node.name: node.op for node in after.node}
    made = [n for n in after.node if n.op == "QuantizeV2"]
    assert {sources[n.input[0]] for n in made} <= {"Placeholder", "Const"}
    image = IMAGES[:1]
    expected, got = (ran(g, "softmax:0", {"Mul:0": image}) for g in (before, after))
    np.testing.assert_allclose(got, expected, rtol=0, atol=BYTES)
    assert got.argmax() == expected.argmax()


@pytest.mark.parametrize("transform", ["fold_constants", "quantize_nodes", "merge_duplicate_nodes"])
def test_loops_of_version_1(transform: str) -> None:
    import opdock as tf

    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2, 2], name="x")
        weights = tf.constant([[0.5, 0.25], [0.125, 1.0]])
        tf.identity(
            tf.while_loop(
                lambda i, _: i < 3, lambda i, v: (i + 1, tf.nn.relu(tf.matmul(v, weights))), (0, x)
            )[1],
            name="y",
        )
        before = graph.as_graph_def()
    after = transform_graph(before, ["x"], ["y"], transform)
    feeds: Any = {"x:0": [[1.0, 2.0], [3.0, 4.0]]}
    expected = ran(before, feeds=feeds)
    np.testing.assert_allclose(ran(after, feeds=feeds), expected, rtol=0, atol=BYTES)
