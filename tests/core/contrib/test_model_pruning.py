"""Networks that are pruned while they are trained: what is masked, when, and how much."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf

pruning = tf.contrib.model_pruning
INPUTS = np.random.RandomState(1).randn(4, 6).astype(np.float32)
IMAGES = np.random.RandomState(2).randn(2, 5, 5, 3).astype(np.float32)


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def masked_by_hand(weights: Any, part: float) -> Any:
    """The mask that keeps the largest of some weights."""
    kept = round(weights.size * (1 - part))
    least = np.sort(np.abs(weights).ravel())[-kept]
    return (np.abs(weights) >= least).astype(np.float32)


def test_layers_compute_with_masked_weights() -> None:
    dense = pruning.masked_fully_connected(INPUTS, 8, activation_fn=None, scope="dense")
    image = pruning.masked_conv2d(IMAGES, 2, 3, scope="conv")
    plain = tf.nn.relu(tf.nn.conv2d(IMAGES, pruning.get_masked_weights()[1], [1, 1, 1, 1], "SAME"))
    names = {v.op.name for v in tf.global_variables()}
    assert names == {
        f"{layer}/{name}" for layer in ("dense", "conv")
        for name in ("weights", "biases", "mask", "threshold")
    }  # fmt: skip
    assert {v.op.name for v in tf.trainable_variables()} == {
        "dense/weights", "dense/biases", "conv/weights", "conv/biases"
    }  # fmt: skip
    update = pruning.Pruning(sparsity=0.75, global_step=tf.constant(0)).mask_update_op()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        whole = sess.run(dense)
        weights = sess.run(pruning.get_weights())
        np.testing.assert_allclose(whole, INPUTS @ weights[0], rtol=1e-4, atol=1e-5)
        sess.run(update)
        masks = sess.run(pruning.get_masks())
        for mask, values in zip(masks, weights, strict=True):
            np.testing.assert_array_equal(mask, masked_by_hand(values, 0.75))
        np.testing.assert_allclose(
            sess.run(pruning.get_weight_sparsity()), [0.75, 40 / 54], atol=0.02
        )
        found = sess.run([dense, image, plain])
    np.testing.assert_allclose(found[0], INPUTS @ (weights[0] * masks[0]), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[1], found[2], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["MaskedBasicLSTMCell", "MaskedLSTMCell"])
def test_cells_are_as_without_masks_until_some_are_0(name: str) -> None:
    cell = getattr(pruning, name)(3)
    like = tf.nn.rnn_cell.LSTMCell(3, name="plain")
    state = tf.nn.rnn_cell.LSTMStateTuple(tf.ones([4, 3]), tf.zeros([4, 3]))
    outputs = [made(tf.constant(INPUTS), state)[0] for made in (cell, like)]
    copies = [
        tf.assign(cell.unmasked_kernel, like._kernel), tf.assign(cell._bias, like._bias)
    ]  # fmt: skip
    update = pruning.Pruning(sparsity=0.5, global_step=tf.constant(0)).mask_update_op()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(copies)
        masked, plain = sess.run(outputs)
        np.testing.assert_array_equal(masked, plain)
        sess.run(update)
        sess.run(tf.assign(like._kernel, pruning.get_masked_weights()[0]))
        np.testing.assert_allclose(*sess.run(outputs), rtol=1e-6)
        assert abs(sess.run(outputs[0]) - plain).max() > 1e-3


def test_masks_are_made_when_they_are_due() -> None:
    step = tf.train.get_or_create_global_step()
    values = tf.get_variable("values", initializer=np.linspace(1, 100, 100, dtype=np.float32))
    pruning.apply_mask(values)
    spec = pruning.get_pruning_hparams().parse(
        "pruning_frequency=2,begin_pruning_step=2,end_pruning_step=6,target_sparsity=0.8,"
        "sparsity_function_end_step=10,sparsity_function_exponent=1"
    )
    update = pruning.Pruning(spec).conditional_mask_update_op()
    zeros = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(9):
            sess.run(tf.assign_add(step, 1))
            sess.run(update)
            zeros.append(round(float(sess.run(pruning.get_weight_sparsity()[0])), 2))
    assert zeros == [0, 0.16, 0.16, 0.32, 0.32, 0.48, 0.48, 0.48, 0.48]


@pytest.mark.parametrize("kind", ["AVG", "MAX"])
def test_blocks_have_one_mask(kind: str) -> None:
    values = np.random.RandomState(3).randn(6, 5).astype(np.float32)
    weights = tf.get_variable("values", initializer=values)
    pruning.apply_mask(weights)
    spec = pruning.get_pruning_hparams().parse(
        f"block_dims_map=[values:2x-1],block_pooling_function={kind}"
    )
    update = pruning.Pruning(spec, tf.constant(0), sparsity=0.33).mask_update_op()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(update)
        mask = sess.run(pruning.get_masks()[0])
    size = np.abs(values).reshape(3, 10)
    of_blocks = masked_by_hand(size.mean(1) if kind == "AVG" else size.max(1), 0.33)
    np.testing.assert_array_equal(mask, np.repeat(of_blocks, 2)[:, None] * np.ones(5))


def test_thresholds_decay_targets_differ_by_name_and_parts_are_one() -> None:
    with tf.variable_scope("parts", partitioner=tf.fixed_size_partitioner(3)):
        parts = tf.get_variable("kernel", initializer=tf.range(1.0, 31.0))
        pruning.apply_mask(parts, tf.get_variable_scope())
    other = tf.get_variable("other", initializer=tf.range(1.0, 11.0))
    with tf.variable_scope("of_other"):
        pruning.apply_mask(other, tf.get_variable_scope())
    spec = pruning.get_pruning_hparams().parse(
        "weight_sparsity_map=[other:0.25],threshold_decay=0.5"
    )
    made = pruning.Pruning(spec, tf.constant(0), sparsity=tf.constant(0.4))
    update = made.mask_update_op()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for wanted in (6.5, 9.75):
            sess.run(update)
            thresholds = sess.run(pruning.get_thresholds())
            np.testing.assert_allclose(thresholds[0], wanted)
        whole = sess.run(tf.convert_to_tensor(pruning.get_masks()[0]))
        np.testing.assert_array_equal(whole, np.arange(1, 31) > 9.75)
        np.testing.assert_allclose(
            thresholds[1], 2.25
        )  # two tenths are 0: half of 3, then half of the rest


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("begin_pruning_step=-1", "Illegal value for begin_pruning_step"),
        ("begin_pruning_step=9,end_pruning_step=9", "Pruning must begin before it can end"),
        ("sparsity_function_begin_step=-1", "Illegal value for sparsity_function_begin_step"),
        ("sparsity_function_begin_step=100", "requires begin_step < end_step"),
        ("target_sparsity=1.0", r"target_sparsity must be in range \[0,1\)"),
        ("weight_sparsity_map=[a:1.5]", "can not exceed 1.0"),
        ("block_dims_map=[a:4]", "Expected 2 values for block dim"),
    ],
)
def test_what_contradicts_itself_says_so(options: str, message: str) -> None:
    spec = pruning.get_pruning_hparams().parse(options)
    with pytest.raises(ValueError, match=message):
        pruning.Pruning(spec, tf.constant(0))


def test_a_pruned_network_is_frozen_without_its_masks(tmp_path: Any) -> None:
    inputs = tf.placeholder(tf.float32, [None, 6], name="inputs")
    outputs = pruning.masked_fully_connected(inputs, 8, scope="dense")
    update = pruning.Pruning(sparsity=0.5, global_step=tf.constant(0)).mask_update_op()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(update)
        wanted = sess.run(outputs, {inputs: INPUTS})
        tf.train.Saver().save(sess, str(tmp_path / "model"))
    frozen = pruning.graph_def_from_checkpoint(str(tmp_path), [outputs.op.name])
    stripped = pruning.strip_pruning_vars_fn(frozen, [outputs.op.name])
    assert any(node.name.endswith("mask") for node in frozen.node)
    assert not any(node.name.endswith(("mask", "dense/weights")) for node in stripped.node)
    with tf.Graph().as_default(), tf.Session() as sess:
        found = tf.import_graph_def(stripped, return_elements=[f"{outputs.op.name}:0"], name="")
        np.testing.assert_allclose(sess.run(found[0], {"inputs:0": INPUTS}), wanted, rtol=1e-6)
    with pytest.raises(ValueError, match="Could not find a checkpoint"):
        pruning.graph_def_from_checkpoint(str(tmp_path / "nowhere"), [])
