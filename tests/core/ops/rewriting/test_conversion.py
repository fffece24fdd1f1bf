"""Which functions are rewritten, how they are found, and what is said of them."""

from __future__ import annotations

import ast
import collections
import functools
import logging
import traceback
import types
import unittest
from typing import Any, NamedTuple

import pytest

import opdock as tf
from opdock.ops.rewriting import calls, conversion, need, rules
from opdock.ops.rewriting.status import (
    ControlStatusCtx,
    ConversionOptions,
    Status,
    control_status_ctx,
)


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


@pytest.fixture
def rewritten(monkeypatch):
    """The names of the functions that are rewritten."""
    names = []
    original = conversion._rewritten

    def noting(function, options):
        names.append(function.__name__)
        return original(function, options)

    monkeypatch.setattr(conversion, "_rewritten", noting)
    return names


def value(function, x, *more):
    """What a `tf.function` gives of a tensor that the graph does not know."""
    fed = tf.placeholder(tf.float32, [])
    result = tf.function(function)(fed, *more)
    with tf.Session() as session:
        return session.run(result, {fed: x})


class Scale:
    by = 3.0

    def __init__(self):
        self.__secret = 5.0

    def method(self, x):
        return x * self.by if x > 0 else self.other(x)

    def other(self, x):
        if x < -10.0:
            return x
        return -x

    @classmethod
    def of_class(cls, x):
        return x * cls.by if x > 0 else x

    @staticmethod
    def of_none(x):
        return x * 7.0 if x > 0 else x

    def private(self, x):
        return x + self.__secret if x > 0 else x

    def __call__(self, x):
        return self.method(x)


class More(Scale):
    by = 4.0

    def method(self, x):
        y = super().method(x)
        return y + 1.0 if y > 0 else super(Scale, self).__getattribute__("other")(y)


def plus(x, *, k=1.0, **others):
    return x + k if x > 0 else x - k - others.get("also", 0.0)


# ---------------------------------------------------------------- what is called
def test_methods_and_callable_objects():
    assert value(Scale().method, 2.0) == 6.0
    assert value(Scale().method, -2.0) == 2.0
    assert value(Scale(), -20.0) == -20.0
    assert value(Scale.of_class, 2.0) == 6.0
    assert value(Scale.of_none, 2.0) == 14.0
    assert value(Scale().private, 2.0) == 7.0
    assert value(More().method, 2.0) == 9.0
    assert value(More(), -2.0) == 3.0


def test_partials_defaults_and_keywords():
    assert value(functools.partial(plus, k=2.0), 3.0) == 5.0
    assert value(functools.partial(plus, k=2.0, also=4.0), -3.0) == -9.0
    assert value(lambda x, given: plus(x, **given), 3.0, {"k": 5.0}) == 8.0
    assert value(lambda x: plus(*[x]), 3.0) == 4.0


def test_functions_within_see_and_set_the_variables_around():
    def outer(x):
        count = 0.0

        def inner(y, *, k=3.0):
            nonlocal count
            count += 1.0
            if y > 0:
                y = y + k
            return y

        first = inner(x)
        return inner(first, k=10.0) + count

    assert value(outer, 1.0) == 16.0


def test_functions_of_one_text_have_each_their_own_variables():
    def make(k):
        def f(x):
            return x * k if x > 0 else x

        return f

    assert [value(make(k), 1.0) for k in (2.0, 3.0)] == [2.0, 3.0]


def test_lambdas_of_one_line_are_told_apart():
    pair = (lambda x: x if x > 5 else -x), (lambda x: x * 2 if x > 0 else (lambda y: y)(x) - 1)
    assert [value(f, 3.0) for f in pair] == [-3.0, 6.0]
    assert value(pair[1], -3.0) == -4.0


def test_syntax_of_all_kinds():
    def f(x):
        try:
            if x > 0.0:
                x = x * 3.0
            {}["no"]
        except KeyError as e:
            x = x + len(e.args)
        finally:
            kept = 1.0
        with tf.name_scope("scope"):
            if x > 5.0:
                x = x + kept
        for i, (a, b) in enumerate([(1.0, 2.0), (3.0, 4.0)]):
            x = x + a * b if i else x
        *rest, last = [q for q in range(3) if q]
        annotated: float = f"{len(rest)!r:>3}".count("1")
        if (y := x) > 0.0:
            x = y + annotated
        del rest
        return x + last

    assert value(f, 2.0) == 2.0 * 3 + 1 + 1 + 12 + 1 + 2
    assert value(f, -2.0) == -2.0 + 1 + 12 + 1 + 2


def test_what_looks_at_its_caller():
    def f(x):
        a = 3.0
        if x > 0:
            x = x + eval("a")
            here = sorted(locals())
            assert {"a", "x"} <= set(here), here
        return x + len(globals()["__name__"] and "abcd")

    assert value(f, 1.0) == 8.0


# ---------------------------------------------------------------- what is left alone
def straight(x, to):
    return tf.cast(tf.reshape(x, [1]), tf.float32) + tf.zeros_like(x, dtype=to)


HELPERS = {"f": plus}


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x,
        lambda x: tf.nn.relu(x) * 2.0,
        lambda x, y: {"a": (x["im"], y), "b": isinstance(y, tuple)},
        lambda x: tf.data.Dataset.from_tensors(x),
        straight,
    ],
    ids=range(5),
)
def test_a_function_with_nothing_to_rewrite_is_left_as_it_is(function):
    assert need.is_plain(function)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x if x > 0 else -x,
        lambda x: 0 < x < 3,
        lambda x: not x,
        lambda x: x and x,
        lambda x: len(x),
        lambda x: range(x),
        lambda x: plus(x),
        lambda x: HELPERS["f"](x),
        lambda f: f(1),
        lambda x: x.method(),
        lambda x: Scale().method(x),
        lambda x: rules.artifact is None or x,
        lambda x: [y + 1 for y in x],
        lambda x: tf.map_fn(lambda y: y if y > 0 else -y, x),
        lambda x: super(More, x).method(x),
        lambda x: traceback.format_exc.__class__.__mro__.index(x),
        lambda x: tf.unknown_function(x),
    ],
    ids=range(17),
)
def test_a_function_that_may_have_something_to_rewrite_is_rewritten(function):
    assert not need.is_plain(function)


def test_a_variable_around_that_is_set_later():
    def f(x):
        return later(x)

    assert not need.is_plain(f)

    def later(x):
        return x if x > 0 else -x

    assert value(f, -3.0) == 3.0


def test_whatever_is_called_is_rewritten_once(rewritten):
    def helper(x):
        return x if x > 0 else -x

    def f(x):
        return helper(x) + helper(x + 1.0)

    assert value(f, -3.0) == 5.0
    assert value(f, -4.0) == 7.0
    assert rewritten == ["f", "helper"]


def test_what_is_called_is_left_as_it_is_where_the_conversion_does_not_go_on():
    def helper(x):
        return "tensor" if tf.is_tensor(x) and x is not None else "other"

    def f(x):
        return helper(x) if x is not None else None

    made = tf.autograph.to_graph(f, recursive=False)
    assert made(tf.constant(1)) == "tensor"


def test_libraries_classes_and_generators_are_left_alone(rewritten):
    class Pair(NamedTuple):
        a: Any
        b: Any

    def numbers(n):
        for i in range(n):
            yield float(i)

    @functools.lru_cache
    def kept(n):
        return n + 1

    def f(x):
        pair = Pair(x, 2.0)
        for i in numbers(3):
            pair = pair._replace(b=pair.b + i)
        assert tf.nn.relu(x).dtype.is_floating
        return pair.a * pair.b + float(collections.Counter([1, 1])[1]) + kept(0)

    assert value(f, 2.0) == 13.0
    assert rewritten == ["f"]


@pytest.mark.parametrize("entity", [tf.nn.relu, tf.Session, Scale, max, [].append, logging.info])
def test_what_is_left_alone(entity):
    assert rules.left_alone(entity)


@pytest.mark.parametrize("entity", [plus, Scale().method, Scale(), Scale.of_class])
def test_what_is_not(entity):
    assert not rules.left_alone(entity)


class Case(unittest.TestCase):
    def method(self, x):
        return x if x > 0 else -x


def test_what_is_asked_for_is_rewritten_whosever_it_is():
    assert value(Case().method, -2.0) == 2.0
    with pytest.raises(TypeError, match="bool"):
        value(lambda x: Case().method(x), -2.0)
    assert rules.left_alone(tf.identity, asked_for=True)
    assert value(tf.negative, 2.0) == -2.0


def test_do_not_convert():
    @tf.autograph.experimental.do_not_convert
    def raw(x):
        return inner(x)

    def inner(x):
        return x if x > 0 else -x

    def f(x):
        return raw(x)

    assert raw.__name__ == "raw"
    assert tf.autograph.experimental.do_not_convert()(raw)(2) == 2
    with pytest.raises(TypeError, match="bool"):
        value(f, 1.0)
    with pytest.raises(TypeError, match="bool"):
        tf.function(inner, autograph=False)(tf.placeholder(tf.float32, []))


# ---------------------------------------------------------------- what cannot be rewritten
def made_from_text(name, text="def f(x):\n    return x if x is not None else 0"):
    names = {}
    types.FunctionType(compile(text, name, "exec"), names)()
    return names["f"]


def test_code_without_source_runs_as_it_is(caplog):
    assert value(made_from_text("<string>"), 2.0) == 2.0
    assert not caplog.records
    function = made_from_text("<typed in>")
    assert value(function, 2.0) == 2.0
    assert value(function, 3.0) == 3.0
    (told,) = (r.getMessage() for r in caplog.records)
    assert "could not be transformed and will be executed as-is" in told
    assert "source code" in told
    with pytest.raises(calls.ConversionError, match="source code"):
        tf.autograph.to_graph(function)


def test_what_the_library_does_not_know_runs_as_it_is(caplog):
    def f(x):
        for _ in range(3):
            x = x + 1.0
        else:
            x = x * 2.0
        return x

    assert value(f, 1.0) == 8.0
    assert "for/else" in caplog.text


def test_strict_conversion_raises(monkeypatch):
    monkeypatch.setenv("AUTOGRAPH_STRICT_CONVERSION", "1")
    with pytest.raises(ValueError, match="source code"):
        value(made_from_text("<typed in, too>"), 2.0)


def test_a_program_may_go_to_another_folder(tmp_path, monkeypatch):
    path = tmp_path / "moved.py"
    path.write_text("def f(x):\n    return x if x > 0 else -x\n")
    function = made_from_text("moved.py", path.read_text())
    function.__globals__["__file__"] = str(path)
    monkeypatch.chdir("/")
    assert value(function, -2.0) == 2.0


def test_a_file_that_changed_is_told(tmp_path):
    path = tmp_path / "changed.py"
    text = "def f(x):\n    return x if x is not None else 0"
    path.write_text(f"# one more line\n{text}")
    with pytest.raises(calls.ConversionError, match="changed"):
        tf.autograph.to_graph(made_from_text(str(path), text))


@pytest.mark.parametrize("entity", [Scale, 3, len])
def test_only_functions_are_converted(entity):
    with pytest.raises(NotImplementedError, match="conversion is not supported"):
        tf.autograph.to_graph(entity)
    with pytest.raises(NotImplementedError, match="conversion is not supported"):
        tf.autograph.to_code(entity)


def test_to_code_is_the_rewritten_text():
    assert "ag__.if_exp" in tf.autograph.to_code(Scale.of_none)
    assert "ag__.if_stmt" in tf.autograph.to_code(Scale().other)


def test_verbosity(caplog, capsys):
    def f(x):
        return x if x > 0 else -x

    caplog.set_level(logging.INFO, "tensorflow")
    tf.autograph.set_verbosity(2, alsologtostdout=True)
    try:
        value(f, 1.0)
    finally:
        tf.autograph.set_verbosity(0)
    assert "ag__.if_exp" in caplog.text
    assert "Converted <function" in capsys.readouterr().out
    tf.autograph.trace("x", 1)
    assert capsys.readouterr().out == "x 1\n"


def test_a_rewritten_function_looks_like_the_users():
    made = tf.autograph.to_graph(plus)
    assert (made.__name__, made.__module__, made.__kwdefaults__) == ("plus", __name__, {"k": 1.0})
    assert made.__code__.co_firstlineno == plus.__code__.co_firstlineno


# ---------------------------------------------------------------- the internal interface
def test_tf_convert_follows_the_context():
    def f(x):
        return x if x > 0 else -x

    x = tf.placeholder(tf.float32, [])
    enabled, disabled = ControlStatusCtx(Status.ENABLED), ControlStatusCtx(Status.DISABLED)
    made = calls.tf_convert(f, control_status_ctx())
    assert made(x).graph is x.graph
    assert calls.tf_convert(made, disabled) is made
    assert calls.tf_convert(f, enabled, convert_by_default=False)(x).graph is x.graph
    for left in (
        calls.tf_convert(f, disabled),
        calls.tf_convert(f, control_status_ctx(), convert_by_default=False),
    ):
        with pytest.raises(TypeError, match="bool"):
            left(x)


def test_what_is_asked_for_is_on_within():
    def f(x):
        return x, control_status_ctx().status

    options = ConversionOptions(recursive=True, user_requested=True, optional_features=None)
    assert calls.converted_call(f, options, (1,), {})[1] is Status.ENABLED
    assert control_status_ctx().status is Status.UNSPECIFIED


def test_trees_of_others_are_left_alone() -> None:
    """The library notes things on parts that Python puts into all trees."""

    def f(x: Any) -> Any:
        return -x if x > 0 and x != 1 else x + 1

    before = ast.dump(ast.parse("a = -b + c if d > 0 and not e else f"))
    tf.autograph.to_graph(f)
    assert ast.dump(ast.parse("a = -b + c if d > 0 and not e else f")) == before
