"""Gathers, scatters, embeddings, labels, sets and order."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetch, feeds)


def names(graph):
    return [op.name for op in graph.get_operations()]


@pytest.mark.filterwarnings("ignore:Converting sparse IndexedSlices")
def test_the_gradient_of_a_gather_is_slices():
    params = tf.placeholder(tf.float32, [None, 2])
    (g,) = tf.gradients(tf.gather(params, [[2, 0], [2, 1]]), params)
    assert isinstance(g, tf.IndexedSlices)
    assert g.values.shape.as_list() == [4, 2]
    dense = run(tf.convert_to_tensor(g), {params: np.zeros((4, 2))})
    assert dense.tolist() == [[1, 1], [1, 1], [2, 2], [0, 0]]


def test_gather_along_an_axis_that_is_fed():
    params, axis = tf.placeholder(tf.float32), tf.placeholder(tf.int32, [])
    out = tf.gather(params, [1, 1], axis=axis)
    (g,) = tf.gradients(out, params)
    for at, want in ((0, [[0, 0], [2, 2]]), (1, [[0, 2], [0, 2]]), (-1, [[0, 2], [0, 2]])):
        assert run(g, {params: np.ones((2, 2)), axis: at}).tolist() == want


def test_gather_out_of_range_names_the_index():
    p = tf.placeholder(tf.int32)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"indices\[0\] = 7 is not in \[0, 3\)"
    ):
        run(tf.gather(tf.zeros([3]), p), {p: [7]})
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"indices\[1,0\] = -1 is not in \[0, 3\)"
    ):
        run(tf.gather(tf.zeros([3]), p), {p: [[0], [-1]]})


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, object])
def test_gather_one_slice(axis, dtype):
    params = np.arange(24).reshape(2, 3, 4).astype(dtype)
    if dtype is object:
        params = np.vectorize(lambda i: b"%d" % i, otypes=[object])(params)
    i = tf.placeholder(tf.int64, [])
    out = tf.gather(tf.constant(params), i, axis=axis)
    # Both into a planned buffer and into one that the caller keeps.
    both = [out, tf.identity(tf.concat([out, out], 0)[: out.shape[0]])]
    for at in range(params.shape[axis]):
        for found in run(both, {i: at}):
            np.testing.assert_array_equal(found, np.take(params, at, axis))
    for at in (-1, params.shape[axis]):
        want = rf"indices = {at} is not in \[0, {params.shape[axis]}\)"
        with pytest.raises(tf.errors.InvalidArgumentError, match=want):
            run(out, {i: at})


def test_gather_one_element():
    i = tf.placeholder(tf.int32, [])
    for params in (np.arange(3.0), np.array([b"a", b"b", b"c"], object)):
        assert run(tf.gather(tf.constant(params), i), {i: 1}) == params[1]


@pytest.mark.parametrize("axis", [1, 2])
def test_batches_of_nothing_are_gathered_from(axis):
    params = tf.zeros([2, 0, 3] if axis == 2 else [2, 3, 0])
    found = run(tf.gather(params, [[2, 1], [0, 0]], axis=axis, batch_dims=1))
    assert found.shape == ((2, 0, 2) if axis == 2 else (2, 2, 0))
    assert run(tf.gather(tf.zeros([0, 3, 2]), np.zeros((0, 4), np.int32), batch_dims=1)).shape == (
        0, 4, 2,
    )  # fmt: skip


def test_batch_gathers():
    params = tf.constant([[1, 2, 3], [4, 5, 6]])
    assert run(tf.batch_gather(params, [[2], [0]])).tolist() == [[3], [4]]
    assert run(tf.gather(params, [[2, 1], [0, 0]], batch_dims=1)).tolist() == [[3, 2], [4, 4]]
    assert run(tf.gather_nd(params, [[[2]], [[0]]], batch_dims=1)).tolist() == [[3], [4]]
    assert run(tf.gather_nd(params, [[[2]], [[0]]], batch_dims=tf.constant([1]))).tolist() == [
        [3],
        [4],
    ]
    assert tf.gather(tf.placeholder(tf.int32, [None, 5, 2]), tf.zeros([3, 4], tf.int32),
                     batch_dims=1).shape.as_list() == [3, 4, 2]  # fmt: skip


def test_scatters_and_their_gradients():
    updates = tf.constant([1.0, 2.0, 3.0])
    out = tf.scatter_nd([[1], [3], [1]], updates, [4])
    (g,) = tf.gradients(out * [1.0, 2.0, 3.0, 4.0], updates)
    assert run(out).tolist() == [0, 4, 0, 2] and run(g).tolist() == [2, 4, 2]
    t = tf.ones([3])
    assert run(tf.tensor_scatter_sub(t, [[0], [0]], [1.0, 2.0])).tolist() == [-2, 1, 1]
    assert run(tf.tensor_scatter_update([b"a", b"b"], [[1]], [b"c"])).tolist() == [b"a", b"c"]
    new = tf.constant([5.0])
    grads = tf.gradients(tf.tensor_scatter_update(t, [[1]], new) * [1.0, 2.0, 3.0], [t, new])
    assert [g.tolist() for g in run(grads)] == [[1, 0, 3], [2]]


def test_where():
    assert run(tf.where([[True, False], [False, True]])).tolist() == [[0, 0], [1, 1]]
    assert tf.where(tf.placeholder(tf.bool, [None, 3])).shape.as_list() == [None, 2]
    assert run(tf.where([True, False], [1, 2], [3, 4])).tolist() == [1, 4]
    assert run(tf.where([True, False], [[1, 1], [2, 2]], [[3, 3], [4, 4]])).tolist() == [
        [1, 1],
        [4, 4],
    ]
    assert run(tf.where_v2([[True], [False]], 1, [3, 4])).tolist() == [[1, 1], [3, 4]]
    with pytest.raises(ValueError, match="must both be non-None"):
        tf.where([True], x=[1])


def test_boolean_mask():
    x = tf.placeholder(tf.float32, [None, 2])
    out = tf.boolean_mask(x, tf.placeholder(tf.bool, [None]))
    assert out.shape.as_list() == [None, 2]
    assert run(tf.boolean_mask([[1, 2], [3, 4]], [[True, False], [True, True]])).tolist() == [
        1,
        3,
        4,
    ]
    assert run(tf.boolean_mask([[1, 2], [3, 4]], [False, True], axis=1)).tolist() == [[2], [4]]
    with pytest.raises(ValueError, match="cannot be scalar"):
        tf.boolean_mask(x, True)
    with pytest.raises(ValueError, match="are incompatible"):
        tf.boolean_mask(tf.zeros([2]), [True])
    with pytest.raises(ValueError, match="Number of mask dimensions"):
        tf.boolean_mask(x, tf.placeholder(tf.bool))


def test_one_hot(graph):
    out = tf.one_hot([0, 2], 3)
    assert out.dtype == tf.float32 and out.shape.as_list() == [2, 3]
    assert set(names(graph)) == {
        "one_hot/on_value", "one_hot/off_value", "one_hot/indices", "one_hot/depth", "one_hot",
    }  # fmt: skip
    assert tf.one_hot([0], 2, on_value=5).dtype == tf.int32
    assert run(tf.one_hot([1], 2, dtype=tf.bool)).tolist() == [[False, True]]
    assert run(tf.one_hot([1], 2, "yes", "no")).tolist() == [[b"no", b"yes"]]
    with pytest.raises(TypeError, match="does not match dtype parameter"):
        tf.one_hot([0], 2, on_value=tf.constant(1), dtype=tf.float32)


def test_embedding_lookup_over_partitions():
    whole = np.arange(10, dtype=np.float32).reshape(5, 2)
    mod = [tf.constant(whole[0::2]), tf.constant(whole[1::2])]
    div = [tf.constant(whole[:3]), tf.constant(whole[3:])]
    ids = tf.constant([[4, 0], [1, 3]])
    for parts, strategy in ((mod, "mod"), (div, "div"), (tf.constant(whole), "mod")):
        out = tf.nn.embedding_lookup(parts, ids, strategy)
        assert out.shape.as_list() == [2, 2, 2]
        assert run(out).tolist() == whole[[[4, 0], [1, 3]]].tolist()
    with pytest.raises(ValueError, match="Unrecognized partition strategy"):
        tf.nn.embedding_lookup(mod, ids, "hash")
    with pytest.raises(ValueError, match="Need to specify params"):
        tf.nn.embedding_lookup([], ids)


@pytest.mark.parametrize(("combiner", "want"), [("sum", [[6.0], [9.0]]), ("mean", [[2.0], [3.0]]),
                                                ("sqrtn", [[6 / 5**0.5], [3.0]])])  # fmt: skip
def test_embedding_lookup_sparse_with_weights(combiner, want):
    table = tf.constant([[0.0], [2.0], [2.0], [3.0]])
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([1, 2, 3]), [2, 2])
    weights = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1.0, 2.0, 3.0], [2, 2])
    out = tf.nn.embedding_lookup_sparse(table, ids, weights, combiner=combiner)
    assert np.allclose(run(out), want)


@pytest.mark.parametrize("combiner", ["sum", "mean"])
def test_weights_of_other_entries_than_the_ids_are_refused(combiner):
    ids = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], tf.constant([0, 2, 1], tf.int64), [2, 2])
    weights = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [1, 1]], [0.5, 11.0, 1.0, 0.1], [2, 2])
    table = tf.constant([[1.0], [2.0], [3.0]])
    with pytest.raises(ValueError, match=r"Shapes \(3,\) and \(4,\) are incompatible"):
        tf.nn.embedding_lookup_sparse(table, ids, weights, combiner=combiner)
    with pytest.raises(ValueError, match="Dimensions 3 and 4 are not compatible"):
        tf.nn.safe_embedding_lookup_sparse(table, ids, weights, combiner=combiner)


def test_embedding_lookup_sparse_without_weights():
    table = tf.constant([[0.0], [2.0], [4.0]])
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([1, 2, 1]), [2, 2])
    assert run(tf.nn.embedding_lookup_sparse(table, ids, None, combiner="mean")).tolist() == [
        [3],
        [2],
    ]
    with pytest.raises(TypeError, match="sp_ids must be SparseTensor"):
        tf.nn.embedding_lookup_sparse(table, [1], None, combiner="sum")


def test_partition_and_stitch():
    data = tf.constant([1.0, 2.0, 3.0])
    parts = tf.dynamic_partition(data, [1, 0, 1], 2)
    (g,) = tf.gradients([parts[0] * 2.0, parts[1] * 3.0], data)
    assert run(g).tolist() == [3, 2, 3]
    places = tf.dynamic_partition(tf.range(3), [1, 0, 1], 2)
    assert run(tf.dynamic_stitch(places, parts)).tolist() == [1, 2, 3]
    assert tf.dynamic_stitch([[0], [2]], [[1], [2]]).shape.as_list() == [3]


def test_sets():
    y, idx, count = tf.unique_with_counts([5, 3, 5])
    assert [v.tolist() for v in run([y, idx, count])] == [[5, 3], [0, 1, 0], [2, 1]]
    assert tf.unique([1], out_idx=tf.int64).idx.dtype == tf.int64
    assert run(tf.setdiff1d([b"a", b"b", b"c"], [b"b"]).out).tolist() == [b"a", b"c"]
    assert run(tf.invert_permutation([2, 0, 1])).tolist() == [1, 2, 0]
    assert run(tf.sequence_mask([1, 3], dtype=tf.int32)).tolist() == [[1, 0, 0], [1, 1, 1]]
    assert tf.sequence_mask(tf.placeholder(tf.int32, [2]), 4).shape.as_list() == [2, 4]
    with pytest.raises(ValueError, match="maxlen must be scalar"):
        tf.sequence_mask([1], [2])
    with pytest.raises(LookupError, match="No gradient defined"):
        x = tf.constant([1.0])
        tf.gradients(tf.unique(x).y, x)


def test_order():
    values, indices = tf.nn.top_k([[1.0, 3.0, 3.0, 2.0]], 3)
    assert [v.tolist() for v in run([values, indices])] == [[[3, 3, 2]], [[1, 2, 3]]]
    assert run(tf.sort([3, 1, 2])).tolist() == [1, 2, 3]
    low = np.iinfo(np.int32).min
    assert run(tf.sort([0, low, 5])).tolist() == [low, 0, 5]
    assert run(tf.sort(tf.constant([3, 250, 0], tf.uint8))).tolist() == [0, 3, 250]
    assert run(tf.argsort([[3, 1], [2, 4]], axis=0)).tolist() == [[1, 0], [0, 1]]
    x = tf.placeholder(tf.float32)
    assert run(tf.sort(x, axis=0, direction="DESCENDING"), {x: [[1.0], [2.0]]}).tolist() == [
        [2],
        [1],
    ]
    with pytest.raises(ValueError, match="should be one of"):
        tf.sort([1], direction="UP")
    with pytest.raises(ValueError, match="k = 5 but is 3"):
        tf.nn.top_k(tf.zeros([3]), 5)
    assert run(tf.searchsorted([1, 3, 3, 5], [3, 6], side="right")).tolist() == [3, 4]


def test_labels_out_of_range_are_named_by_their_place():
    invalid = tf.errors.InvalidArgumentError
    with pytest.raises(invalid, match=r"partitions\[1,0\] = 17 is not in \[0, 7\)"):
        run(tf.dynamic_partition(np.zeros([2, 2]), [[0, 0], [17, 0]], 7))
    with pytest.raises(invalid, match=r"partitions = 17 is not in \[0, 7\)"):
        run(tf.dynamic_partition(np.zeros(5), 17, 7))


def test_batches_of_coordinates_whose_rank_is_known_late():
    params = np.arange(12.0).reshape(2, 3, 2)
    indices = tf.placeholder(tf.int32)
    found = tf.gather_nd(params, indices, batch_dims=1)
    assert found.shape.ndims is None
    with tf.Session() as session:
        for given in ([[2], [0]], [[[2, 1]], [[0, 1]]]):
            expected = [[params[b][tuple(i)] for i in np.reshape(rows, (-1, np.shape(rows)[-1]))]
                        for b, rows in enumerate(given)]  # fmt: skip
            got = session.run(found, {indices: given})
            np.testing.assert_array_equal(got.ravel(), np.ravel(expected))
