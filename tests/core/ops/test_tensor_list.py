"""Lists of tensors: what they hold, their gradients, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.ops.composed import tensor_lists as lists

raw = tf.raw_ops


def run(fetches, feed=None):
    """Evaluates in a session of its own."""
    with tf.Session() as session:
        return session.run(fetches, feed)


def nothing_known(items):
    """A list of whose elements the graph knows nothing."""
    return tf.placeholder_with_default(items, [])


def test_a_reserved_list_reads_as_zeros_until_it_is_written():
    items = lists.tensor_list_reserve([2], 3, tf.float32)
    items = lists.tensor_list_set_item(items, 1, [1.0, 2.0])
    got = run([
        lists.tensor_list_stack(items, tf.float32),
        lists.tensor_list_get_item(items, 0, tf.float32),
        lists.tensor_list_gather(items, [1, 1, 0], tf.float32),
        raw.TensorListElementShape(input_handle=items, shape_type=tf.int64),
    ])  # fmt: skip
    assert got[0].tolist() == [[0, 0], [1, 2], [0, 0]]
    assert got[1].tolist() == [0, 0]
    assert got[2].tolist() == [[1, 2], [1, 2], [0, 0]]
    assert got[3].tolist() == [2] and got[3].dtype == np.int64


def test_a_write_leaves_the_list_that_it_began_with_alone():
    first = lists.tensor_list_from_tensor([1.0, 2.0, 3.0], [])
    second = lists.tensor_list_set_item(first, 0, 9.0)
    third, last = lists.tensor_list_pop_back(second, tf.float32)
    fourth = lists.tensor_list_set_item(third, 3, 5.0, resize_if_index_out_of_bounds=True)
    got = run([
        lists.tensor_list_stack(items, tf.float32) for items in (first, second, third, fourth)
    ] + [last])  # fmt: skip
    assert [x.tolist() for x in got[:4]] == [[1, 2, 3], [9, 2, 3], [9, 2], [9, 2, 0, 5]]
    assert got[4] == 3


def test_scattered_rows_and_what_lies_between():
    new = lists.tensor_list_scatter([[1.0], [2.0]], [3, 0], [1])
    into = lists.tensor_list_scatter([[7.0]], [1], input_handle=new)
    limited = raw.TensorListScatterV2(
        tensor=[[1.0]], indices=[1], element_shape=[1], num_elements=3
    )
    got = run([lists.tensor_list_stack(x, tf.float32) for x in (new, into, limited)])
    assert [x.ravel().tolist() for x in got] == [[2, 0, 0, 1], [2, 7, 0, 1], [0, 1, 0]]


def test_lists_in_tensors():
    one = lists.tensor_list_from_tensor([1.0, 2.0], [])
    two = lists.tensor_list_from_tensor([3.0], [])
    batch = tf.stack([one, two])
    longer = raw.TensorListPushBackBatch(input_handles=batch, tensor=[8.0, 9.0])
    joined = raw.TensorListConcatLists(input_a=longer, input_b=batch, element_dtype=tf.float32)
    got = run([lists.tensor_list_stack(x, tf.float32) for x in tf.unstack(joined)])
    assert [x.tolist() for x in got] == [[1, 2, 8, 1, 2], [3, 9, 3]]


def test_zeros_like_a_list_are_a_list():
    words = lists.empty_tensor_list([], tf.string)
    words = raw.TensorListPushBack(input_handle=words, tensor="a")
    numbers = lists.tensor_list_from_tensor([[1, 2], [3, 4]], [2])
    stacked = [
        lists.tensor_list_stack(tf.zeros_like(words), tf.string),
        lists.tensor_list_stack(tf.zeros_like(numbers), tf.int32),
    ]
    assert [s.shape.as_list() for s in stacked] == [[None], [None, 2]]
    got = run(stacked)
    assert got[0].tolist() == [b""]
    assert got[1].tolist() == [[0, 0], [0, 0]]


def test_gradients_go_where_the_elements_came_from():
    x = tf.placeholder(tf.float32, [3, 2])
    y = tf.placeholder(tf.float32, [2])
    items = lists.tensor_list_from_tensor(x, [2])
    items = lists.tensor_list_set_item(items, 1, y)  # hides a row of x
    items = lists.tensor_list_scatter(2.0 * x[:1], [2], input_handle=items)
    total = tf.reduce_sum(
        lists.tensor_list_stack(items, tf.float32) * [[1.0], [10.0], [100.0]]
    ) + 3.0 * tf.reduce_sum(lists.tensor_list_get_item(items, 0, tf.float32))
    total += 5.0 * tf.reduce_sum(lists.tensor_list_gather(items, [1, 1], tf.float32))
    feed = {x: np.arange(6.0).reshape(3, 2), y: [1.0, 1.0]}
    gx, gy = run(tf.gradients(total, [x, y]), feed)
    assert gx.tolist() == [[204, 204], [0, 0], [0, 0]]
    assert gy.tolist() == [20, 20]


def test_gradients_of_a_loop_that_writes_a_list():
    x = tf.placeholder(tf.float32, [])

    def body(i, items):
        before = lists.tensor_list_get_item(items, i, tf.float32, [])
        return i + 1, lists.tensor_list_set_item(items, i + 1, before * x)

    start = lists.tensor_list_set_item(lists.tensor_list_reserve([], 4, tf.float32), 0, x)
    _, items = tf.while_loop(lambda i, items: i < 3, body, [0, start])
    powers = lists.tensor_list_stack(items, tf.float32, element_shape=[])
    slope = tf.gradients(powers * [1.0, 1.0, 1.0, 2.0], x)[0]
    got, dx = run([powers, slope], {x: 2.0})
    assert got.tolist() == [2, 4, 8, 16]
    assert dx == 1 + 2 * 2 + 3 * 4 + 2 * 4 * 8


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lists.tensor_list_get_item(lists.tensor_list_from_tensor([1.0], []), 1,
                                            tf.float32),
         "Trying to access element 1 in a list with 1 elements"),
        (lambda: lists.tensor_list_set_item(lists.tensor_list_from_tensor([1.0], []), 1, 2.0),
         "Trying to modify element 1 in a list with 1 elements"),
        (lambda: lists.tensor_list_set_item(lists.tensor_list_from_tensor([1.0], []), 0, [2.0]),
         r"incompatible shape at a list index. Item element shape: \[1\] list shape: \[\]"),
        (lambda: raw.TensorListPushBack(
            input_handle=lists.empty_tensor_list([], tf.float32, 0), tensor=1.0),
         "into a full list list size: 0 max_num_elements: 0"),
        (lambda: lists.tensor_list_stack(
            nothing_known(lists.tensor_list_from_tensor([1.0], [])), tf.int32),
         "op elements int32 but list elements float"),
        (lambda: lists.tensor_list_stack(lists.empty_tensor_list(None, tf.float32), tf.float32),
         "empty list with non-fully-defined element_shape: <unknown>"),
        (lambda: lists.tensor_list_stack(lists.tensor_list_reserve(None, 2, tf.int32), tf.int32),
         "only contains uninitialized tensors"),
        (lambda: lists.tensor_list_gather(lists.tensor_list_from_tensor([1.0], []), [-1],
                                          tf.float32),
         "Index -1 out o range"),
        (lambda: lists.tensor_list_scatter([1.0], [-2], []), "must all be non-negative"),
        (lambda: raw.TensorListResize(
            input_handle=lists.tensor_list_from_tensor([1.0], []), size=-1), "non-negative"),
        (lambda: lists.tensor_list_reserve([], -1, tf.float32), "must be non negative, got -1"),
        (lambda: lists.tensor_list_split([1.0, 2.0], [None], [1]),
         "Length of tensor: 2 Values used: 1"),
        (lambda: tf.add_n([lists.tensor_list_reserve([], n, tf.float32) for n in (1, 2)]),
         "different lengths. One is 1 and the other is 2"),
        (lambda: tf.add_n([lists.tensor_list_reserve(s, 1, tf.float32) for s in ([], [2])]),
         r"incompatible element shapes. One is \[\] and the other is \[2\]"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(make, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        run(make().op)


def test_elements_have_the_static_shape_that_their_list_declares():
    reserved = lists.tensor_list_reserve([None, 2], 3, tf.float32)
    with tf.control_dependencies([tf.no_op()]):
        items = tf.identity(lists.tensor_list_set_item(reserved, 0, [[1.0, 2.0]]))
    assert lists.tensor_list_get_item(items, 0, tf.float32).shape.as_list() == [None, 2]
    assert lists.tensor_list_stack(items, tf.float32).shape.as_list() == [None, None, 2]
    assert lists.tensor_list_gather(items, [0, 1], tf.float32).shape.as_list() == [2, None, 2]
    rest, element = lists.tensor_list_pop_back(items, tf.float32)
    assert element.shape.as_list() == [None, 2]
    assert lists.tensor_list_concat(rest, tf.float32).shape.as_list() == [None, 2]
    # What the op declares is known too.
    narrow = lists.tensor_list_get_item(items, 0, tf.float32, element_shape=[1, None])
    assert narrow.shape.as_list() == [1, 2]
    assert lists.tensor_list_stack(nothing_known(items), tf.float32).shape.rank is None


def test_a_body_knows_the_elements_of_a_list_that_it_captures():
    items = lists.tensor_list_from_tensor(tf.zeros([3, 4]), [4])

    def body(i, total):
        row = lists.tensor_list_get_item(items, i, tf.float32)
        assert row.shape.as_list() == [4]
        return i + 1, total + row

    _, total = tf.while_loop(lambda i, _: i < 3, body, [0, tf.ones([4])])
    assert run(total).tolist() == [1.0] * 4


def test_long_lists_are_not_walked_again_for_each_element():
    items = lists.empty_tensor_list([2], tf.float32)
    for _ in range(300):
        items = raw.TensorListPushBack(input_handle=items, tensor=[1.0, 2.0])
    assert lists.tensor_list_stack(items, tf.float32).shape.as_list() == [None, 2]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lists.tensor_list_stack(lists.tensor_list_from_tensor([1.0], []), tf.int32),
         "read from list with wrong element dtype. List has type float but expected type int32"),
        (lambda: lists.tensor_list_get_item(lists.tensor_list_from_tensor([1.0], []), 0, tf.int32),
         "Expected list with element dtype int32 but got list with element dtype float"),
        (lambda: raw.TensorListPushBackBatch(
            input_handles=tf.stack([lists.empty_tensor_list([], tf.float32)] * 2), tensor=[1, 2]),
         "push to list with wrong element dtype. List has type float but trying to push"),
        (lambda: raw.TensorListConcatLists(
            input_a=tf.stack([lists.empty_tensor_list([], tf.float32)]),
            input_b=tf.stack([lists.empty_tensor_list([1], tf.float32)]), element_dtype=tf.float32),
         "Shapes must be equal rank, but are 0 and 1"),
        (lambda: lists.tensor_list_split([1.0, 2.0], [], [1, 1]),
         "Shapes must be equal rank, but are 1 and 0"),
    ],
)  # fmt: skip
def test_what_static_shapes_refuse(make, message):
    with pytest.raises(ValueError, match=message):
        make()
