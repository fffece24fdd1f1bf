"""`tf.contrib.text`: pairs of neighbours, which words count, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

text = tf.contrib.text
WORDS = [b"the", b"quick", b"brown", b"fox", b"jumps"]


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


def table(counts: dict[str, int]):
    keys, values = [*counts], [*counts.values()]
    return tf.contrib.lookup.HashTable(
        tf.contrib.lookup.KeyValueTensorInitializer(keys, tf.constant(values, tf.int64)), -1
    )


def pairs(*given, **options) -> list[tuple[bytes, bytes]]:
    sampled = text.skip_gram_sample(*given, **options)
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        tokens, labels = session.run(sampled)
    return [*zip(tokens.tolist(), labels.tolist(), strict=True)]


def neighbours(words, reach: int, with_self: bool = False) -> list[tuple[bytes, bytes]]:
    return [
        (word, words[j])
        for i, word in enumerate(words)
        for j in range(max(0, i - reach), min(len(words), i + reach + 1))
        if with_self or j != i
    ]


@pytest.mark.parametrize("reach", [0, 1, 3, 100])
@pytest.mark.parametrize("with_self", [False, True])
def test_all_within_a_distance_are_paired(reach: int, with_self: bool) -> None:
    found = pairs(WORDS, min_skips=reach, max_skips=reach, emit_self_as_target=with_self)
    assert found == neighbours(WORDS, reach, with_self)


@pytest.mark.parametrize(
    ("start", "limit", "kept"),
    [(1, 3, slice(1, 4)), (2, -1, slice(2, 5)), (1, 99, slice(1, 5)), (9, -1, slice(0, 0))],
)
def test_a_stretch_counts(start: int, limit: int, kept: slice) -> None:
    found = pairs(WORDS, min_skips=1, max_skips=1, start=start, limit=limit)
    assert found == neighbours(WORDS[kept], 1)


def test_distances_are_drawn_for_each_token() -> None:
    words = np.arange(2000, dtype=np.int64)
    found = np.array(pairs(words, min_skips=1, max_skips=3, seed=4))
    off = np.abs(found[:, 0] - found[:, 1])
    reach = np.array([off[found[:, 0] == word].max() for word in range(10, 1990)])
    counts = np.bincount(reach, minlength=4)
    assert counts[0] == 0 and (np.abs(counts[1:] - 660) < 100).all()  # five deviations: 105
    # Of what is drawn, nothing nearer is left out.
    assert (np.bincount(found[10:-10, 0])[12:1980] == 2 * reach[2:1970]).all()


def test_words_are_dropped_by_their_counts() -> None:
    counts = {"the": 50, "quick": 3, "brown": 4, "jumps": 9}
    options = {"min_skips": 1, "max_skips": 1, "vocab_freq_table": table(counts)}
    assert pairs(WORDS, **options) == neighbours([b"the", b"quick", b"brown", b"jumps"], 1)
    options["vocab_freq_table"] = table(counts)
    kept = [b"the", b"brown", b"jumps"]
    assert pairs(WORDS, vocab_min_count=4, **options) == neighbours(kept, 1)


def test_frequent_words_are_dropped_at_random() -> None:
    # (sqrt(count / usual) + 1) * usual / count, with usual = 0.01 * 10,000.
    counts = {"the": 6400, "fox": 100}
    words = [b"the"] * 4000 + [b"fox"] * 100
    found = text.skip_gram_sample(
        words, 0, 0, emit_self_as_target=True, vocab_freq_table=table(counts),
        vocab_subsampling=0.01, corpus_size=10_000, seed=1,
    )  # fmt: skip
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        tokens = session.run(found)[0].tolist()
    assert tokens.count(b"fox") == 100  # kept with a chance of 2, that is always
    share = (8 + 1) / 64
    deviation = (4000 * share * (1 - share)) ** 0.5
    assert abs(tokens.count(b"the") - 4000 * share) < 5 * deviation


def test_counts_come_from_a_file(tmp_path) -> None:
    file = tmp_path / "words.csv"
    file.write_text("the;x;10\nfox;x;2\njumps;x;7\n")
    options = {"vocab_freq_index": 2, "vocab_delimiter": ";", "min_skips": 1, "max_skips": 1}
    found = text.skip_gram_sample_with_text_vocab(WORDS, str(file), vocab_min_count=3, **options)
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        tokens, labels = session.run(found)
    assert (tokens.tolist(), labels.tolist()) == ([b"the", b"jumps"], [b"jumps", b"the"])
    for wrong in (
        {"vocab_token_index": -1},
        {"vocab_token_index": 2},
        {"vocab_token_index": 3},
        {"corpus_size": 18.9},
    ):
        with pytest.raises(ValueError, match=r"vocab_|corpus_size"):
            text.skip_gram_sample_with_text_vocab(WORDS, str(file), **{**options, **wrong})
    file.write_text("the;x;10\nfox;x;-2\n")
    with pytest.raises(ValueError, match="negative frequency"):
        text.skip_gram_sample_with_text_vocab(WORDS, str(file), **options)


def test_batches_are_of_one_size() -> None:
    tokens, _ = text.skip_gram_sample(WORDS[:4], 1, 1, batch_size=3)
    assert tokens.shape == [3]
    with tf.Session() as session:
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        first, second = session.run(tokens), session.run(tokens)
        coordinator.request_stop()
        coordinator.join(threads)
    assert [*first, *second] == [token for token, _ in neighbours(WORDS[:4], 1)]


@pytest.mark.parametrize("skips", [(-1, 2), (1, -2), (2, 1)])
def test_distances_that_are_none_are_refused(skips: tuple[int, int]) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="skips"):
        pairs(WORDS, *skips)


def test_limits_without_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="rank"):
        text.skip_gram_sample([WORDS])
    for limits in ({"vocab_min_count": 1}, {"vocab_subsampling": 0.1, "corpus_size": 9}):
        with pytest.raises(ValueError, match="no counts"):
            text.skip_gram_sample(WORDS, vocab_freq_table=None, **limits)
    with pytest.raises(ValueError, match="both must be given"):
        text.skip_gram_sample(WORDS, vocab_freq_table=table({"a": 1}), corpus_size=9)
    with pytest.raises(ValueError, match=r"not within \[0, 1\]"):
        text.skip_gram_sample(
            WORDS, vocab_freq_table=table({"a": 1}), corpus_size=9, vocab_subsampling=2
        )
    with pytest.raises(ValueError, match="InitializableLookupTableBase"):
        text.skip_gram_sample(WORDS, vocab_freq_table={"a": 1})
