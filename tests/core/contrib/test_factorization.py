"""`tf.contrib.factorization`: clusters in every way, beside NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf

factorization = tf.contrib.factorization
RNG = np.random.RandomState(0)
CENTERS = np.array([[1.0, 1.0], [9.0, 1.0], [1.0, 9.0]])
KINDS = np.arange(60) % 3
POINTS = (CENTERS[KINDS] + 0.3 * RNG.randn(60, 2)).astype(np.float32)
MEANS = np.stack([POINTS[KINDS == k].mean(0) for k in range(3)])


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def trained(inputs: Any, steps: int = 6, **kwargs: Any) -> Any:
    """Centers, distances and indices after some steps."""
    graph = factorization.KMeans(inputs, 3, random_seed=4, **kwargs).training_graph()
    all_scores, indices, scores, chosen, begin, step = graph
    centers = next(v for v in tf.global_variables() if v.op.name == "clusters")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(6):
            if not sess.run(chosen):
                sess.run(begin)
        for _ in range(steps):
            sess.run(step)
        return sess.run([centers, all_scores, scores, indices])


def sorted_rows(matrix: Any) -> Any:
    return matrix[np.lexsort((matrix[:, 0], matrix[:, 1]))]


WAYS: dict[str, dict[str, Any]] = {
    "kmeans++": {"initial_clusters": "kmeans_plus_plus"},
    "kmc2": {"initial_clusters": "kmc2", "kmc2_chain_length": 20},
    "given": {"initial_clusters": POINTS[:3]},
    "function": {"initial_clusters": lambda inputs, k: inputs[0][:k]},
    "batches": {"initial_clusters": POINTS[:3], "use_mini_batch": True},
    "iterations": {
        "initial_clusters": POINTS[:3], "use_mini_batch": True,
        "mini_batch_steps_per_iteration": 2,
    },
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_centers_are_the_means_of_their_points(way: str) -> None:
    centers, (distances,), (nearest,), (indices,) = trained(tf.constant(POINTS), **WAYS[way])
    np.testing.assert_allclose(sorted_rows(centers), sorted_rows(MEANS), atol=0.1)
    squares = ((POINTS[:, None] - centers) ** 2).sum(2)
    np.testing.assert_allclose(distances, squares, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(indices, squares.argmin(1))
    np.testing.assert_allclose(nearest, squares.min(1), rtol=1e-3, atol=1e-3)


def test_parts_of_the_data_are_clustered_together() -> None:
    parts = [tf.constant(POINTS[:20]), tf.constant(POINTS[20:])]
    centers, distances, _, indices = trained(parts, initial_clusters="kmeans_plus_plus")
    assert [len(part) for part in indices] == [20, 40]
    assert [part.shape for part in distances] == [(20, 3), (40, 3)]
    np.testing.assert_allclose(sorted_rows(centers), sorted_rows(MEANS), atol=0.1)


def test_too_few_points_for_one_batch_are_taken_whole() -> None:
    batch = tf.placeholder_with_default(POINTS[:2], [None, 2])
    graph = factorization.KMeans(batch, 3).training_graph()
    chosen, begin = graph[3:5]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(begin)
        assert not sess.run(chosen)
        sess.run(begin)
        assert sess.run(chosen)


@pytest.mark.parametrize("batches", [False, True])
def test_cosine_distances_are_of_directions(batches: bool) -> None:
    way = {"distance_metric": "cosine", "use_mini_batch": batches, "initial_clusters": POINTS[:3]}
    centers, (distances,), (nearest,), (indices,) = trained(tf.constant(POINTS), **way)
    unit = POINTS / np.linalg.norm(POINTS, axis=1, keepdims=True)
    centers /= np.linalg.norm(centers, axis=1, keepdims=True)
    np.testing.assert_allclose(distances, 1 - unit @ centers.T, atol=1e-5)
    np.testing.assert_array_equal(indices, distances.argmin(1))
    np.testing.assert_allclose(nearest, distances.min(1), atol=1e-5)


def test_bad_arguments_have_tensorflows_words() -> None:
    with pytest.raises(ValueError, match="Unsupported initialization algorithm 'best'"):
        factorization.KMeans(POINTS, 3, initial_clusters="best")
    with pytest.raises(ValueError, match="Unsupported distance metric 'l1'"):
        factorization.KMeans(POINTS, 3, distance_metric="l1")
    with pytest.raises(ValueError, match="Invalid covariance type: round"):
        factorization.GmmAlgorithm([tf.constant(POINTS)], 3, covariance_type="round")


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_a_step_of_a_mixture_is_expectation_and_maximization(kind: str) -> None:
    points = POINTS.astype(np.float64)
    means = points[:3]
    spread = np.cov(points.T) + 1e-3 * np.eye(2)
    spread = spread if kind == "full" else np.diag(np.diag(spread))
    away = points[:, None] - means
    inner = np.linalg.inv(spread + 1e-3 * np.eye(2))
    size = np.linalg.slogdet(spread + 1e-3 * np.eye(2))[1] + 2 * np.log(2 * np.pi)
    logs = -0.5 * (np.einsum("nki,ij,nkj->nk", away, inner, away) + size) - np.log(3)
    each = np.logaddexp.reduce(logs, 1, keepdims=True)
    w = np.exp(logs - each)
    owned = w.sum(0)
    new = w.T @ points / owned[:, None]
    covs = np.einsum("nk,ni,nj->kij", w, points, points) / owned[:, None, None]
    covs += 1e-3 * np.eye(2) - np.einsum("ki,kj->kij", new, new)
    graph = factorization.gmm(tf.constant(POINTS), POINTS[:3], 3, 1, kind)
    loss, scores, assigned, step, begin, begun = graph
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert not sess.run(begun)
        sess.run(begin)
        assert sess.run(begun)
        found = sess.run([loss, scores, assigned[0][0]])
        np.testing.assert_allclose(found[0], np.logaddexp.reduce(each.ravel()), rtol=1e-4)
        np.testing.assert_array_equal(found[2], w.argmax(1))
        sess.run(step)
        values = {v.op.name: sess.run(v) for v in tf.global_variables()}
    np.testing.assert_allclose(values["alphas"], owned / 60, rtol=1e-4)
    np.testing.assert_allclose(values["clusters"][:, 0], new, rtol=1e-3)
    wanted = covs if kind == "full" else np.diagonal(covs, axis1=1, axis2=2)
    np.testing.assert_allclose(values["clusters_covs"], wanted, rtol=1e-2, atol=1e-2)


def test_estimators_of_both_kinds(tmp_path: Any) -> None:
    def data() -> Any:
        return tf.data.Dataset.from_tensors(POINTS).repeat()

    def once() -> Any:
        return tf.data.Dataset.from_tensors(POINTS)

    kmeans = factorization.KMeansClustering(
        3, str(tmp_path / "kmeans"), initial_clusters=POINTS[:3], use_mini_batch=False
    )
    kmeans.train(data, steps=2)
    np.testing.assert_allclose(kmeans.cluster_centers(), MEANS, atol=1e-3)
    assert list(kmeans.predict_cluster_index(once)) == KINDS.tolist()
    squares = ((POINTS[:, None] - MEANS) ** 2).sum(2)
    np.testing.assert_allclose(list(kmeans.transform(once)), squares, rtol=1e-2, atol=1e-2)


def test_a_mixture_is_an_estimator_of_contrib_learn(tmp_path: Any) -> None:
    def data() -> Any:
        return tf.constant(POINTS), None

    mixture = factorization.GMM(3, str(tmp_path), initial_clusters=POINTS[:3])
    assert isinstance(mixture, tf.contrib.learn.Estimator)
    mixture.fit(input_fn=data, steps=6)
    np.testing.assert_allclose(mixture.clusters(), MEANS, atol=1e-2)
    np.testing.assert_allclose(mixture.weights(), [1 / 3] * 3, atol=1e-3)
    assert mixture.covariances().shape == (3, 2, 2)
    # Input that nothing ends is asked once.
    assert list(mixture.predict_assignments(data)) == KINDS.tolist()
    once, twice = (mixture.evaluate(input_fn=data, steps=n) for n in (1, 2))
    np.testing.assert_allclose(twice[mixture.LOG_LIKELIHOOD], 2 * once[mixture.LOG_LIKELIHOOD])
    scores = once[mixture.SCORES]
    np.testing.assert_allclose(mixture.score(data, steps=1), np.log(np.exp(scores).sum()))


def test_a_mixture_that_is_to_train_no_steps_has_its_beginning(tmp_path: Any) -> None:
    mixture = factorization.GMM(3, str(tmp_path), initial_clusters=POINTS[:3])
    mixture.fit(input_fn=lambda: (tf.constant(POINTS), None), steps=0)
    assert mixture.clusters().shape == (3, 2)
    assert mixture.weights().shape == (3,)
