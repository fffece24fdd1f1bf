"""The structures that `cond`, `case` and `while_loop` take and return, and what they refuse."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

import opdock as tf


class One(NamedTuple):
    a: Any


class Two(NamedTuple):
    a: Any
    b: Any


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as made:
        yield made


def predicate():
    return tf.placeholder(tf.bool, [])


def kind(value):
    """A structure with "t" for each tensor."""
    if isinstance(value, dict):
        return {k: kind(v) for k, v in value.items()}
    if hasattr(value, "_fields"):
        return type(value)(*map(kind, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(kind, value))
    assert isinstance(value, tf.Tensor)
    return "t"


def filled(structure):
    """The structure with a tensor for each "t"."""
    if isinstance(structure, dict):
        return {k: filled(v) for k, v in structure.items()}
    if hasattr(structure, "_fields"):
        return type(structure)(*map(filled, structure))
    if isinstance(structure, (list, tuple)):
        return type(structure)(map(filled, structure))
    return tf.constant(1)


@pytest.mark.parametrize(
    ("returned", "loose"),
    [
        ("t", "t"), (["t"], "t"), (("t",), "t"), ([["t"]], "t"), ([[["t"]]], ["t"]),
        (One("t"), "t"), ({"a": "t"}, {"a": "t"}), ([{"a": "t"}], {"a": "t"}),
        (["t", "t"], ["t", "t"]), (Two("t", "t"), Two("t", "t")),
    ],
)  # fmt: skip
def test_results_of_branches(returned, loose):
    fn = lambda: filled(returned)
    assert kind(tf.cond(predicate(), fn, fn)) == loose
    assert kind(tf.cond(predicate(), fn, fn, strict=True)) == returned
    assert kind(tf.case([(predicate(), fn)], default=fn)) == loose
    assert kind(tf.case([(predicate(), fn)], default=fn, strict=True)) == returned


def test_one_branch_may_return_a_list_of_one():
    one, listed = lambda: tf.constant(1), lambda: [tf.constant(1)]
    assert kind(tf.cond(predicate(), one, listed)) == "t"
    with pytest.raises(ValueError, match="Incompatible return values of true_fn and false_fn"):
        tf.cond(predicate(), one, listed, strict=True)


@pytest.mark.parametrize(
    ("start", "body", "result", "same"),
    [
        ([0], lambda i: i + 1, "t", ["t"]),
        ((0,), lambda i: [i + 1], "t", ["t"]),
        ([0], lambda i: (i + 1,), "t", ("t",)),
        ([[0]], lambda i: [[i[0] + 1]], ["t"], [["t"]]),
        ([{"a": 0}], lambda i: [{"a": i["a"] + 1}], {"a": "t"}, [{"a": "t"}]),
        ([One(0)], lambda i: [One(i.a + 1)], One("t"), [One("t")]),
        ([0, 1], lambda i, j: (i + 1, j), ("t", "t"), ("t", "t")),
        ((0, [1]), lambda i, j: [i + 1, j], ["t", ["t"]], ["t", ["t"]]),
        ([{"a": 0, "b": 1}], lambda i: [i], [{"a": "t", "b": "t"}], [{"a": "t", "b": "t"}]),
    ],
)
def test_results_of_loops(start, body, result, same):
    keep = lambda *_: tf.constant(True)
    assert kind(tf.while_loop(keep, body, start)) == result
    assert kind(tf.while_loop(keep, body, start, return_same_structure=True)) == same


@pytest.mark.parametrize("limit", [3, 2.5, "int32", "int64", "float32"])
def test_limits_of_any_type(limit):
    if isinstance(limit, str):
        limit = tf.placeholder_with_default(tf.constant(3, limit), [])
    y = tf.while_loop(lambda i: True, lambda i: i + 1, [0], maximum_iterations=limit)
    with tf.Session() as session:
        assert session.run(y) == 3


def inside_a_loop():
    """A tensor of the body of a loop."""
    found = []
    tf.while_loop(lambda i: i < 3, lambda i: i + (found.append(tf.constant(1)) or found[0]), [0])
    return found[0]


REFUSED = {
    "cond(): false_fn argument required": lambda: tf.cond(predicate(), filled),
    "cond(): true_fn and fn1 may not be set simultaneously.": lambda: tf.cond(
        predicate(), filled, filled, fn1=filled
    ),
    "true_fn must have a return value.": lambda: tf.cond(predicate(), lambda: None, filled),
    "true_fn and false_fn must return at least one result.": lambda: tf.cond(
        predicate(), list, list
    ),
    "Input 'pred' of 'Switch' Op has type int32 that does not match expected type of bool.": (
        lambda: tf.cond(tf.constant(1), filled, filled)
    ),
    "Shape must be rank 0 but is rank 1 for 'cond/Switch' (op: 'Switch')": lambda: tf.cond(
        tf.constant([True]), filled, filled
    ),
    "Outputs of true_fn and false_fn must have the same type: int32, float32": lambda: tf.cond(
        predicate(), lambda: tf.constant(1), lambda: tf.constant(1.0)
    ),
    "Incompatible return types of true_fn and false_fn": lambda: tf.cond(
        predicate(), lambda: filled(["t", "t"]), lambda: filled(("t", "t"))
    ),
    "The two structures don't have the same nested structure": lambda: tf.cond(
        predicate(), lambda: {"a": tf.constant(1)}, lambda: {"b": tf.constant(1)}
    ),
    "fns must be a list, tuple, or dict": lambda: tf.case(3),
    "pred must be Tensor of type bool": lambda: tf.case([(tf.constant(1), filled)]),
    "pred must be a Tensor, got: True": lambda: tf.case([(True, filled)]),
    "Shape must be rank 0 but is rank 1 for 'while/LoopCond'": lambda: tf.while_loop(
        lambda i: [True, False], lambda i: i, [0]
    ),
    "maximum_iterations must be a scalar, saw shape: (2,)": lambda: tf.while_loop(
        lambda i: True, lambda i: i, [0], maximum_iterations=[1, 2]
    ),
    "the same number of elements": lambda: tf.while_loop(
        lambda i, j: True, lambda i, j: (i, j, j), [0, 0]
    ),
    "enters the loop with shape (1,), but has shape (2,) after one iteration": (
        lambda: tf.while_loop(lambda i: True, lambda i: tf.concat([i, i], 0), [tf.ones([1])])
    ),
    "It enters the loop with shape (1, 1), but the specified shape invariant is (?, 5)": (
        lambda: tf.while_loop(
            lambda x: True,
            lambda x: x,
            [tf.SparseTensor([[0]], [1.0], [9])],
            shape_invariants=[tf.TensorShape([5])],
        )
    ),
    "Cannot use 'while/Const_1' as input to 'while_1/add' because they are in different while "
    "loops.": lambda: (lambda inner: tf.while_loop(lambda i: True, lambda i: i + inner, [0]))(
        inside_a_loop()
    ),
    "Cannot use 'while/Const_1' as input to 'Add' because 'while/Const_1' is in a while loop.": (
        lambda: tf.add(1, inside_a_loop(), name="Add")
    ),
    "but the specified shape invariant is (3,)": lambda: tf.while_loop(
        lambda i: True, lambda i: i, [tf.ones([2])], shape_invariants=[tf.TensorShape([3])]
    ),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused(text):
    with pytest.raises((TypeError, ValueError)) as caught:
        REFUSED[text]()
    assert text in str(caught.value)


def test_cases_that_exclude_each_other():
    p, q = predicate(), predicate()
    one = lambda: tf.constant(1)
    exclusive = tf.case([(p, one), (q, one)], default=one, exclusive=True)
    exhaustive = tf.case([(p, one), (q, lambda: tf.constant(2))])
    with tf.Session() as session:
        assert session.run([exclusive, exhaustive], {p: False, q: True}) == [1, 2]
        with pytest.raises(tf.errors.InvalidArgumentError, match="more than 1 conditions"):
            session.run(exclusive, {p: True, q: True})
        with pytest.raises(tf.errors.InvalidArgumentError, match="None of conditions evaluated"):
            session.run(exhaustive, {p: False, q: False})


def test_sparse_loop_variables_may_change_their_number_of_elements():
    x = tf.SparseTensor([[0], [3]], [2.0, 4.0], [10])

    def more(i, x):
        at = tf.cast(tf.fill([1, 1], i), tf.int64)
        return i + 1, tf.sparse.add(x, tf.SparseTensor(at, [1.0], x.dense_shape))

    _, out = tf.while_loop(lambda i, _: i < 5, more, [0, x])
    assert out.indices.shape.as_list() == [None, 1] and out.dense_shape.shape.as_list() == [1]
    with tf.Session() as session:
        dense = session.run(tf.sparse.to_dense(out))
    assert dense.tolist() == [3, 1, 1, 5, 1, 0, 0, 0, 0, 0]


def test_an_exclusive_case_of_one_condition():
    x = tf.placeholder(tf.int32, [])
    out = tf.case([(tf.equal(x, 1), lambda: tf.constant(2))], exclusive=True)
    with tf.Session() as session:
        assert session.run(out, {x: 1}) == 2
        with pytest.raises(tf.errors.InvalidArgumentError, match="Input error"):
            session.run(out, {x: 4})


def test_ragged_loop_variables_may_grow_rows_and_by_default_no_new_ones():
    with tf.Graph().as_default():
        start = [tf.constant(0), tf.ragged.constant([[1, 2], [3]])]

        def along(axis):
            return lambda i, x: (i + 1, tf.concat([x, x], axis=axis))

        _, wide = tf.while_loop(lambda i, x: i < 2, along(1), start)
        assert (wide.values.shape.as_list(), wide.row_splits.shape.as_list()) == ([None], [3])
        with pytest.raises(ValueError, match=r"enters the loop with shape \(3,\), but has shape"):
            tf.while_loop(lambda i, x: i < 2, along(0), start)
        free = [tf.TensorShape([]), tf.TensorShape([None, None])]
        _, high = tf.while_loop(lambda i, x: i < 2, along(0), start, free)
        assert high.row_splits.shape.as_list() == [None]
        _, deep = tf.while_loop(
            lambda i, x: i < 1, along(-1), [tf.constant(0), tf.ragged.constant([[[1], [2, 3]], []])]
        )
        with tf.Session() as session:
            assert session.run(wide).to_list() == [[1, 2] * 4, [3] * 4]
            assert session.run(high).to_list() == [[1, 2], [3]] * 4
            assert session.run(deep).to_list() == [[[1, 1], [2, 3, 2, 3]], []]


def test_a_reference_goes_through_a_loop_and_comes_out_after_it():
    with tf.Graph().as_default():
        x = tf.Variable(1.0, use_resource=False)._ref()

        def body(i, held):
            assert held.dtype is tf.float32._as_ref
            with tf.control_dependencies([tf.assign_add(held, 2.0)]):
                return tf.identity(i + 1), tf.raw_ops.RefIdentity(input=held)

        turns, after = tf.while_loop(lambda i, held: i < 10, body, [tf.constant(0), x])
        assert (turns.dtype, after.dtype) == (tf.int32, tf.float32._as_ref)
        (slope,) = tf.gradients(after * 3.0, x)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            assert session.run([turns, after, slope]) == [10, 21.0, 3.0]
        with pytest.raises(TypeError, match="dtype float32_ref but has dtype float32 after one"):
            tf.while_loop(lambda held: held < 2.0, lambda held: held + 1.0, [x])


def test_what_a_branch_computes_can_be_used_outside_where_it_was_taken() -> None:
    first, second = tf.placeholder(tf.bool, []), tf.placeholder(tf.bool, [])
    v = tf.Variable([1.0, 2.0])
    inside = []

    def taken() -> tf.Tensor:
        inside.append(v * v)
        return inside[0] + 1.0

    tf.cond(first, taken, lambda: tf.zeros([2]))
    later = tf.cond(second, lambda: inside[0] * 3.0, lambda: tf.ones([2]))
    outside = inside[0] * 5.0
    assert outside.shape.as_list() == [2]
    slope = tf.gradients(later, v)[0]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        both = {first: True, second: True}
        for fetch, expected in ((later, [3, 12]), (outside, [5, 20]), (slope, [6, 12])):
            assert session.run(fetch, both).tolist() == expected
        neither = {first: False, second: False}
        assert session.run([later, slope], neither)[0].tolist() == [1, 1]
        with pytest.raises(tf.errors.InvalidArgumentError, match="pop from an empty list"):
            session.run(outside, neither)


def test_what_no_result_of_a_branch_needs_stays_inside() -> None:
    inside = []

    def taken() -> tf.Tensor:
        inside.append(tf.random_uniform([]))
        return tf.constant(1.0)

    tf.cond(tf.placeholder(tf.bool, []), taken, lambda: 0.0)
    with pytest.raises(ValueError, match="must be from the same graph"):
        _ = inside[0] + 1.0


def test_a_branch_may_be_written_for_other_sizes_than_those_outside() -> None:
    x, size = tf.zeros([15, 6]), tf.constant([5, 8])
    wide = tf.cond(
        tf.shape(x)[0] > 0,
        lambda: tf.ones([2, 5, 8]),
        lambda: tf.reshape(x, [-1, size[0], size[1]]),
    )
    assert wide.shape.as_list() == [None, None, None]
    with tf.Session() as session:
        assert session.run(wide).shape == (2, 5, 8)
    with pytest.raises(ValueError, match="evenly divisible by 40"):
        tf.cond(tf.shape(x)[0] > 0, lambda: tf.zeros([1, 5, 8]), lambda: tf.reshape(x, [-1, 5, 8]))


def test_slices_whose_indices_differ_in_type_have_wide_ones() -> None:
    values, x = tf.constant([10]), tf.placeholder(tf.int32, [])
    narrow, wide = tf.constant([0], tf.int32), tf.constant([0], tf.int64)
    made = tf.cond(
        x > 0,
        lambda: tf.IndexedSlices(values + 1, narrow),
        lambda: tf.IndexedSlices(values - 1, wide),
    )
    assert made.indices.dtype is tf.int64
    with tf.Session() as sess:
        for given, want in ((1, 11), (-1, 9)):
            found = sess.run(made, {x: given})
            assert found.values.tolist() == [want] and found.indices.tolist() == [0]
