"""Random forests: growth, predictions, seeds, and what checkpoints keep of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.contrib.tensor_forest import ForestHParams, RandomForestGraphs
from opdock.contrib.tensor_forest.inputs import parsed_features
from opdock.io import forest_messages as messages
from opdock.ops.composed.resources import initialize_resources, shared_resources

_RNG = np.random.RandomState(7)
Y = _RNG.randint(0, 3, 300)
X = (np.array([[0, 0, 0, 1], [4, 0, 0, 1], [0, 4, 0, 1]])[Y] + _RNG.rand(300, 4)).astype(np.float32)


def _params(**given: Any) -> Any:
    known = {"num_classes": 3, "num_features": 4, "num_trees": 2, "split_after_samples": 40}
    return ForestHParams(**{**known, "base_random_seed": 5, **given}).fill()


def _begin(sess: tf.Session) -> None:
    sess.run([tf.global_variables_initializer(), initialize_resources(shared_resources())])


def _trained(params: Any, steps: int = 6, x: Any = X, y: Any = Y, **more: Any) -> Any:
    """The forest's graphs after some steps, with the session."""
    forest = RandomForestGraphs(params)
    step = forest.training_graph(x, y, **more)
    sess = tf.Session()
    _begin(sess)
    for _ in range(steps):
        sess.run(step)
    return forest, sess


def _accuracy(forest: Any, sess: tf.Session, x: Any = X) -> float:
    return float((sess.run(forest.inference_graph(x)[0]).argmax(1) == Y).mean())


def test_a_forest_learns_classes_and_says_what_it_looked_at() -> None:
    forest, sess = _trained(_params(num_trees=4))
    predictions, _, variance = sess.run(forest.inference_graph(X))
    assert (predictions.argmax(1) == Y).mean() > 0.95
    np.testing.assert_allclose(predictions.sum(1), 1, rtol=1e-5)
    assert variance.shape == predictions.shape
    importances = sess.run(forest.feature_importances())
    assert importances.sum() == pytest.approx(1)
    assert importances[:2].sum() > importances[2:].sum()
    size = sess.run([forest.average_size(), forest.training_loss(None, None)])
    assert size[0] == -size[1] > 3


@pytest.mark.parametrize("name", ["all_sparse", "all_dense"])
@pytest.mark.parametrize("split", ["less", "less_or_equal"])
def test_the_same_seed_grows_the_same_trees(name: str, split: str) -> None:
    params = {"model_name": name, "split_name": split}
    first, sess = _trained(_params(**params))
    trees = [tree.tree for tree in first.variables.variables]
    with tf.Graph().as_default():
        second, other = _trained(_params(**params))
        found = other.run(second.inference_graph(X)[0])
    np.testing.assert_array_equal(sess.run(first.inference_graph(X)[0]), found)
    assert len(trees) == 2


def test_regression_predicts_means() -> None:
    targets = (3 * Y).astype(np.float32)
    params = _params(num_classes=1, regression=True, num_trees=4)
    forest, sess = _trained(params, steps=12, y=targets)
    found = sess.run(forest.inference_graph(X)[0])
    assert found.shape == (300, 1)
    assert np.abs(found[:, 0] - targets).mean() < 0.5


def test_sparse_features_and_categories() -> None:
    rows = np.repeat(np.arange(300), 2)
    columns = np.stack([Y, np.full(300, 9)], 1).reshape(-1)
    indices = np.stack([rows, columns], 1)
    sparse = tf.SparseTensor(indices, tf.ones(600), [300, 10])
    forest, sess = _trained(_params(num_features=10, split_name="less"), x=sparse)
    assert _accuracy(forest, sess, sparse) == 1
    with tf.Graph().as_default():
        both = {"kind": tf.constant(Y[:, None].astype(np.int64)), "value": tf.constant(X[:, :1])}
        dense, _, spec = parsed_features(both)
        assert [column.original_type for column in spec.dense.cols] == [1, 0]
        assert dense.shape == [300, 2]
        forest, sess = _trained(_params(num_features=2), x=both)
        assert _accuracy(forest, sess, both) == 1


def test_words_are_categories() -> None:
    words = {"word": tf.constant(np.array(["ape", "bee", "cat"], object)[Y][:, None])}
    forest, sess = _trained(_params(num_features=1), x=words)
    assert _accuracy(forest, sess, words) == 1


def test_bags_of_examples_and_features() -> None:
    params = _params(bagging_fraction=0.6, feature_bagging_fraction=0.5, num_trees=8)
    assert all(len(each) == 2 for each in params.bagged_features)
    forest, sess = _trained(params, steps=10)
    assert _accuracy(forest, sess) > 0.6
    sparse = tf.SparseTensor([[0, 0]], [1.0], [1, 4])
    with pytest.raises(NotImplementedError, match="Bagging"):
        forest.training_graph(sparse, [0])


def test_weights_count() -> None:
    weights = np.where(Y == 2, 0, 1).astype(np.float32)
    forest, sess = _trained(_params(), input_weights=weights)
    assert sess.run(forest.inference_graph(X)[0])[:, 2].max() == 0


@pytest.mark.parametrize(
    "strategy",
    [
        {"split_pruning_name": name, "prune_every_samples": 15, "num_splits_to_consider": 8}
        for name in ("half", "quarter", "10_percent", "hoeffding")
    ]
    + [{"initialize_average_splits": True}, {"collate_examples": True}],
)
def test_strategies(strategy: dict[str, Any]) -> None:
    forest, sess = _trained(_params(num_trees=4, **strategy), steps=10)
    assert _accuracy(forest, sess) > 0.9


@pytest.mark.parametrize("name", ["hoeffding", "bootstrap"])
def test_leaves_that_are_sure_split_early(tmp_path: Path, name: str) -> None:
    asked = {"split_after_samples": 10**6, "early_finish_check_every_samples": 20}
    forest, sess = _trained(_params(**asked))
    assert sess.run(forest.average_size()) == 1
    more = tmp_path / "params.txt"
    more.write_text("min_split_samples { constant_value: 20 }")
    with tf.Graph().as_default():
        params = _params(**asked, split_finish_name=name, param_file=str(more))
        forest, sess = _trained(params)
        assert sess.run(forest.average_size()) > 1


def test_trees_and_counts_are_saved_and_restored(tmp_path: Path) -> None:
    forest, sess = _trained(_params(checkpoint_stats=True), steps=3)
    found = forest.inference_graph(X[:5])[0]
    texts = [each.specs[0].tensor for each in tf.get_collection("saveable_objects")]
    saver = tf.train.Saver()
    path = saver.save(sess, str(tmp_path / "forest"))
    kept = sess.run([found, texts])
    with tf.Session() as other:
        saver.restore(other, path)
        again = other.run([found, texts])
    np.testing.assert_array_equal(kept[0], again[0])
    assert kept[1] == again[1]
    stats = [messages.FertileStats.FromString(text) for text in kept[1][::2]]
    assert any(slot.candidates for each in stats for slot in each.node_to_slot)


@pytest.mark.parametrize("regression", [False, True])
def test_counts_that_were_restored_go_on_as_they_were(tmp_path: Path, regression: bool) -> None:
    params = _params(
        checkpoint_stats=True, regression=regression, num_classes=1 if regression else 3
    )
    forest, sess = _trained(params, steps=2)
    step = forest.training_graph(X, Y)
    found, saver = forest.inference_graph(X)[0], tf.train.Saver()
    path = saver.save(sess, str(tmp_path / "forest"))
    with tf.Session() as other:
        saver.restore(other, path)
        for each in (sess, other):
            each.run(step)
        np.testing.assert_array_equal(sess.run(found), other.run(found))


def test_a_path_leads_from_the_root_to_the_leaf() -> None:
    forest, sess = _trained(_params(num_trees=1, inference_tree_paths=True))
    predictions, paths, _ = sess.run(forest.inference_graph(X[:4]))
    assert paths.shape == (4, 1)
    for row, text, predicted in zip(X[:4], paths[:, 0], predictions, strict=True):
        *inner, last = messages.TreePath.FromString(text).nodes_visited
        for node, after in zip(inner, [*inner[1:], last], strict=True):
            test = node.binary_node.inequality_left_child_test
            left = row[int(test.feature_id.id.value)] <= test.threshold.float_value
            child = node.binary_node.left_child_id if left else node.binary_node.right_child_id
            assert child.value == after.node_id.value
        counts = np.array([value.float_value for value in last.leaf.vector.value])
        np.testing.assert_allclose(counts / counts.sum(), predicted, rtol=1e-6)


def test_trees_that_were_given_predict() -> None:
    model = messages.Model()
    root, left, right = (model.decision_tree.nodes.add() for _ in range(3))
    test = root.binary_node.inequality_left_child_test
    test.feature_id.id.value, test.threshold.float_value = "1", 2.0
    root.binary_node.left_child_id.value, root.binary_node.right_child_id.value = 1, 2
    for leaf, values in ((left, (3.0, 1.0)), (right, (0.0, 5.0))):
        for value in values:
            leaf.leaf.vector.value.add().float_value = value
    params = _params(num_classes=2, num_trees=1)
    forest = RandomForestGraphs(params, [model.SerializeToString()])
    found = forest.inference_graph([[0.0, 2.0], [0.0, 2.5]])[0]
    with tf.Session() as sess:
        _begin(sess)
        np.testing.assert_array_equal(sess.run(found), [[0.75, 0.25], [0, 1]])
    root.binary_node.left_child_id.value = 0
    with tf.Graph().as_default(), tf.Session() as sess:
        RandomForestGraphs(_params(num_classes=2, num_trees=1), [model.SerializeToString()])
        with pytest.raises(tf.errors.InvalidArgumentError, match="cannot lead"):
            _begin(sess)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"num_classes": 2}, tf.errors.InvalidArgumentError, "is num_classes right"),
        ({"model_name": "sparse_then_dense"}, tf.errors.UnimplementedError, "all_dense"),
        ({"split_finish_name": "hoeffding"}, tf.errors.InvalidArgumentError, "min_split_samples"),
    ],
)
def test_what_a_forest_refuses(given: dict[str, Any], error: type, said: str) -> None:
    with pytest.raises(error, match=said):
        _trained(_params(**given))


def test_what_parameters_refuse() -> None:
    with pytest.raises(ValueError, match="depends on depth"):
        _params(split_after_samples="linear { slope: 2 }", split_pruning_name="half")
    with pytest.raises(AttributeError, match="num_classes"):
        ForestHParams(num_features=3).fill()


def test_parameters_that_depend_on_depth() -> None:
    text = "threshold { on_value: 20 off_value: 100 threshold: 1 }"
    forest, sess = _trained(_params(num_trees=1, split_after_samples=text), steps=4)
    assert sess.run(forest.average_size()) >= 5
