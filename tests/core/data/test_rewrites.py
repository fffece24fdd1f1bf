"""Rewrites of datasets by TF's names: what follows is another pipeline, of equal elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.data import Dataset
from opdock.data.experimental import vectorized
from opdock.data.experimental.sharing import non_serializable

ALL = (
    "filter_fusion", "map_and_batch_fusion", "map_fusion", "map_parallelization",
    "noop_elimination",
)  # fmt: skip


def following(*kinds: str) -> Any:
    return vectorized.assert_next(list(kinds))


def only(dataset: Any, *names: str) -> Any:
    """The dataset with these rewrites and no others."""
    options = tf.data.Options()
    asked = options.experimental_optimization
    asked.apply_default_optimizations = False
    for name in names:
        if name == "map_vectorization":
            asked.map_vectorization.enabled = True
        else:
            setattr(asked, name, True)
    return dataset.with_options(options)


def square(x: Any) -> Any:
    return x * x


def odd(x: Any) -> Any:
    return tf.equal(x % 2, 1)


PIPELINES = {
    "noop_elimination": (
        ("FiniteRepeat", "FiniteSkip", "Prefetch", "MemoryCacheImpl"),
        lambda d: d.repeat(2).skip(5).take(-1).skip(0).repeat(1).prefetch(0).prefetch(1).cache(),
    ),
    "map_fusion": (("Map", "FiniteTake"), lambda d: d.map(square).map(lambda x: x + 1).take(7)),
    "filter_fusion": (
        ("Filter", "FiniteTake"), lambda d: d.filter(odd).filter(lambda x: x > 3).take(9),
    ),
    "map_and_filter_fusion": (
        ("ParallelMap", "Filter", "Map", "FiniteTake"),
        lambda d: d.map(square, 2).filter(odd).take(4),
    ),
    "map_parallelization": (("ParallelMap",), lambda d: d.map(square)),
    "map_and_batch_fusion": (("MapAndBatch",), lambda d: d.map(square).batch(3)),
    "map_vectorization": (("BatchV2", "Map"), lambda d: d.map(square).batch(4)),
}  # fmt: skip


@pytest.mark.parametrize("name", PIPELINES)
def test_a_rewrite_gives_the_same_elements(name, walk):
    kinds, make = PIPELINES[name]
    plain = walk(only(make(Dataset.range(10))))
    found = walk(only(make(Dataset.range(10).apply(following(*kinds))), name))
    assert [np.asarray(f).tolist() for f in found] == [np.asarray(f).tolist() for f in plain]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Asserted"):
        walk(only(make(Dataset.range(10).apply(following(*kinds)))))


def test_a_predicate_that_captures_is_no_part_of_a_map(walk):
    least = tf.constant(3, tf.int64) * 4

    def kept(*kinds: str) -> Any:
        return Dataset.range(9).apply(following(*kinds)).map(square).filter(lambda x: x > least)

    found = [int(x) for x in walk(only(kept("Map", "Filter"), "map_and_filter_fusion"))]
    assert found == [x * x for x in range(9) if x * x > 12]


def test_a_map_with_its_filter_is_saved_and_batched(walk):
    pairs = (
        Dataset.range(40)
        .map(lambda x: (x, {"text": tf.as_string(x)}))
        .filter(lambda x, _: tf.equal(x % 3, 0))
    )
    dataset = only(pairs.batch(4), "map_and_filter_fusion")
    found = [(b.tolist(), t["text"].tolist()) for b, t in walk(dataset)]
    assert [x for b, _ in found for x in b] == list(range(0, 40, 3))
    assert [int(x) for _, t in found for x in t] == list(range(0, 40, 3))


def test_what_follows_is_told(walk):
    with pytest.raises(tf.errors.InvalidArgumentError) as short:
        walk(only(Dataset.range(1).apply(following("Map", "Whoops")).map(square)))
    assert "Asserted next 2 transformations but encountered only 1." in str(short.value)
    with pytest.raises(tf.errors.InvalidArgumentError) as other:
        walk(only(Dataset.range(1).apply(following("Whoops")).map(square)))
    assert "Asserted Whoops transformation at offset 0 but encountered Map" in str(other.value)
    with pytest.raises(ValueError, match="At least one"):
        vectorized.assert_next(None)


def test_a_function_that_draws_numbers_is_called_one_by_one(walk):
    def noisy(x: Any) -> Any:
        return tf.random_uniform([], seed=1) + tf.cast(x, tf.float32)

    dataset = Dataset.range(3).apply(following("Map")).map(noisy)
    assert len(walk(only(dataset, "map_parallelization"))) == 3


def test_what_a_function_makes_is_rewritten(walk):
    def inner(x: Any) -> Any:
        made = Dataset.range(x).apply(following("MapAndBatch")).map(square)
        return made.skip(0).batch(2)

    dataset = Dataset.range(4).flat_map(inner)
    found = walk(only(dataset, "map_and_batch_fusion", "noop_elimination"))
    assert [b.tolist() for b in found] == [[0], [0, 1], [0, 1], [4]]


def test_nothing_before_what_cannot_be_saved_is_rewritten(walk):
    first = Dataset.range(3).apply(following("FiniteSkip")).skip(0).apply(non_serializable())
    dataset = first.apply(following("MemoryCacheImpl")).skip(0).cache()
    assert walk(only(dataset, "noop_elimination")) == [0, 1, 2]


def test_what_is_shared_stays_shared(walk):
    shared = Dataset.range(6).shuffle(6, seed=3).map(square).map(square)
    pairs = walk(only(Dataset.zip((shared, shared)), *ALL))
    assert [a for a, _ in pairs] == [b for _, b in pairs]


def test_epochs_are_shuffled_together_only_if_asked(walk):
    shuffled = Dataset.range(10).shuffle(10, seed=1).repeat(2)
    fused = Dataset.range(10).apply(following("ShuffleAndRepeat")).shuffle(10, seed=1).repeat(2)
    one_step = Dataset.range(10).apply(tf.data.experimental.shuffle_and_repeat(10, 2, seed=1))
    assert walk(shuffled) == walk(only(shuffled))
    assert walk(only(fused, "shuffle_and_repeat_fusion")) == walk(one_step)


def test_every_step_may_be_timed(walk):
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.experimental_stats.latency_all_edges = True
    options.experimental_stats.aggregator = tf.data.experimental.StatsAggregator()
    kinds = "LatencyStats", "Map", "LatencyStats", "Prefetch", "LatencyStats"
    dataset = Dataset.range(2).apply(following(*kinds)).map(square).prefetch(1)
    iterator = dataset.with_options(options).make_initializable_iterator()
    following_element, summary = iterator.get_next(), options.experimental_stats.aggregator
    text = summary.get_summary()
    with tf.Session() as session:
        session.run(iterator.initializer)
        session.run(following_element)
        tags = [v.tag for v in tf.Summary.FromString(session.run(text)).value]
    assert any(tag.startswith("record_latency::MapDataset/_") for tag in tags)


def test_an_error_has_the_place_of_its_whole_batch_by_default():
    mapped = Dataset.range(10).map(lambda x: tf.check_numerics(1 / tf.cast(x - 1, tf.float32), "m"))
    element = mapped.batch(4).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(element)
        assert session.run(element).tolist() == pytest.approx([1 / 3, 1 / 4, 1 / 5, 1 / 6])


def test_the_names_are_those_of_tf():
    options = tf.data.Options()
    by_default = ["map_and_batch_fusion", "noop_elimination", "shuffle_and_repeat_fusion"]
    assert options._static_optimizations() == by_default
    options.experimental_optimization.apply_default_optimizations = False
    assert options._static_optimizations() == []
    options.experimental_optimization.hoist_random_uniform = True
    options.experimental_deterministic = False
    options.experimental_slack = True
    options.experimental_optimization.autotune_buffers = True
    names = ["hoist_random_uniform", "inject_prefetch", "make_sloppy", "slack"]
    assert options._static_optimizations() == names


@pytest.mark.parametrize("names", [(), ALL, ("map_vectorization", "inject_prefetch")])
def test_a_walk_is_saved_and_goes_on(names, resumed, tmp_path):
    def make() -> Any:
        dataset = Dataset.range(23).shuffle(5, seed=2).map(square).map(lambda x: x + 1)
        dataset = dataset.filter(lambda x: x > 2).filter(lambda x: x < 400).take(-1)
        return only(dataset.map(square).batch(3), *(n for n in names if n != "inject_prefetch"))

    resumed(make, tmp_path, (0, 2, 5))


class TestState:
    """An iterator whose functions have state elsewhere is not saved, in TF's class of error."""

    def save(self, dataset: Any, tmp_path: Any) -> None:
        iterator = dataset.make_initializable_iterator()
        saver = tf.train.Saver([tf.data.experimental.make_saveable_from_iterator(iterator)])
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.tables_initializer()])
            session.run(iterator.initializer)
            session.run(iterator.get_next())
            saver.save(session, str(tmp_path / "it"))

    def test_variables(self, tmp_path):
        counter = tf.get_variable("n", (), tf.int64, use_resource=True)
        for function in (lambda x: x + counter, lambda _: counter.assign_add(1)):
            with pytest.raises(tf.errors.FailedPreconditionError, match="is stateful"):
                self.save(Dataset.range(5).map(function), tmp_path)

    def test_functions_of_python(self, tmp_path):
        for dataset in (
            Dataset.range(5).map(lambda x: tf.py_func(lambda v: v, [x], tf.int64)),
            Dataset.from_generator(lambda: iter(range(5)), tf.int64),
            Dataset.range(5).flat_map(
                lambda x: Dataset.range(5).map(lambda y: tf.py_func(lambda v: v, [y], tf.int64))
            ),
        ):
            with pytest.raises(tf.errors.FailedPreconditionError, match="PyFunc.* is stateful"):
                self.save(dataset, tmp_path)

    def test_what_is_saved_with_it_or_settled(self, tmp_path):
        table = tf.contrib.lookup.index_table_from_tensor(tf.constant(["0", "1", "2", "3", "4"]))

        def function(x: Any) -> Any:
            with tf.control_dependencies([tf.Assert(x < 9, [x]), tf.print(x)]):
                drawn = tf.random_uniform([], seed=3) + tf.check_numerics(
                    tf.cast(x, tf.float32), ""
                )
            return drawn, table.lookup(tf.as_string(x))

        self.save(Dataset.range(5).map(function), tmp_path)
