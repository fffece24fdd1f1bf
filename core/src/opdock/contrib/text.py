"""`tf.contrib.text`: pairs of words that stand near each other, for skip-gram models."""

from __future__ import annotations

import csv
from typing import Any, NamedTuple

import opdock as tf
from opdock.contrib import lookup
from opdock.dtypes import DType

__all__ = ["skip_gram_sample", "skip_gram_sample_with_text_vocab"]

_ABSENT = -1  # the count of a word that the file of a vocabulary does not have


def skip_gram_sample(
    input_tensor: Any,
    min_skips: Any = 1,
    max_skips: Any = 5,
    start: Any = 0,
    limit: Any = -1,
    emit_self_as_target: Any = False,
    vocab_freq_table: Any = None,
    vocab_min_count: Any = None,
    vocab_subsampling: float | None = None,
    corpus_size: Any = None,
    batch_size: int | None = None,
    batch_capacity: int | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Pairs of each token and those around it, within a distance drawn for each token.

    Args:
        input_tensor: the tokens, a vector of any type.
        min_skips: the least distance that is drawn, an int32 scalar.
        max_skips: the largest.
        start: the first token that counts.
        limit: how many count; all from `start` if negative.
        emit_self_as_target: whether a token is paired with itself too.
        vocab_freq_table: a table of how often tokens are in the corpus. Tokens that it does not
            have are dropped before anything else.
        vocab_min_count: drops tokens that are there less often.
        vocab_subsampling: the share of the corpus above which tokens are dropped at random, the
            more the more frequent they are (Mikolov et al. 2013, equation 5).
        corpus_size: how many tokens the corpus has; goes with `vocab_subsampling`.
        batch_size: how many pairs a run gives; they wait in a queue, which runners must fill.
        batch_capacity: how many pairs that queue holds; a hundred batches by default.
        seed: a seed for distances and dropped tokens.
        name: a name for the operations.

    Returns:
        Two vectors, tokens and labels.

    Raises:
        ValueError: the tokens are no vector; counts are limited without a table, or one of
            `vocab_subsampling` and `corpus_size` comes without the other.
        InvalidArgumentError: when it runs, distances are negative or the least is above the
            largest.
    """
    counts = _Counts(vocab_freq_table, vocab_min_count, vocab_subsampling, corpus_size)
    _check_counts(counts)
    with tf.name_scope(
        name, "skip_gram_sample", [input_tensor, min_skips, max_skips, start, limit]
    ):
        tokens = tf.convert_to_tensor(input_tensor, name="input_tensor")
        tokens.shape.assert_has_rank(1)
        kept = filter_input(tokens, *counts, seed)
        pairs = _pairs(kept, min_skips, max_skips, start, limit, emit_self_as_target, seed)
        if not batch_size or batch_size < 0:
            return pairs
        capacity = batch_capacity if batch_capacity and batch_capacity > 0 else 100 * batch_size
        return tf.train.batch([*pairs], batch_size, capacity=capacity, enqueue_many=True)


def skip_gram_sample_with_text_vocab(
    input_tensor: Any,
    vocab_freq_file: str,
    vocab_token_index: int = 0,
    vocab_token_dtype: DType = tf.string,
    vocab_freq_index: int = 1,
    vocab_freq_dtype: DType = tf.float64,
    vocab_delimiter: str = ",",
    vocab_min_count: Any = 0,
    vocab_subsampling: float | None = None,
    corpus_size: float | None = None,
    min_skips: Any = 1,
    max_skips: Any = 5,
    start: Any = 0,
    limit: Any = -1,
    emit_self_as_target: Any = False,
    batch_size: int | None = None,
    batch_capacity: int | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """`skip_gram_sample` with the counts of a text file, a token and its count in each line.

    Args:
        input_tensor: the tokens.
        vocab_freq_file: the file's path.
        vocab_token_index: the column of the tokens.
        vocab_token_dtype: their type.
        vocab_freq_index: the column of the counts.
        vocab_freq_dtype: their type.
        vocab_delimiter: what is between columns.
        vocab_min_count: see `skip_gram_sample`, as are the others.
        vocab_subsampling: the share above which tokens are dropped at random.
        corpus_size: the sum of the file's counts by default; not less than it.
        min_skips: the least distance.
        max_skips: the largest.
        start: the first token that counts.
        limit: how many count.
        emit_self_as_target: whether a token is paired with itself too.
        batch_size: how many pairs a run gives.
        batch_capacity: how many wait.
        seed: a seed.
        name: a name for the operations.

    Raises:
        ValueError: columns are negative, the same, or not in the file; a count is negative;
            `corpus_size` is less than the counts together.
    """
    rows, total = _measured(
        vocab_freq_file, vocab_token_index, vocab_freq_index, vocab_freq_dtype, vocab_delimiter
    )
    if corpus_size and total - corpus_size > 1e-6:
        raise ValueError(
            f"`corpus_size`={corpus_size} must be greater than or equal to the sum of all the "
            f"frequency counts ({total}) of {vocab_freq_file}"
        )
    table = lookup.HashTable(
        lookup.TextFileInitializer(
            vocab_freq_file, key_dtype=vocab_token_dtype, key_index=vocab_token_index,
            value_dtype=vocab_freq_dtype, value_index=vocab_freq_index, vocab_size=rows,
            delimiter=vocab_delimiter,
        ),
        default_value=_ABSENT,
    )  # fmt: skip
    return skip_gram_sample(
        input_tensor, min_skips, max_skips, start, limit, emit_self_as_target, table,
        vocab_min_count, vocab_subsampling,
        None if vocab_subsampling is None else corpus_size or total,
        batch_size, batch_capacity, seed, name,
    )  # fmt: skip


class _Counts(NamedTuple):
    table: Any
    least: Any
    share: float | None
    corpus: Any


def _check_counts(counts: _Counts) -> None:
    table, *limits = counts
    if table is None and any(limit is not None for limit in limits):
        raise ValueError(
            "vocab_freq_table is not provided, so vocab_min_count, vocab_subsampling and "
            f"corpus_size, which are {limits}, have no counts to go by"
        )
    if (counts.share is None) != (counts.corpus is None):
        raise ValueError(
            f"vocab_subsampling is {counts.share} while corpus_size is {counts.corpus}: both must "
            "be given, or neither"
        )


def _measured(path: str, token: int, count: int, dtype: DType, delimiter: str) -> tuple[int, float]:
    """How many rows a vocabulary has, and the sum of its counts."""
    if token < 0 or count < 0:
        raise ValueError(
            f"vocab_token_index={token} and vocab_freq_index={count} must both be >= 0"
        )
    if token == count:
        raise ValueError(f"vocab_token_index and vocab_freq_index are both {token}")
    rows, total = 0, 0.0
    with tf.gfile.GFile(path) as file:
        for row in csv.reader(file, delimiter=delimiter):
            if max(token, count) >= len(row):
                raise ValueError(
                    f"Row {rows} of {path} has {len(row)} columns, which is too few for "
                    f"vocab_token_index={token} and vocab_freq_index={count}: {row}"
                )
            number = dtype.as_numpy_dtype(row[count])
            if number < 0:
                raise ValueError(f"Row {rows} of {path} has a negative frequency: {row}")
            rows, total = rows + 1, total + float(number)
    return rows, total


def filter_input(
    input_tensor: Any,
    vocab_freq_table: Any,
    vocab_min_count: Any,
    vocab_subsampling: float | None,
    corpus_size: Any,
    seed: int | None,
) -> Any:
    """The tokens that a table has often enough, and not too often; see `skip_gram_sample`.

    Raises:
        ValueError: the table is none that is initialized; the share is not within 0 and 1.
    """
    if vocab_freq_table is None:
        return input_tensor
    if not isinstance(vocab_freq_table, lookup.InitializableLookupTableBase):
        raise ValueError(
            "vocab_freq_table must be a subclass of InitializableLookupTableBase (such as "
            f"HashTable), not a {type(vocab_freq_table).__name__}"
        )
    with tf.name_scope(None, "filter_vocab", [input_tensor, vocab_min_count]):
        count = vocab_freq_table.lookup(input_tensor)
        known = tf.not_equal(count, vocab_freq_table.default_value)
        if vocab_min_count is not None:
            known &= count >= tf.cast(vocab_min_count, count.dtype)
        tokens, count = tf.boolean_mask(input_tensor, known), tf.boolean_mask(count, known)
    if not vocab_subsampling:
        return tokens
    if not 0 <= vocab_subsampling <= 1:
        raise ValueError(f"vocab_subsampling={vocab_subsampling} is not within [0, 1]")
    with tf.name_scope(None, "subsample_vocab", [tokens, count]):
        usual = tf.constant(vocab_subsampling, tf.float64) * tf.cast(corpus_size, tf.float64)
        ratio = usual / tf.cast(count, tf.float64)
        kept = (tf.sqrt(1 / ratio) + 1) * ratio
        drawn = tf.random_uniform(tf.shape(count), dtype=tf.float64, seed=seed)
        return tf.boolean_mask(tokens, drawn <= kept)


def _pairs(
    tokens: Any, least: Any, most: Any, start: Any, limit: Any, with_self: Any, seed: int | None
) -> tuple[Any, Any]:
    least, most, start, limit = (
        tf.convert_to_tensor(number, tf.int32) for number in (least, most, start, limit)
    )
    right = [
        tf.Assert((least >= 0) & (most >= 0), ["Both min_skips and max_skips must be >= 0."]),
        tf.Assert(least <= most, ["min_skips must be <= max_skips.", least, most]),
    ]
    with tf.control_dependencies(right):
        least, most = tf.identity(least), tf.identity(most)
    size = tf.size(tokens)
    end = tf.where(limit < 0, size, tf.minimum(start + limit, size))
    places = tf.range(start, tf.maximum(start, end))
    reach = tf.random_uniform(tf.shape(places), least, most + 1, tf.int32, seed=seed)
    farthest = tf.clip_by_value(most, 0, size)  # nothing is farther, whatever is drawn
    steps = tf.range(-farthest, farthest + 1)
    others = places[:, None] + steps
    near = tf.abs(steps) <= reach[:, None]
    wanted = tf.not_equal(steps, 0) | tf.convert_to_tensor(with_self, tf.bool)
    cells = tf.where(near & wanted & (others >= start) & (others < end))
    return (
        tf.gather(tokens, tf.gather(places, cells[:, 0])),
        tf.gather(tokens, tf.gather_nd(others, cells)),
    )
