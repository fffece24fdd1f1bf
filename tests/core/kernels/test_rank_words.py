"""What a step says of an argument with another number of dimensions is what TensorFlow says."""

from __future__ import annotations

import re

import numpy as np
import pytest

import opdock as tf
from opdock.eager.modes import eager_mode
from opdock.graph.nodes import registry
from opdock.kernels.rank_words import refusal, rules


def test_every_rule_is_of_an_op_and_an_argument_of_it() -> None:
    for op, own in rules().items():
        known = {arg.name for arg in registry.get(op).definition.inputs}
        for rule in own:
            assert rule.argument in known, f"{op}: {rule.argument}"
            named = set(re.findall(r"\{(\w+?)(?:_rank)?\}", rule.text))
            assert named <= {*known, "rank", "name", "nth", "at"}, f"{op}: {rule.text}"


def test_every_text_can_be_said() -> None:
    """Of shapes that are wrong for one argument alone, and known for no other."""
    for op, own in rules().items():
        spec = registry.get(op)
        attrs = {n: a.default for n, a in spec.definition.attrs.items()}
        attrs |= {a.number_attr: 1 for a in spec.definition.inputs if a.number_attr}
        attrs |= {a.type_list_attr: [1] for a in spec.definition.inputs if a.type_list_attr}
        order = [arg.name for arg in spec.definition.inputs]
        for rule in own:
            rank = rule.least - 1 if rule.least else rule.most + 1
            shapes = [(2,) * rank if name == rule.argument else None for name in order]
            told = refusal(spec, shapes, attrs)
            assert told is not None, f"{op} {rule.argument}"
            assert told.split("{")[0][:4] == rule.text.format(
                "", **dict.fromkeys((*order, *(f"{n}_rank" for n in order)), ""),
                rank=rank, name=rule.argument, nth=0, at=0,
            )[:4]  # fmt: skip


CASES = [
    (lambda a, b: tf.fill(a, b), (2, 3), "dims must be a vector, got shape []"),
    (lambda a, b: tf.fill(a, b), ([2], [3]), "value must be a scalar, got shape [1]"),
    (lambda a, b: tf.tile(a, b), ([7], 2), "Expected multiples to be 1-D, but got shape []"),
    (lambda a, b: tf.reshape(a, b), (7, 1), "sizes input must be 1-D, not []"),
    (lambda a, b: tf.concat([a, a], b), ([2], [0]), "axis tensor should be a scalar integer"),
    (lambda a, b: tf.range(a, b), ([0], 3), "start must be a scalar, not shape [1]"),
    (
        lambda a, b: tf.slice(np.arange(10), a, b), (2, [3]),
        "Expected begin and size arguments to be 1-D tensors of size 1, but got shapes [] and [1]",
    ),
    (
        lambda a, b: tf.math.unsorted_segment_sum(a, 1, b), (7, [4]),
        "num_segments should be a scalar, not shape [1]",
    ),
    (lambda a, b: tf.one_hot(a, b), ([1], [3]), "depth must be a scalar, but got: [1]"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "values", "words"), CASES)
def test_a_step_says_what_the_kernel_does(function, values, words) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        fed = [tf.placeholder(tf.int32) for _ in values]
        result = function(*fed)
        with pytest.raises(tf.errors.InvalidArgumentError, match=re.escape(words)):
            sess.run(result, dict(zip(fed, values, strict=True)))


@pytest.mark.parametrize(("function", "values", "words"), CASES)
def test_so_does_an_operation_that_runs_as_it_is_made(function, values, words) -> None:
    with eager_mode(), pytest.raises(tf.errors.InvalidArgumentError, match=re.escape(words)):
        function(*map(tf.constant, values))


def test_while_the_graph_is_built_the_shape_function_speaks() -> None:
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="^Shape must be rank 1 but is rank 0"):
            tf.fill(tf.placeholder(tf.int32, []), 1)
