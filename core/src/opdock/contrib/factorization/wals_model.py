"""Matrices of low rank that are near to a sparse one, by weighted alternating least squares."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import opdock as tf
from opdock.contrib.factorization.wals_ops import masked_matmul, wals_compute_partial_lhs_and_rhs

__all__ = ["WALSModel"]

_NO_WEIGHTS: Final = (
    "Invalid weight initialization argument. Must be one of these: None, a real non-negative real "
    "number, or a list of lists of non-negative real numbers (or equivalent iterables) "
    "corresponding to sharded factors."
)


class _Side(NamedTuple):
    """The rows of the matrix, or its columns: what is known of each of them."""

    total: int
    factors: list[Any]
    weights: list[Any] | None
    gramian: Any


class _Cached(NamedTuple):
    """A worker's copy of variables, the operation that makes it and the one that frees it."""

    values: Any
    fill: Any
    clear: Any


class WALSModel:
    """The graph of U and V with U V' near to a matrix A, most of whose entries are not observed.

    What is minimized is the sum over all entries of w (A - U V')^2, and `regularization` times the
    squares of U and V. An observed entry weighs `unobserved_weight` and the product of its row's
    and its column's weight; one that is not is 0, and weighs `unobserved_weight`. With one of the
    two matrices fixed, each row of the other is the solution of a small system of equations.

    A program runs `initialize_op`, then `worker_init`, and then by turns sweeps over all rows and
    over all columns. A sweep of rows runs `row_update_prep_gramian_op`, then
    `initialize_row_update_op`, then the update of `update_row_factors` until it has had each row.

    Args:
        input_rows: the number of rows of the matrix.
        input_cols: the number of its columns.
        n_components: the size of a factor.
        unobserved_weight: the weight of entries that are not observed.
        regularization: the weight of the factors' squares, or None for 0.
        row_init: the first factors of rows: "random", an array, one for each shard in a list, or
            a function that returns one of these.
        col_init: the same for columns.
        num_row_shards: the number of variables that hold the factors of rows.
        num_col_shards: the number of those for columns.
        row_weights: a number for all rows, lists of numbers by shard, or None: then all entries
            weigh `unobserved_weight`.
        col_weights: the same for columns.
        use_factors_weights_cache: whether workers copy factors and weights before a sweep.
        use_gramian_cache: whether they copy the products of all factors.
        use_scoped_vars: whether the variables have the names of scopes before their own.

    Raises:
        ValueError: weights are none of these, or given for one side only.
    """

    def __init__(
        self, input_rows: int, input_cols: int, n_components: int, unobserved_weight: float = 0.1,
        regularization: float | None = None, row_init: Any = "random", col_init: Any = "random",
        num_row_shards: int = 1, num_col_shards: int = 1, row_weights: Any = 1,
        col_weights: Any = 1, use_factors_weights_cache: bool = True,
        use_gramian_cache: bool = True, use_scoped_vars: bool = False,
    ) -> None:  # fmt: skip
        if (row_weights is None) != (col_weights is None):
            raise ValueError("row_weights and col_weights are either both None or both given")
        # TensorFlow's names of what programs read, though it is not public.
        self._input_rows, self._input_cols = input_rows, input_cols
        self._unobserved_weight = unobserved_weight
        self._regularization = regularization
        size = n_components

        def made(name: str, create: Callable[..., Any], *given: Any) -> Any:
            if not use_scoped_vars:
                return create(*given, name)
            with tf.name_scope(name):
                return create(*given, name)

        row_weights = made("row_weights", _weights, row_weights, input_rows, num_row_shards)
        col_weights = made("col_weights", _weights, col_weights, input_cols, num_col_shards)
        rows = made("row_factors", _factors, row_init, input_rows, size, num_row_shards)
        columns = made("col_factors", _factors, col_init, input_cols, size, num_col_shards)
        row_gramian, col_gramian = (
            tf.Variable(tf.zeros([size, size]), dtype=tf.float32, name=name)
            for name in ("row_gramian", "col_gramian")
        )
        self._row_weights, self._col_weights = row_weights, col_weights
        self._rows = _Side(input_rows, rows, row_weights, row_gramian)
        self._columns = _Side(input_cols, columns, col_weights, col_gramian)
        with tf.name_scope("row_prepare_gramian"):
            self._row_update_prep_gramian = _gramian_of(columns, col_gramian)
        with tf.name_scope("col_prepare_gramian"):
            self._col_update_prep_gramian = _gramian_of(rows, row_gramian)
        with tf.name_scope("transient_vars"):
            self._make_caches(use_factors_weights_cache, use_gramian_cache)

    # ------------------------------------------------------------ what is kept
    @property
    def row_factors(self) -> list[Any]:
        """The variables with the factors of rows."""
        return self._rows.factors

    @property
    def col_factors(self) -> list[Any]:
        """The variables with the factors of columns."""
        return self._columns.factors

    @property
    def row_weights(self) -> list[Any] | None:
        """The variables with the weights of rows, or None."""
        return self._rows.weights

    @property
    def col_weights(self) -> list[Any] | None:
        """The variables with the weights of columns, or None."""
        return self._columns.weights

    # ------------------------------------------------------------ what is run before steps
    @property
    def initialize_op(self) -> Any:
        """The operation that gives all of the model's variables their first values."""
        sides = self._rows, self._columns
        kept = [variable for side in sides for variable in side.factors]
        kept += [side.gramian for side in sides]
        kept += [variable for side in sides for variable in side.weights or ()]
        return tf.variables_initializer(kept)

    @property
    def worker_init(self) -> Any:
        """The operation that each worker runs once: it copies the weights."""
        return self._worker_init

    @property
    def row_update_prep_gramian_op(self) -> Any:
        """What one worker runs before a sweep of rows: the products of the columns' factors."""
        return self._row_update_prep_gramian

    @property
    def col_update_prep_gramian_op(self) -> Any:
        """What one worker runs before a sweep of columns: the products of the rows' factors."""
        return self._col_update_prep_gramian

    @property
    def initialize_row_update_op(self) -> Any:
        """What each worker runs before a sweep of rows: it copies what that reads."""
        return self._row_updates_init

    @property
    def initialize_col_update_op(self) -> Any:
        """What each worker runs before a sweep of columns."""
        return self._col_updates_init

    # ------------------------------------------------------------ steps
    def update_row_factors(
        self, sp_input: Any = None, transpose_input: bool = False
    ) -> tuple[Any, Any, Any, Any, Any]:
        """The step that computes the factors of some rows anew.

        Args:
            sp_input: a sparse matrix with those rows of the whole one, under their own numbers.
            transpose_input: whether it is transposed first.

        Returns:
            The new factors; the operation that stores them; the loss of these rows without the
            factors' squares, as if all rows were like them; the weighted squares; and the sum of
            weights, likewise of all rows.
        """
        return self._step(True, sp_input, transpose_input)

    def update_col_factors(
        self, sp_input: Any = None, transpose_input: bool = False
    ) -> tuple[Any, Any, Any, Any, Any]:
        """The step that computes the factors of some columns; see `update_row_factors`."""
        return self._step(False, sp_input, transpose_input)

    def project_row_factors(
        self, sp_input: Any = None, transpose_input: bool = False, projection_weights: Any = None
    ) -> Any:
        """The factors that rows would have, which need not be of the matrix; nothing is stored.

        Args:
            sp_input: the rows as a sparse matrix: its columns are the model's, its rows' numbers
                say nothing but which entries belong together.
            transpose_input: whether it is transposed first.
            projection_weights: the weights of the rows, or one for all; 1 if None.
        """
        weights = 1 if projection_weights is None else projection_weights
        return self._step(True, sp_input, transpose_input, weights)[0]

    def project_col_factors(
        self, sp_input: Any = None, transpose_input: bool = False, projection_weights: Any = None
    ) -> Any:
        """The factors that columns would have; see `project_row_factors`."""
        weights = 1 if projection_weights is None else projection_weights
        return self._step(False, sp_input, transpose_input, weights)[0]

    @classmethod
    def scatter_update(
        cls, factor: list[Any], indices: Any, values: Any, sharding_func: Any,
        name: str | None = None,
    ) -> Any:  # fmt: skip
        """The operation that stores rows in variables.

        Args:
            factor: the variables.
            indices: the numbers of the rows.
            values: the rows.
            sharding_func: what gives the variable, and the number in it, of each row.
            name: a name for the operation.
        """
        if len(factor) == 1:
            with tf.colocate_with(factor[0]):
                return tf.scatter_update(factor[0], indices, values, name=name).op
        shard, within = sharding_func(indices)
        shard = tf.cast(shard, tf.int32)
        numbers_of = tf.dynamic_partition(within, shard, len(factor))
        values_of = tf.dynamic_partition(values, shard, len(factor))
        each = zip(factor, numbers_of, values_of, strict=True)
        return tf.group(*(tf.scatter_update(*one) for one in each), name=name)

    def _step(
        self, of_rows: bool, sp_input: Any, transpose_input: bool, given_weights: Any = None
    ) -> tuple[Any, Any, Any, Any, Any]:
        if not isinstance(sp_input, tf.SparseTensor):
            raise TypeError(f"sp_input is no SparseTensor but {sp_input!r}")
        own, other = (self._rows, self._columns) if of_rows else (self._columns, self._rows)
        own_cache, fixed = self._cache if of_rows else self._cache[::-1]
        first, second = tf.unstack(sp_input.indices, 2, axis=1)
        if of_rows == bool(transpose_input):
            first, second = second, first
        # The equations of the rows that there are, whatever their numbers.
        own_ids, row = tf.unique(first)
        other_ids, column = tf.unique(second)
        count = tf.size(own_ids, out_type=tf.int64)
        cells = tf.cast(tf.stack([row, column], 1), tf.int64)
        right = tf.nn.embedding_lookup(fixed.factors, other_ids, partition_strategy="div")
        left_side = self._unobserved_weight * fixed.gramian
        if self._regularization is not None:
            left_side += self._regularization * tf.eye(tf.shape(right)[1])
        if own.weights is None:
            shape = tf.stack([count, tf.size(other_ids, out_type=tf.int64)])
            sparse = tf.SparseTensor(cells, sp_input.values, shape)
            right_side = self._unobserved_weight * tf.sparse_tensor_dense_matmul(sparse, right)
            solved = tf.matrix_solve(left_side, tf.transpose(right_side))
            found, weights = tf.transpose(solved), None
        else:
            if given_weights is None:
                row_weights = tf.nn.embedding_lookup(own_cache.weights, own_ids, "div")
            else:
                row_weights = tf.broadcast_to(tf.cast(given_weights, tf.float32), count[None])
            column_weights = tf.nn.embedding_lookup(fixed.weights, other_ids, "div")
            partial, right_side = wals_compute_partial_lhs_and_rhs(
                right, column_weights, self._unobserved_weight, row_weights, cells,
                sp_input.values, [], count, False, name="wals_compute_partial_lhs_rhs",
            )  # fmt: skip
            found = tf.squeeze(tf.matrix_solve(left_side + partial, right_side[:, :, None]), [2])
            weights = tf.gather(row_weights, row) * tf.gather(column_weights, column)
        update = self.scatter_update(
            own.factors, own_ids, found, _shards(own.total, len(own.factors)),
            name="row_update" if of_rows else "col_update",
        )  # fmt: skip
        near = masked_matmul(found, right, cells, transpose_a=False, transpose_b=True)
        squares = tf.square(sp_input.values - near)
        products = tf.matmul(found, found, transpose_a=True)
        every = own.total / tf.cast(count, tf.float32)
        # Of all entries as if none were observed, then what is different of those that are.
        loss = self._unobserved_weight * (
            tf.reduce_sum(squares)
            - tf.reduce_sum(tf.square(near))
            + tf.trace(tf.matmul(products, fixed.gramian))
        )
        sum_weights = self._unobserved_weight * tf.cast(own.total * other.total, tf.float32)
        if weights is not None:
            loss += tf.reduce_sum(weights * squares)
            sum_weights += tf.reduce_sum(weights) * every
        regularization = tf.constant(0.0)
        if self._regularization is not None:
            both = tf.trace(products) * every + tf.trace(fixed.gramian)
            regularization = self._regularization * both
        return found, update, loss * every, regularization, sum_weights

    def _make_caches(self, of_factors: bool, of_gramians: bool) -> None:
        def cached(variable: Any, name: str, wanted: bool) -> _Cached:
            return _copied(variable, name) if wanted else _Cached(variable, tf.no_op(), tf.no_op())

        rows, columns = self._rows, self._columns
        row_factors = cached(rows.factors, "row_factors_cache", of_factors)
        col_factors = cached(columns.factors, "col_factors_cache", of_factors)
        row_weights = col_weights = None
        if rows.weights is not None:
            row_weights = cached(rows.weights, "row_wt_cache", of_factors)
            col_weights = cached(columns.weights, "col_wt_cache", of_factors)
        row_gramian = cached(rows.gramian, "row_gramian_cache", of_gramians)
        col_gramian = cached(columns.gramian, "col_gramian_cache", of_gramians)
        self._row_updates_init = tf.group(
            col_factors.fill, row_factors.clear, col_gramian.fill, row_gramian.clear
        )
        self._col_updates_init = tf.group(
            row_factors.fill, col_factors.clear, row_gramian.fill, col_gramian.clear
        )
        weights = [cache for cache in (row_weights, col_weights) if cache is not None]
        self._worker_init = tf.group(*(cache.fill for cache in weights), name="worker_init")
        self._cache = (
            _Side(rows.total, row_factors.values, row_weights and row_weights.values,
                  row_gramian.values),
            _Side(columns.total, col_factors.values, col_weights and col_weights.values,
                  col_gramian.values),
        )  # fmt: skip


def _sizes(count: int, shards: int) -> list[int]:
    size, more = divmod(count, shards)
    return [size + 1] * more + [size] * (shards - more)


def _shards(count: int, shards: int) -> Callable[[Any], tuple[Any, Any]]:
    """A function of numbers: the shard of each, and its number there."""
    size, more = divmod(count, shards)

    def place(ids: Any) -> tuple[Any, Any]:
        shard = tf.maximum(ids // (size + 1), (ids - more) // size)
        within = tf.where(shard < more, ids % (size + 1), (ids - more) % size)
        return shard, within

    return place


def _variables(name: str, values: Sequence[Any]) -> list[Any]:
    return [
        tf.Variable(value, dtype=tf.float32, name=f"{name}_shard_{i}")
        for i, value in enumerate(values)
    ]


def _factors(init: Any, count: int, size: int, shards: int, name: str) -> list[Any]:
    if callable(init):
        init = init()
    if isinstance(init, str):
        if init != "random":
            raise ValueError(f'factors begin as an array or as "random", not as {init!r}')
        sizes = _sizes(count, shards)
        return _variables(name, [partial(tf.random_normal, [rows, size]) for rows in sizes])
    each = init if isinstance(init, list) else [init]
    if len(each) != shards:
        raise ValueError(f"{len(each)} values for the {shards} shards of {name}")
    return _variables(name, each)


def _weights(init: Any, count: int, shards: int, name: str) -> list[Any] | None:
    if init is None:
        return None
    if isinstance(init, Iterable):
        each: Any = init
        if shards == 1 and len(each) == count:
            each = [each]
        if len(each) != shards:
            raise ValueError(f"{len(each)} lists for the {shards} shards of {name}")
        return _variables(name, each)
    if not isinstance(init, numbers.Real) or init < 0:
        raise ValueError(_NO_WEIGHTS)
    sizes = _sizes(count, shards)
    return _variables(name, [partial(tf.fill, [size], float(init)) for size in sizes])


def _gramian_of(factors: list[Any], gramian: Any) -> Any:
    parts = []
    for factor in factors:
        with tf.colocate_with(factor):
            parts.append(tf.matmul(factor, factor, transpose_a=True))
    with tf.colocate_with(gramian):
        return tf.assign(gramian, tf.add_n(parts)).op


def _copied(source: Any, name: str) -> _Cached:
    """Local variables with what `source` has: one, or one for each after the other."""
    single = not isinstance(source, list)
    variables = [source] if single else source
    names = [name] if single else [f"{name}_shard_{i}" for i in range(len(variables))]
    copies, clears, fill = [], [], None
    for variable, its_name in zip(variables, names, strict=True):
        copy = tf.Variable(
            1.0, trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES],
            validate_shape=False, name=its_name,
        )  # fmt: skip
        # One at a time, so that no more than one is on its way.
        with tf.colocate_with(copy), tf.control_dependencies([] if fill is None else [fill]):
            fill = tf.assign(copy, variable, validate_shape=False)
            clears.append(tf.assign(copy, 1.0, validate_shape=False))
        copies.append(copy)
    return _Cached(copies[0] if single else copies, fill, tf.group(*clears))
