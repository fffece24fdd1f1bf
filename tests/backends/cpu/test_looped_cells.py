"""Cells of sparse and ragged tensors are those of NumPy where generated loops find them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.ops.ragged_padding import to_tensor_op
from tests.backends.cpu.looped import given

Both = Callable[..., Any]
RNG = np.random.default_rng(17)


def _same(pair: Any) -> None:
    for found, wanted in zip(*pair, strict=True):
        assert found.dtype == wanted.dtype and found.shape == wanted.shape
        np.testing.assert_array_equal(found, wanted)


def _cells(rank: int, count: int, size: int) -> Any:
    """Different cells in order, of which many rows begin alike."""
    rows = RNG.integers(0, size, (count, rank))
    rows[:, : rank - rank // 3] = RNG.integers(0, 2, (count, 1))
    return np.unique(rows, axis=0)


def _sparse(cells: Any, size: int, dtype: Any) -> Any:
    values = RNG.integers(-3, 4, len(cells)).astype(dtype)
    return tf.SparseTensor(given(cells), given(values), [size] * cells.shape[1])


# ---------------------------------------------------------------- two sparse tensors
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.complex64])
@pytest.mark.parametrize("rank", [1, 2, 7, 8, 21])
def test_sums(both: Both, rank: int, dtype: Any) -> None:
    parts = [_cells(rank, 90, 60) for _ in range(2)]

    def build() -> Any:
        a, b = (_sparse(cells, 60, dtype) for cells in parts)
        total = tf.sparse.add(a, b, threshold=np.array(2, np.real(dtype()).dtype))
        grads = []
        if dtype is not np.int32:
            grads = tf.gradients(total.values, [a.values, b.values], [total.values])
        return [total.indices, total.values, total.dense_shape, *grads]

    _same(both(build, "_merge", *([] if dtype is np.int32 else ["_find"])))


@pytest.mark.parametrize("rank", [1, 3])
def test_repeated_cells_meet_in_turn(both: Both, rank: int) -> None:
    a = _cells(rank, 20, 30)
    a = np.repeat(a, RNG.integers(1, 4, len(a)), 0)
    b = np.concatenate([a[::2], a[5:7]])
    b = b[np.lexsort(b.T[::-1])]

    def build() -> Any:
        total = tf.sparse.add(_sparse(a, 30, np.float32), _sparse(b, 30, np.float32))
        return [total.indices, total.values]

    _same(both(build, "_merge"))


@pytest.mark.parametrize("op", [tf.sparse.maximum, tf.sparse.minimum])
def test_extremes(both: Both, op: Any) -> None:
    parts = [_cells(4, 80, 9), _cells(4, 50, 9)]

    def build() -> Any:
        found = op(*(_sparse(cells, 9, np.float64) for cells in parts))
        return [found.indices, found.values]

    _same(both(build, "_merge"))


def test_what_is_in_no_order_is_put_into_one(both: Both) -> None:
    a, b = _cells(2, 60, 20), _cells(2, 60, 20)[::-1].copy()

    def build() -> Any:
        total = tf.sparse.add(_sparse(a, 20, np.float32), _sparse(b, 20, np.float32))
        return [total.indices, total.values]

    pair = both(build, "_compared")
    _same(pair)
    assert (np.diff(pair[0][0] @ [20, 1]) > 0).all()


# ---------------------------------------------------------------- dense form, parts
@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("rank", [1, 3])
def test_dense_tensors(both: Both, rank: int, kind: Any) -> None:
    cells = _cells(rank, 40, 12).astype(kind)
    shape = np.full(rank, 12, kind)

    def build() -> Any:
        numbers = tf.sparse_to_dense(given(cells), shape, given(np.arange(len(cells)) * 1.5), 7.0)
        texts = tf.sparse_to_dense(given(cells), shape, "x", "")
        back = tf.sparse_to_dense(
            given(np.concatenate([cells, cells[::-2]])), shape,
            given(np.arange(len(cells) + len(cells[::-2]))), validate_indices=False,
        )  # fmt: skip
        return [numbers, texts, back]

    _same(both(build, "_place"))


@pytest.mark.parametrize("wrong", ["outside", "order", "twice"])
def test_wrong_cells_are_told(both: Both, wrong: str) -> None:
    cells = np.array([[0, 1], [2, 3], [4, 0]])
    cells[1] = {"outside": [2, 5], "order": [0, 0], "twice": [0, 1]}[wrong]
    said = {"outside": "out of bounds", "order": "out of order", "twice": "is repeated"}[wrong]

    def build() -> Any:
        return tf.sparse_to_dense(given(cells), [5, 5], 1.0)

    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        both(build)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("count", [1, 3, 11])
def test_parts(both: Both, axis: int, count: int) -> None:
    cells = _cells(3, 70, 11)
    shuffled = cells[RNG.permutation(len(cells))]

    def build() -> Any:
        found = [
            part
            for order in (cells, shuffled)
            for part in tf.sparse.split(
                sp_input=_sparse(order, 11, np.float32), num_split=count, axis=axis
            )
        ]
        return [x for part in found for x in (part.indices, part.values, part.dense_shape)]

    _same(both(build, "_count", "_part"))


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_rows_without_cells(both: Both, rank: int, dtype: Any) -> None:
    cells = _cells(rank, 60, 80)
    shuffled = cells[RNG.permutation(len(cells))]

    def build() -> Any:
        found = []
        for order in (cells, shuffled):
            filled, empty = tf.sparse.fill_empty_rows(_sparse(order, 80, dtype), dtype(9))
            found += [filled.indices, filled.values, empty]
        texts = tf.SparseTensor(given(cells), tf.as_string(given(cells[:, 0])), [80] * rank)
        return [*found, tf.sparse.fill_empty_rows(texts, "none")[0].values]

    _same(both(build, "_gather"))


# ---------------------------------------------------------------- ragged
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_ranges(both: Both, dtype: Any) -> None:
    starts, limits = (RNG.integers(-40, 40, 300).astype(dtype) for _ in range(2))
    steps = RNG.choice([-3, -1, 1, 2], 300).astype(dtype)
    if dtype is not np.int32:
        steps = steps * dtype(0.1)

    def build() -> Any:
        found = [
            tf.ragged.range(given(starts), given(limits), given(steps)),
            tf.ragged.range(given(starts)),
        ]
        return [x for r in found for x in (r.row_splits, r.values)]

    _same(both(build, "_fill"))


@pytest.mark.parametrize("value", [0.0, np.nan, 1e-30])
def test_ranges_without_end_are_told(both: Both, value: float) -> None:
    steps = np.array([1, value, 1], np.float32)

    def build() -> Any:
        return tf.ragged.range(given(np.zeros(3, np.float32)), 9.0, given(steps)).values

    with pytest.raises(tf.errors.InvalidArgumentError):
        both(build)


_OUTER, _INNER = np.array([0, 2, 2, 5, 6]), np.array([0, 3, 3, 4, 9, 9, 11])


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex128, np.bool_])
@pytest.mark.parametrize("inner", [(), (3,), (2, 2)])
@pytest.mark.parametrize("shape", [None, [3, 2, 3], [6, None, 9], [None, 4, None]])
def test_padded_tensors(both: Both, dtype: Any, inner: Any, shape: Any) -> None:
    values = RNG.integers(0, 9, (11, *inner)).astype(dtype)
    default, ids = np.ones((), dtype), np.repeat([0, 2, 3], [4, 6, 1])
    size = -1 if shape is None else [-1 if n is None else n for n in (*shape, *inner)]
    by_splits, by_rows = ["ROW_SPLITS"] * 2, ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]

    def build() -> Any:
        data = given(values)
        splits, rows = [given(_OUTER), given(_INNER)], [np.int64(5), given(ids)]
        return [
            to_tensor_op(np.int64(size), data, default, splits, row_partition_types=by_splits),
            to_tensor_op(np.int64(-1), data, default, rows, row_partition_types=by_rows),
        ]

    _same(both(build, "_pad"))


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_coordinates(both: Both, kind: Any) -> None:
    splits = [s.astype(kind) for s in (_OUTER, _INNER)]

    def build() -> Any:
        found = []
        for nested in (splits, splits[1:]):
            ragged = tf.RaggedTensor.from_nested_row_splits(
                given(RNG.normal(size=11)), list(map(given, nested))
            )
            sparse = ragged.to_sparse()
            found += [sparse.indices, sparse.dense_shape]
        return found

    _same(both(build, "_coordinates"))


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.int16, np.int32])
def test_whole_quotients_are_cut_off(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row after the other, also where the same is divided twice, and below the least number."""
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    x = RNG.integers(0, 120, (5, 700)).astype(kind)
    rows = RNG.integers(1, 9, (40, 700)).astype(kind)
    if kind is not np.uint8:
        rows *= RNG.choice([-1, 1], rows.shape).astype(kind)
    x[:2, :9], ids = np.iinfo(kind).min, RNG.integers(0, 5, 40)
    wanted = x.astype(np.int64)
    for i, row in zip(ids, rows, strict=True):
        wanted[i] = np.trunc(wanted[i] / row).astype(np.int64).astype(kind)
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable(x, use_resource=False)
        session.run(variable.initializer)
        found = session.run(tf.scatter_div(variable, ids, rows))
    np.testing.assert_array_equal(found, wanted)
