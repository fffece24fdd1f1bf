"""Ensembles of trees: growth, predictions, pruning, and what checkpoints keep of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.io import tree_messages
from opdock.ops import boosted_trees as trees
from opdock.ops import boosted_trees_stats as stats
from opdock.ops.composed.resources import initialize_resources, shared_resources
from opdock.train.boosted_trees import PruningMode, TreeEnsemble

X = np.array([[0, 1], [1, 0], [2, 2], [3, 1], [1, 3], [3, 3]], np.int32)
Y = np.array([0, 0, 2, 2, 1, 3], np.float32)


def _begin(ensemble: TreeEnsemble, sess: tf.Session) -> None:
    sess.run(initialize_resources(shared_resources()))


def _layer(ensemble: TreeEnsemble, max_depth: int = 2, pruning: int = 0) -> Any:
    """An op that adds a layer that fits squares of differences, and the predictions before."""
    features = [tf.constant(X[:, i]) for i in range(2)]
    logits = trees.predict_op(ensemble.resource_handle, features, logits_dimension=1)
    *_, nodes = trees.training_predict_op(
        ensemble.resource_handle, [0] * len(Y), [-1] * len(Y), features, logits_dimension=1
    )
    gradients, node_range = logits - Y[:, None], ensemble.get_states()[4]
    found = [
        stats.best_split_op(
            node_range,
            stats.aggregate_stats_op(
                nodes, gradients, tf.ones_like(gradients), feature[:, None], max_splits=8,
                num_buckets=4,
            ),
            0.0, 0.0, 0.0, 0.0, logits_dimension=1,
        )
        for feature in features
    ]  # fmt: skip
    by_kind = [list(column) for column in zip(*found, strict=True)]
    ids, gains, dimensions, thresholds, left, right, kinds = by_kind
    grow = trees.update_ensemble_v2_op(
        ensemble.resource_handle, [0, 1], dimensions, ids, gains, thresholds, left, right, kinds,
        max_depth, 1.0, pruning,
    )  # fmt: skip
    return grow, logits


def test_layers_fit_what_they_are_grown_for() -> None:
    ensemble = TreeEnsemble("trees")
    grow, logits = _layer(ensemble)
    stamp, count, finished, layers, _ = ensemble.get_states()
    with tf.Session() as sess:
        _begin(ensemble, sess)
        losses = []
        for _ in range(6):
            losses.append(float(((sess.run(logits)[:, 0] - Y) ** 2).sum()))
            sess.run(grow)
        assert losses == sorted(losses, reverse=True)
        assert losses[-1] < 0.1 * losses[0]
        assert sess.run([stamp, count, finished, layers]) == [6, 4, 3, 6]


def test_cached_nodes_give_what_was_added_since() -> None:
    ensemble = TreeEnsemble("trees")
    grow, logits = _layer(ensemble)
    tree_ids, node_ids = (tf.placeholder(tf.int32, [6]) for _ in range(2))
    added = trees.training_predict_op(
        ensemble.resource_handle, tree_ids, node_ids, [X[:, 0], X[:, 1]], logits_dimension=1
    )
    with tf.Session() as sess:
        _begin(ensemble, sess)
        total, at = np.zeros((6, 1), np.float32), (np.zeros(6, np.int32), np.full(6, -1, np.int32))
        for _ in range(4):
            sess.run(grow)
            step, *at = sess.run(added, {tree_ids: at[0], node_ids: at[1]})
            total += step
            np.testing.assert_allclose(total, sess.run(logits), atol=1e-6)
        with pytest.raises(tf.errors.InvalidArgumentError, match="cached_tree_ids must be in"):
            sess.run(added, {tree_ids: [9] * 6, node_ids: [0] * 6})


def _tree(*nodes: str) -> str:
    return "trees { " + " ".join(f"nodes {{ {node} }}" for node in nodes) + " } tree_weights: 1"


def _given(text: str) -> TreeEnsemble:
    from google.protobuf import text_format

    message = text_format.Parse(text, tree_messages.TreeEnsemble())
    return TreeEnsemble("given", serialized_proto=message.SerializeToString())


def _predicted(ensemble: TreeEnsemble, *features: list[int]) -> Any:
    op = trees.predict_op(ensemble.resource_handle, list(features), logits_dimension=1)
    with tf.Session() as sess:
        _begin(ensemble, sess)
        return sess.run(op)[:, 0]


def test_a_category_goes_left_where_it_is_equal() -> None:
    ensemble = _given(_tree(
        "categorical_split { feature_id: 0 value: 2 left_id: 1 right_id: 2 }",
        "leaf { scalar: 1 }", "leaf { scalar: -1 }",
    ))  # fmt: skip
    assert _predicted(ensemble, [1, 2, 3]).tolist() == [-1, 1, -1]


@pytest.mark.parametrize(("split", "message"), [
    ("feature_id: 0 left_id: 1 right_id: 0", "cannot lead to nodes 1 and 0 of 3"),
    ("feature_id: 0 left_id: 1 right_id: 7", "cannot lead to nodes 1 and 7 of 3"),
    ("feature_id: 4 left_id: 1 right_id: 2", "asks for feature 4 of 1"),
])  # fmt: skip
def test_trees_that_lead_nowhere_are_refused(split: str, message: str) -> None:
    leaf = "leaf { scalar: 1 }"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        _predicted(_given(_tree(f"bucketized_split {{ {split} }}", leaf, leaf)), [1])


def test_other_bytes_are_no_ensemble() -> None:
    ensemble = TreeEnsemble("trees", serialized_proto=b"\xff\xff")
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="Unable to"):
        _begin(ensemble, sess)


def test_splits_that_lose_are_taken_back() -> None:
    ensemble = TreeEnsemble("trees")
    grow = trees.update_ensemble_v2_op(
        ensemble.resource_handle, [0], [[0]], [tf.placeholder_with_default([0], [1])], [[-1.0]],
        [[1]], [[[0.5]]], [[[-0.5]]], [["INEQUALITY_DEFAULT_LEFT"]], 1, 1.0,
        PruningMode.from_str("post"),
    )  # fmt: skip
    _, text = ensemble.serialize()
    back = trees.training_predict_op(
        ensemble.resource_handle, [0, 0], [1, 2], [[0, 3]], logits_dimension=1
    )
    with tf.Session() as sess:
        _begin(ensemble, sess)
        sess.run(grow)
        message = tree_messages.TreeEnsemble.FromString(sess.run(text))
        assert [len(tree.nodes) for tree in message.trees] == [1, 1]
        # Who had been sent to a leaf that is gone gives back what it had got there.
        assert sess.run(back)[0][:, 0].tolist() == [-0.5, 0.5]


def test_a_restored_ensemble_predicts_the_same(tmp_path: Path) -> None:
    ensemble = TreeEnsemble("trees")
    grow, logits = _layer(ensemble)
    saver = tf.train.Saver()
    with tf.Session() as sess:
        _begin(ensemble, sess)
        for _ in range(3):
            sess.run(grow)
        expected, states = sess.run([logits, ensemble.get_states()])
        path = saver.save(sess, str(tmp_path / "model"))
    with tf.Session() as sess:
        saver.restore(sess, path)
        found, again = sess.run([logits, ensemble.get_states()])
    np.testing.assert_array_equal(found, expected)
    assert all(np.array_equal(a, b) for a, b in zip(states, again, strict=True))


def test_nothing_is_there_before_it_is_made() -> None:
    ensemble = TreeEnsemble("trees")
    with tf.Session() as sess:
        assert not sess.run(ensemble.is_initialized())
        with pytest.raises(tf.errors.NotFoundError, match=r"trees/.* does not exist"):
            sess.run(ensemble.get_stamp_token())


def test_centering_ends_when_the_mean_is_met() -> None:
    ensemble = TreeEnsemble("trees")
    gradient = tf.placeholder(tf.float32, [1, 1])
    center = trees.center_bias_op(ensemble.resource_handle, gradient, [[1.0]], 0.0, 0.0)
    with tf.Session() as sess:
        _begin(ensemble, sess)
        assert [bool(sess.run(center, {gradient: [[g]]})) for g in (-2.0, -1.0, -0.001)] == [
            True, True, False,
        ]  # fmt: skip


def test_an_example_is_explained_split_by_split() -> None:
    ensemble = _given(_tree(
        "bucketized_split { feature_id: 1 threshold: 2 left_id: 1 right_id: 2 } "
        "metadata { original_leaf { scalar: 0.5 } }",
        "leaf { scalar: 1 }", "leaf { scalar: -1 }",
    ))  # fmt: skip
    op = trees.debug_outputs_op(ensemble.resource_handle, [[0, 0], [1, 3]], logits_dimension=1)
    with tf.Session() as sess:
        _begin(ensemble, sess)
        shown = [tree_messages.DebugOutput.FromString(text) for text in sess.run(op)]
    assert [list(each.feature_ids) for each in shown] == [[1], [1]]
    assert [list(each.logits_path) for each in shown] == [[0.5, 1.0], [0.5, -1.0]]
