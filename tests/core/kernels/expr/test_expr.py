"""Scalar expressions: reading, writing, composing, typing, and their value on arrays."""

from __future__ import annotations

import math
import tracemalloc

import array_api_compat.numpy as xp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opdock import dtypes, errors
from opdock.kernels.expr import tree as ex
from opdock.kernels.expr.evaluation import evaluator
from opdock.kernels.expr.functions import FUNCTIONS
from opdock.kernels.expr.lowering import CAST, INPUT, NUMBER, fold_numbers, lower

# A Python function for each function that random expressions may use, total on finite floats.
MEANING = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
    "max": max, "min": min, "neg": lambda x: -x, "abs": abs, "tanh": math.tanh, "sin": math.sin,
    "floor": lambda x: float(math.floor(x)), "lt": lambda x, y: x < y, "ge": lambda x, y: x >= y,
    "where": lambda c, x, y: x if c else y, "bitand": lambda x, y: x and y,
    "bitnot": lambda x: not x,
}  # fmt: skip
FLOAT_BINARY = ("add", "sub", "mul", "max", "min")
FLOAT_UNARY = ("neg", "abs", "tanh", "sin", "floor")

leaves = st.one_of(
    st.sampled_from(["x", "y", "z"]).map(ex.name),
    st.floats(-3, 3, allow_nan=False).map(ex.number),
    st.integers(-3, 3).map(ex.number),
)


def grow(children):
    """Expressions with float value, of the given ones."""
    # Numbers alone have no type to be compared in, so one side is an input.
    compare = st.builds(ex.apply, st.sampled_from(["lt", "ge"]), children, st.just(ex.name("y")))
    condition = st.one_of(
        compare,
        st.builds(ex.apply, st.just("bitand"), compare, compare),
        st.builds(ex.apply, st.just("bitnot"), compare),
    )
    return st.one_of(
        st.builds(ex.apply, st.sampled_from(FLOAT_BINARY), children, children),
        st.builds(ex.apply, st.sampled_from(FLOAT_UNARY), children),
        st.builds(ex.apply, st.just("where"), condition, children, children),
    )


expressions = st.recursive(leaves, grow, max_leaves=12)


def value_of(node, env):
    """The value of an expression for one element, by walking the tree."""
    match node:
        case ex.Name(name=name):
            return env[name]
        case ex.Number(value=value):
            return float(value)
        case ex.Apply(function=function, args=args):
            return MEANING[function](*(value_of(a, env) for a in args))
    raise AssertionError(node)


@given(expressions)
def test_text_reads_back_as_the_same_object(node):
    assert ex.parse(ex.to_text(node)) is node


@given(expressions, st.lists(st.floats(-4, 4), min_size=3, max_size=3))
@settings(max_examples=200)
def test_the_evaluator_agrees_with_walking_the_tree(node, values):
    inputs = ["x", "y", "z"]
    line = lower([node], dict.fromkeys(inputs, dtypes.float64), results=[dtypes.float64])
    run = evaluator(line, xp, inputs)
    got = run(*[np.array([v, -v]) for v in values])
    for i, sign in enumerate((1, -1)):
        want = value_of(node, dict(zip(inputs, (sign * v for v in values), strict=True)))
        assert got.shape == (2,)
        np.testing.assert_allclose(got[i], want, rtol=1e-12, atol=1e-12)


@given(expressions, expressions)
def test_substitution_is_composition(outer, inner):
    composed = ex.substitute(outer, {"x": inner})
    env = {"x": 0.3, "y": -1.25, "z": 2.0}
    through = value_of(outer, {**env, "x": value_of(inner, env)})
    assert value_of(composed, env) == pytest.approx(through, nan_ok=True)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("-x ** 2", "-x ** 2"),
        ("(-x) ** 2", "(-x) ** 2"),
        ("a - (b - c)", "a - (b - c)"),
        ("(a < b) & (b < c)", "(a < b) & (b < c)"),
        ("x if x > 0 else alpha * x", "where(x > 0, x, alpha * x)"),
        ("-(-2) * x", "2 * x"),
        ("max(x, -inf)", "max(x, -inf)"),
        ("cast(x, T) + 1", "cast(x, T) + 1"),
        ("((x))", "x"),
    ],
)
def test_canonical_text(text, canonical):
    assert ex.to_text(ex.parse(text)) == canonical


@pytest.mark.parametrize(
    "text",
    ["", "x +", "x.y", "x[0]", "f(x)", "exp(x, y)", "exp(x=1)", "lambda: x", "'a'", "a < b < c",
     "a and b", "(x, y)", "__import__('os')", "exp(*x)", "cast(x)", "1j"],
)  # fmt: skip
def test_everything_else_is_refused(text):
    with pytest.raises(ValueError, match="Scalar expression"):
        ex.parse(text)


def test_equal_expressions_are_one_object_and_computed_once():
    node = ex.parse("exp(x + 1) * exp(1 + x) + exp(x + 1)")
    assert ex.parse("exp(x+1)") in set(ex.walk(node))
    steps = lower([node, ex.parse("exp(x + 1)")], {"x": dtypes.float32}).steps
    assert [s.op for s in steps].count("exp") == 2


def test_a_deep_chain_of_shared_nodes_stays_small():
    node = ex.name("x")
    for _ in range(200):
        node = ex.apply("add", node, node)
    assert len(lower([node], {"x": dtypes.float32}).steps) == 201


def test_names_and_functions():
    node = ex.parse("where(x > 0, x, alpha * expm1(x))")
    assert ex.names(node) == {"x", "alpha"}
    assert ex.functions_used(node) == {"where", "gt", "mul", "expm1"}


def test_numbers_take_the_type_of_their_company():
    line = lower([ex.parse("x * 2 + 1")], {"x": dtypes.int8}, results=[dtypes.int8])
    assert {s.dtype for s in line.steps} == {dtypes.int8}
    assert evaluator(line, xp, ["x"])(np.array([3], np.int8)).dtype == np.int8


def test_numbers_among_themselves_are_folded():
    assert fold_numbers(ex.parse("sqrt(4) * (1 + 2) * x")) is ex.parse("6.0 * x")


def test_attributes_are_numbers_and_types():
    node = ex.parse("cast(where(x > 0, x, alpha * x), DstT)")
    attrs = {"alpha": 0.5, "DstT": dtypes.float64, "unused": "text"}
    line = lower([node], {"x": dtypes.float32}, attrs, [dtypes.float64])
    got = evaluator(line, xp, ["x"])(np.array([-2.0, 3.0], np.float32))
    assert got.dtype == np.float64 and got.tolist() == [-1.0, 3.0]


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16])
def test_narrow_types_are_computed_wide_and_rounded_once(dtype):
    line = lower([ex.parse("(x + 1) - 1")], {"x": dtype}, results=[dtype])
    computed = [s.dtype for s in line.steps if s.op not in (INPUT, CAST, NUMBER)]
    assert computed == [dtypes.float32] * 2
    x = np.array([2.0**-9], dtype.np)
    got = evaluator(line, xp, ["x"])(x)
    assert got.dtype == dtype.np and got == x  # in the narrow type itself it would be 0


def test_a_cast_to_a_narrow_type_rounds_there():
    line = lower([ex.parse("cast(cast(x, bfloat16), float32)")], {"x": dtypes.float32})
    x = np.array([1.001], np.float32)
    assert evaluator(line, xp, ["x"])(x) == x.astype(ml_dtypes.bfloat16).astype(np.float32)


def test_several_results_share_their_steps():
    roots = [ex.parse("exp(x)"), ex.parse("exp(x) + y"), ex.parse("x > 0")]
    line = lower(roots, {"x": dtypes.float64, "y": dtypes.float64})
    first, second, third = evaluator(line, xp, ["x", "y"])(np.zeros(2), np.ones(2))
    assert first.tolist() == [1, 1] and second.tolist() == [2, 2] and third.dtype == np.bool_


@pytest.mark.usefixtures("nothing_beside")
def test_a_long_line_keeps_only_what_it_still_needs():
    text = "x"
    for i in range(20):
        text = f"({text}) * 0.5 + {i}"
    run = evaluator(lower([ex.parse(text)], {"x": dtypes.float64}), xp, ["x"])
    x = np.ones(1 << 16)
    tracemalloc.start()
    run(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * x.nbytes


def test_a_result_that_ignores_inputs_has_the_full_shape():
    line = lower([ex.parse("x")], {"x": dtypes.float32, "y": dtypes.float32})
    run = evaluator(line, xp, ["x", "y"])
    assert run(np.float32([1, 2]), np.zeros((3, 1), np.float32)).shape == (3, 2)
    constant = lower([ex.parse("1")], {"x": dtypes.int32}, results=[dtypes.int32])
    assert evaluator(constant, xp, ["x"])(np.zeros((2, 2), np.int32)).tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize(
    ("text", "types", "message"),
    [
        ("x + q", {"x": dtypes.float32}, "neither an input"),
        ("x + y", {"x": dtypes.float32, "y": dtypes.float64}, "applied to float32 and float64"),
        ("x + y", {"x": dtypes.float16, "y": dtypes.float32}, "applied to float16 and float32"),
        ("floor(x)", {"x": dtypes.complex64}, "does not take complex64"),
        ("where(x, x, x)", {"x": dtypes.float32}, "not bool"),
        ("x > 0", {"x": dtypes.float32}, "the op's output is float32"),
    ],
)
def test_types_that_do_not_fit(text, types, message):
    with pytest.raises(ValueError, match=message):
        lower([ex.parse(text)], types, results=[dtypes.float32])


def test_integer_errors_are_reported_and_announced():
    line = lower([ex.parse("x // y")], {"x": dtypes.int32, "y": dtypes.int32})
    assert line.may_raise
    assert not lower([ex.parse("x // y")], dict.fromkeys("xy", dtypes.float32)).may_raise
    run = evaluator(line, xp, ["x", "y"])
    assert run(np.int32([7, -7]), np.int32([2, 2])).tolist() == [3, -4]
    with pytest.raises(errors.InvalidArgumentError, match="division by zero"):
        run(np.int32([1]), np.int32([0]))
    powers = lower([ex.parse("x ** y")], {"x": dtypes.int64, "y": dtypes.int64})
    with pytest.raises(errors.InvalidArgumentError, match="negative integer powers"):
        evaluator(powers, xp, ["x", "y"])(np.array([2]), np.array([-1]))


@pytest.mark.parametrize("dtype", [np.int8, np.int64])
def test_truncated_and_floored_division(dtype):
    x, y = np.array([7, -7, 7, -7], dtype), np.array([2, 2, -2, -2], dtype)
    results = {"x / y": [3, -3, -3, 3], "x // y": [3, -4, -4, 3], "fmod(x, y)": [1, -1, 1, -1],
               "x % y": [1, 1, -1, -1]}  # fmt: skip
    for text, want in results.items():
        line = lower([ex.parse(text)], dict.fromkeys("xy", dtypes.as_dtype(dtype)))
        got = evaluator(line, xp, ["x", "y"])(x, y)
        assert got.dtype == dtype and got.tolist() == want


def test_every_function_has_a_meaning_and_a_domain():
    for name, function in FUNCTIONS.items():
        assert function.name == name and function.meaning and function.domain
        assert function.raises <= function.domain
        assert function.result in ("same", "bool", "real", "complex", "uint8")


def test_a_choice_between_numbers_takes_the_type_of_its_user():
    run = evaluator(
        lower([ex.parse("where(x > 0, 1, -1) * y")], dict.fromkeys("xy", dtypes.float16)),
        xp, ["x", "y"],
    )  # fmt: skip
    got = run(np.float16([-2, 3]), np.float16([5, 7]))
    assert got.dtype == np.float16 and got.tolist() == [-5, 7]
    alone = lower([ex.parse("where(x > 0, 1, 0)")], {"x": dtypes.float32}, results=[dtypes.int32])
    assert evaluator(alone, xp, ["x"])(np.float32([-1, 1])).dtype == np.int32
    with pytest.raises(ValueError, match="no type of its own"):
        lower([ex.parse("where(x > 0, 1, 0)")], {"x": dtypes.float32})
