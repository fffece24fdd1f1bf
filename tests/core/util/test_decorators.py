"""Decorators as TF's libraries make them: looked through, told of, and rewrapped."""

from __future__ import annotations

import functools

import pytest

from opdock.util import decorators, exporting, inspecting


def plus_one(target):
    def wrapper(x):
        return wrapper.__wrapped__(x) + 1

    return decorators.make_decorator(target, wrapper)


def double(x, scale=2):
    """Twice as much."""
    return scale * x


def test_a_decorated_function_looks_like_what_it_decorates() -> None:
    made = plus_one(double)
    assert made(3) == 7
    assert (made.__name__, made.__doc__) == ("double", "Twice as much.")
    found, target = decorators.unwrap(made)
    assert target is double
    assert [d.decorator_name for d in found] == ["plus_one"]
    assert inspecting.getargspec(made).args == ["x", "scale"]
    assert inspecting.getsource(made) == inspecting.getsource(double)


def test_rewrapping_reaches_the_innermost_wrapper() -> None:
    made = plus_one(plus_one(double))
    decorators.rewrap(made, double, lambda x: 10 * x)
    assert made(3) == 32
    assert decorators.rewrap(double, double, abs) is abs


def test_a_method_can_be_decorated() -> None:
    class Holder:
        factor = 3
        scaled = decorators.TFDecorator("scaling", lambda self, x: self.factor * x)

    assert Holder().scaled(2) == 6


def test_arguments_that_a_decorator_brings_come_first() -> None:
    brought = inspecting.ArgSpec(["a", "b"], None, None, (1,))
    made = decorators.TFDecorator("", decorators.TFDecorator("", double, "", brought))
    assert inspecting.getargspec(made) is brought
    assert inspecting.getfullargspec(made).args == ["a", "b"]
    assert inspecting.getcallargs(made, 5) == {"a": 5, "b": 1}


def test_partials_tell_of_the_arguments_that_are_left() -> None:
    def three(m, n, o=4):
        return m, n, o

    spec = inspecting.getargspec(functools.partial(three, 1, n=2))
    assert spec == (["n", "o"], None, None, (2, 4))
    with pytest.raises(ValueError, match=r"Some arguments \['n'\] do not have default value"):
        inspecting.getargspec(functools.partial(three, m=1))
    with pytest.raises(ValueError, match="unknown partial keyword"):
        inspecting.getargspec(functools.partial(three, other=1))


def test_names_of_what_can_be_called() -> None:
    assert inspecting.get_func_name(plus_one(double)) == "double"
    assert inspecting.get_func_name("".join) == str(type("".join))
    with pytest.raises(ValueError, match="must be callable"):
        inspecting.get_func_code(3)


def test_exports_are_noted_on_what_is_decorated() -> None:
    def first():
        """One."""

    made = plus_one(first)
    assert exporting.tf_export("a.b", "c", v1=["a.b"])(made) is made
    assert exporting.get_v2_names(first) == ["a.b", "c"]
    assert exporting.get_v1_names(first) == ["a.b"]
    assert exporting.get_canonical_name_for_symbol(made) == "a.b"
    with pytest.raises(exporting.SymbolAlreadyExposedError, match=r"already exposed as \('a.b'"):
        exporting.tf_export("d")(made)
    exporting.tf_export("e", overrides=[made])(double)
    assert exporting.get_v2_names(first) == []
    del double._tf_api_names, double._tf_api_names_v1


@pytest.mark.parametrize(
    ("export", "name"),
    [(exporting.tf_export, "estimator.x"), (exporting.estimator_export, "x.estimator")],
)
def test_each_package_exports_its_own_names(export, name) -> None:
    with pytest.raises(exporting.InvalidSymbolNameError):
        export(name)
