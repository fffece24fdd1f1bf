"""Graphs that are rewritten for 8 bits: what is folded stays equal, what is rounded trains."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.contrib.quantize.rewrites import fold_batch_norms
from opdock.transforms import transform_graph

RNG = np.random.RandomState(5)
PIXELS = RNG.rand(16, 8, 8, 3).astype(np.float32)


def network(training, depthwise=False):
    """Two layers with batch normalization, and a last one without."""
    x = tf.placeholder(tf.float32, [None, 8, 8, 3], name="x")
    y = tf.layers.conv2d(x, 8, 3, padding="same", use_bias=False, name="first")
    y = tf.nn.relu(tf.layers.batch_normalization(y, training=training, name="norm"))
    if depthwise:
        w = tf.get_variable("depthwise", [3, 3, 8, 2])
        y = tf.nn.depthwise_conv2d(y, w, [1, 2, 2, 1], "SAME")
    else:
        y = tf.layers.conv2d(y, 16, 3, 2, padding="same", use_bias=False, name="second")
    y = tf.nn.relu6(tf.layers.batch_normalization(y, training=training, name="norm_2"))
    y = tf.layers.dense(tf.reshape(y, [-1, 256]), 10, name="last")
    return x, tf.identity(y, name="logits")


def types(graph, word):
    return [op.name for op in graph.get_operations() if word in op.type]


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("delay", [None, 1000])
def test_a_folded_graph_gives_what_it_gave(training, depthwise, delay):
    """Results, gradients and moving averages, with the statistics of the batch as without."""
    found = []
    for fold in (False, True):
        with tf.Graph().as_default() as graph, tf.Session() as session:
            tf.set_random_seed(3)
            x, y = network(training, depthwise)
            if fold:
                fold_batch_norms(graph, training, delay)
                assert sum(name.endswith("_Fold") for name in types(graph, "onv2")) == 2
            variables = tf.trainable_variables()
            grads = tf.gradients(tf.reduce_sum(tf.square(y)), [x, *variables])
            updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
            session.run(tf.global_variables_initializer())
            for v in tf.global_variables():
                values = np.random.RandomState(len(v.name)).uniform(0.5, 1, v.shape.as_list())
                v.load(values if v.dtype.is_floating else v.eval(session), session)
            results = session.run([y, grads], {x: PIXELS})
            session.run(updates, {x: PIXELS})
            moved = [v for v in tf.global_variables() if "moving" in v.name]
            found.append([results[0], *results[1], *session.run(moved)])
    for plain, folded in zip(*found, strict=True):
        scale = max(1.0, float(np.abs(plain).max()))
        np.testing.assert_allclose(folded / scale, plain / scale, atol=2e-4)


def test_frozen_statistics_stay():
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x, y = network(True)
        fold_batch_norms(graph, True, 3)
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        moving = [v for v in tf.global_variables() if "moving" in v.name]
        session.run(tf.global_variables_initializer())
        history = []
        for _ in range(5):
            session.run([y, updates], {x: PIXELS})
            history.append(np.concatenate([v.eval(session).ravel() for v in moving]))
        assert np.abs(history[1] - history[0]).max() > 0
        np.testing.assert_array_equal(history[3], history[2])
        np.testing.assert_array_equal(history[4], history[2])


def trained(folder, delay):
    """Trains a rewritten graph for some steps; its checkpoint."""
    labels = np.arange(16) % 10
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.set_random_seed(1)
        x, y = network(True)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, y)
        tf.contrib.quantize.create_training_graph(graph, quant_delay=delay)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            step = tf.train.AdamOptimizer(0.02).minimize(loss)
        session.run(tf.global_variables_initializer())
        losses = [session.run([loss, step], {x: PIXELS})[0] for _ in range(60)]
        assert losses[-1] < losses[0] / 2
        return tf.train.Saver().save(session, str(folder / "model"))


@pytest.mark.parametrize("delay", [0, 5])
def test_trained_ranges_go_into_a_graph_of_bytes(tmp_path, delay):
    checkpoint = trained(tmp_path, delay)
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x, y = network(False)
        tf.contrib.quantize.create_eval_graph(graph)
        fakes = types(graph, "FakeQuantWithMinMaxVars")
        assert sum("weights_quant" in name for name in fakes) == 3
        assert sum("act_quant" in name for name in fakes) == 3
        tf.train.Saver().restore(session, checkpoint)
        expected = session.run(y, {x: PIXELS})
        frozen = tf.graph_util.convert_variables_to_constants(
            session, graph.as_graph_def(), ["logits"]
        )
    eight = transform_graph(
        frozen, ["x"], ["logits"],
        "fold_constants quantize_weights(minimum_size=16) quantize_nodes strip_unused_nodes",
    )  # fmt: skip
    ops = {node.op for node in eight.node}
    assert {"QuantizedConv2D", "QuantizedMatMul"} <= ops and not {"Conv2D", "MatMul"} & ops
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(eight, name="")
        found = session.run("logits:0", {"x:0": PIXELS})
    spread = expected.max() - expected.min()
    assert np.abs(found - expected).max() < 0.1 * spread
    assert np.mean(found.argmax(1) == expected.argmax(1)) > 0.9


def test_sums_and_what_goes_around_a_layer_are_rounded_once():
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2, 8, 8, 4])
        y = tf.layers.conv2d(x, 4, 3, padding="same", name="a/layer")
        y = tf.layers.conv2d(tf.nn.relu(y + x), 4, 3, padding="same", name="b/layer")
        tf.identity(tf.nn.relu(y) + x, name="out")
        tf.contrib.quantize.experimental_create_eval_graph(graph, symmetric=True, weight_bits=6)
        fakes = types(graph, "FakeQuant")
        bits = {graph.get_operation_by_name(n).get_attr("num_bits") for n in fakes}
    assert bits == {6, 8}
    for word in ("weights_quant", "conv_quant", "act_quant", "post_activation_bypass_quant"):
        assert any(word in name for name in fakes), word
    assert len(fakes) == len(set(fakes)) == 6


def test_a_scope_limits_what_is_rounded():
    with tf.Graph().as_default() as graph:
        network(False)
        tf.contrib.quantize.experimental_create_eval_graph(graph, scope="second")
        fakes = types(graph, "FakeQuant")
    assert fakes and all("second" in name for name in fakes)


def test_a_graph_that_trains_already_is_refused():
    with tf.Graph().as_default() as graph:
        v = tf.get_variable("v", [2])
        tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(v))
        with pytest.raises(ValueError, match="Training op found in graph, exiting"):
            tf.contrib.quantize.create_training_graph(graph)


def test_what_begins_late_is_chosen_by_a_switch() -> None:
    """Tools look for the nodes that TensorFlow 1 has there; gradients go through them."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x, y = network(True)
        tf.contrib.quantize.experimental_create_training_graph(
            graph, quant_delay=3, freeze_bn_delay=3
        )
        names = {op.name: op.type for op in graph.get_operations()}
        for scope in ("delayed_quant", "correction_recip", "freeze_moving_mean"):
            found = [n for n in names if n.endswith(f"/{scope}/Merge")]
            assert found, scope
            assert all(names[n.replace("Merge", "Switch_1")] == "Switch" for n in found)
        assert not {"If", "StatelessIf"} & set(names.values())
        moved = [v for v in tf.global_variables() if "moving" in v.name]
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        grads = tf.gradients(y, [x, *tf.trainable_variables()])
        session.run(tf.global_variables_initializer())
        kept, got = [], []
        for _ in range(5):
            got.append(session.run([y, grads, updates], {x: PIXELS})[1])
            kept.append(np.concatenate([v.eval(session).ravel() for v in moved]))
    assert all(np.abs(grad).max() > 0 for grad in got[0][:2])
    assert np.abs(kept[1] - kept[0]).max() > 0
    np.testing.assert_array_equal(kept[4], kept[3])


def test_updates_that_are_forced_go_on_behind_what_is_folded() -> None:
    def build() -> tuple[object, list[object]]:
        x = tf.placeholder(tf.float32, [16, 8, 8, 3])
        norm = {"fused": False, "scale": True, "decay": 0.5, "updates_collections": None}
        y = tf.contrib.layers.conv2d(
            x, 4, 3, normalizer_fn=tf.contrib.layers.batch_norm, normalizer_params=norm, scope="a"
        )
        return x, [y, *(v for v in tf.global_variables() if "moving" in v.name)]

    found = []
    for fold in (False, True):
        with tf.Graph().as_default() as graph, tf.Session() as session:
            tf.set_random_seed(1)
            x, fetches = build()
            if fold:
                fold_batch_norms(graph, True)
                assert any(name.endswith("_Fold") for name in types(graph, "Conv2D"))
            session.run(tf.global_variables_initializer())
            session.run(fetches[0], {x: PIXELS})
            found.append([*session.run(fetches[1:]), session.run(fetches[0], {x: PIXELS})])
    for plain, folded in zip(*found, strict=True):
        np.testing.assert_allclose(folded, plain, rtol=1e-4, atol=1e-4)
    assert np.abs(found[0][0]).max() > 0  # a moving mean that has moved
