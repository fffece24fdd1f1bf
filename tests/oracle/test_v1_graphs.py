"""Graphs with TF 1's first control flow, as TensorFlow wrote them, give TensorFlow's outputs."""

from __future__ import annotations

import json

import numpy as np

import opdock as tf
from tests.oracle import reference

pytestmark = reference.needs_reference


def test_a_frozen_loop_and_branch() -> None:
    folder = reference.FOLDER / "interop"
    about = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["graphs"]["while_v1"]
    data = np.load(folder / about["data"])
    graph_def = tf.GraphDef.FromString((folder / about["file"]).read_bytes())
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        tf.import_graph_def(graph_def, name="")
        feed = {name: data[f"in{i}"] for i, name in enumerate(about["inputs"])}
        (out,) = sess.run(about["outputs"], feed)
        assert graph.get_tensor_by_name("out:0").shape.as_list() == [None, 3]
    np.testing.assert_allclose(out, data["out0"], rtol=about["rtol"], atol=about["atol"])


def test_training_goes_on_from_a_checkpoint_with_moving_averages() -> None:
    """Its averages begin with `tf.cond`, and Adam has slots: all of it restores and runs."""
    folder = reference.FOLDER / "interop/ckpt/moving_averages"
    saved = np.load(folder / "expected.npz")
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        saver = tf.train.import_meta_graph(str(folder / "model.ckpt-3.meta"))
        (train,) = {op.name for op in graph.get_collection("train_op")}
        sess.run(tf.global_variables_initializer())
        saver.restore(sess, tf.train.latest_checkpoint(str(folder)))
        before = sess.run({v.op.name: v for v in tf.global_variables()})
        for name, value in before.items():
            np.testing.assert_array_equal(value, saved[name.replace("/", "|")])
        sess.run(train)
        after = sess.run({v.op.name: v for v in tf.global_variables()})
    assert after["global_step"] == before["global_step"] + 1
    np.testing.assert_allclose(after["beta1_power"], before["beta1_power"] * 0.9, rtol=1e-6)
    assert (after["layer/w"] != before["layer/w"]).any()
