"""Functions of rows, and races of functions of datasets: what maps are vectorized with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.data.experimental.vectorized import choose_fastest_branch, map_defun, model, optimize


def rows_of(shape: Any, dtype: Any = tf.int32) -> Any:
    return tf.function(input_signature=[tf.TensorSpec(shape, dtype)])


def elements(dataset: Any) -> list[Any]:
    step = tf.data.make_one_shot_iterator(dataset).get_next()
    found = []
    with tf.Session() as sess:
        while True:
            try:
                found.append(sess.run(step).tolist())
            except tf.errors.OutOfRangeError:
                return found


def test_a_function_is_called_of_each_row() -> None:
    more = tf.constant(10)

    @rows_of([2])
    def fn(row: tf.Tensor) -> Any:
        return tf.reduce_sum(row), tf.cast(row, tf.float64) + tf.cast(more, tf.float64)

    total, moved = map_defun(
        fn, [tf.reshape(tf.range(6), [3, 2])], [tf.int32, tf.float64], [[], [2]]
    )
    assert total.shape.as_list() == [3] and moved.shape.as_list() == [3, 2]
    with tf.Session() as sess:
        a, b = sess.run([total, moved])
    assert a.tolist() == [1, 5, 9]
    assert b.tolist() == [[10, 11], [12, 13], [14, 15]]


def test_no_rows_give_no_rows() -> None:
    (made,) = map_defun(
        rows_of([2])(lambda r: r * 2), [tf.zeros([0, 2], tf.int32)], [tf.int32], [[2]]
    )
    with tf.Session() as sess:
        assert sess.run(made).shape == (0, 2)


@pytest.mark.parametrize(
    ("dtype", "shape", "match"),
    [
        (tf.int64, [2], "int64 was declared"),
        (tf.int32, [3], "expected output shape.*expected \\[3\\]"),
    ],
)
def test_what_a_function_gives_is_what_was_declared(dtype: Any, shape: Any, match: str) -> None:
    (made,) = map_defun(
        rows_of([2])(lambda r: r * 2), [tf.zeros([3, 2], tf.int32)], [dtype], [shape]
    )
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match=match):
        sess.run(made)


def test_arguments_have_equally_many_rows() -> None:
    fn = tf.function(lambda a, b: a + b, input_signature=[tf.TensorSpec(None, tf.int32)] * 2)
    with pytest.raises(ValueError, match="same dimension 0"):
        map_defun(fn, [tf.zeros([3], tf.int32), tf.zeros([2], tf.int32)], [tf.int32], [[]])
    with pytest.raises(ValueError, match="Input 0 has rank of 0"):
        map_defun(fn, [tf.constant(1), tf.zeros([2], tf.int32)], [tf.int32], [[]])
    a, b = (tf.placeholder(tf.int32) for _ in range(2))
    (made,) = map_defun(fn, [a, b], [tf.int32], [[]])
    with tf.Session() as sess:
        for feeds in ({a: [1, 2], b: [1]}, {a: 1, b: [1]}):
            with pytest.raises(tf.errors.InvalidArgumentError, match="All inputs must have"):
                sess.run(made, feeds)


def branches(shift: Any) -> list[Any]:
    def late(dataset: Any) -> Any:
        return dataset.batch(2).map(lambda x: x + shift)

    def early(dataset: Any) -> Any:
        return dataset.map(lambda x: x + shift).batch(2).prefetch(3)

    return [late, early]


@pytest.mark.parametrize("tried", [1, 2, 4, 50])
def test_every_element_comes_once_whichever_branch_is_chosen(tried: int) -> None:
    dataset = tf.data.Dataset.range(21)
    made = choose_fastest_branch(
        dataset, branches(tf.constant(5, tf.int64)), 2, num_elements_per_branch=tried
    ).repeat(2)
    want = [list(range(i + 5, min(i + 7, 26))) for i in range(0, 21, 2)]
    assert elements(made) == want * 2


def test_branches_can_give_more_than_they_take() -> None:
    dataset = tf.data.Dataset.range(12).batch(3)
    made = choose_fastest_branch(
        dataset, [lambda d: d.unbatch(), lambda d: d.flat_map(tf.data.Dataset.from_tensor_slices)],
        ratio_denominator=3, num_elements_per_branch=3,
    )  # fmt: skip
    assert elements(made) == list(range(12))


def test_wrong_ratios_and_branches_that_begin_anew_are_told() -> None:
    dataset = tf.data.Dataset.range(4)
    with pytest.raises(ValueError, match="ratio must be positive"):
        choose_fastest_branch(dataset, branches(1), ratio_numerator=0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be divisible"):
        elements(choose_fastest_branch(dataset, branches(1), 1, 3, num_elements_per_branch=4))
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than one WrapperIterator"):
        elements(choose_fastest_branch(dataset, [lambda d: d.repeat(2)], num_elements_per_branch=9))


@pytest.mark.parametrize("taken", [0, 1, 3, 4, 7])
def test_a_saved_walk_goes_on_where_it_stood(taken: int, tmp_path: Any) -> None:
    made = choose_fastest_branch(
        tf.data.Dataset.range(20), branches(0), 2, num_elements_per_branch=2
    )
    iterator = tf.data.make_initializable_iterator(made)
    step = iterator.get_next()
    saveable = tf.data.experimental.make_saveable_from_iterator(iterator)
    tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, saveable)
    saver = tf.train.Saver()
    want = [[i, i + 1] for i in range(0, 20, 2)]
    with tf.Session() as sess:
        sess.run(iterator.initializer)
        assert [sess.run(step).tolist() for _ in range(taken)] == want[:taken]
        saver.save(sess, str(tmp_path / "walk"))
    with tf.Session() as sess:
        sess.run(iterator.initializer)
        saver.restore(sess, str(tmp_path / "walk"))
        assert [sess.run(step).tolist() for _ in range(10 - taken)] == want[taken:]
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(step)


def test_both_go_into_a_graphdef_and_come_out() -> None:
    with tf.Graph().as_default() as graph:
        made = choose_fastest_branch(
            tf.data.Dataset.range(6), branches(tf.constant(1, tf.int64)), 2
        )
        tf.identity(tf.data.make_one_shot_iterator(made).get_next(), name="pair")
        (rows,) = map_defun(rows_of([])(lambda r: r * 3), [tf.range(4)], [tf.int32], [[]])
        tf.identity(rows, name="rows")
        text = graph.as_graph_def().SerializeToString()
    pair, rows = tf.import_graph_def(
        tf.GraphDef.FromString(text), return_elements=["pair:0", "rows:0"], name=""
    )
    with tf.Session() as sess:
        assert [sess.run(pair).tolist() for _ in range(3)] == [[1, 2], [3, 4], [5, 6]]
        assert sess.run(rows).tolist() == [0, 3, 6, 9]


def test_what_tells_tensorflow_how_to_work_changes_no_element() -> None:
    dataset = tf.data.Dataset.range(5).map(lambda x: x * 2).batch(2)
    plain = elements(dataset)
    for apply in (optimize(), optimize(["map_and_batch_fusion"]), model()):
        assert elements(dataset.apply(apply)) == plain
    np.testing.assert_equal(elements(dataset.apply(optimize(["make_sloppy"]))), plain)
