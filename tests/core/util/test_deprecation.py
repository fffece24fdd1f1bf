"""What TF's `deprecation` says of functions, in their documentation and in the log."""

from __future__ import annotations

import pytest

from opdock.api import logging
from opdock.util import deprecation


@pytest.fixture
def told(monkeypatch):
    found: list[str] = []
    monkeypatch.setattr(logging, "warning", lambda text, *values: found.append(text % values))
    return found


def test_a_function_says_once_that_it_is_deprecated(told) -> None:
    @deprecation.deprecated("2020-01-31", "Call new().")
    def old(x):
        """Does it.

        Args:
          x: a number.
        """
        return x

    assert old(1) + old(2) == 3
    (said,) = told
    assert said.startswith(f"From {__file__}:")
    assert said.endswith("is deprecated and will be removed after 2020-01-31.\n"
                         "Instructions for updating:\nCall new().")  # fmt: skip
    assert old.__doc__ == (
        "Does it. (deprecated)\n\nWarning: THIS FUNCTION IS DEPRECATED. It will be removed after "
        "2020-01-31.\nInstructions for updating:\nCall new().\n\nArgs:\n  x: a number."
    )


def test_arguments_by_position_and_by_name(told) -> None:
    @deprecation.deprecated_args(None, "Leave it out.", ("old", None), "rest", warn_once=False)
    def call(x, old=None, *rest):
        return x, old, rest

    call(1)
    call(1, None)
    assert told == []
    call(1, 2)
    call(1, old=2)
    call(1, None, 3)
    assert [" with old " in t for t in told] == [True, True, False]
    assert " with rest is deprecated and will be removed in a future version" in told[2]


def test_values_of_arguments(told) -> None:
    @deprecation.deprecated_arg_values(None, "Use another.", mode="slow")
    def call(mode="fast"):
        return mode

    call()
    assert told == []
    call("slow")
    assert "with mode=slow is deprecated" in told[0]
    assert "SOME ARGUMENT VALUES ARE DEPRECATED: `(mode='slow')`" in call.__doc__


def test_a_class_under_its_old_name(told) -> None:
    class New:
        def __init__(self, x):
            self.x = x

    old = deprecation.deprecated_alias("m.Old", "m.New", New)
    assert isinstance(old(3), New)
    assert old(4).x == 4
    assert len(told) == 1
    assert "The name m.Old is deprecated. Please use m.New instead." in told[0]


def test_silence(told) -> None:
    @deprecation.deprecated(None, "Call new().", warn_once=False)
    def old():
        """Does it."""

    with deprecation.silence():
        old()
    assert told == []
    old()
    assert len(told) == 1


def test_what_is_asked_of_decorators() -> None:
    with pytest.raises(ValueError, match="YYYY-MM-DD"):
        deprecation.deprecated("04-07-2016", "Do not.")
    with pytest.raises(ValueError, match="conversion instructions"):
        deprecation.deprecated(None, "")
    with pytest.raises(ValueError, match="@property appears before @deprecated"):
        deprecation.deprecated(None, "Do not.")(property(lambda self: 1))
    with pytest.raises(ValueError, match=r"not present in the function signature: \['y'\]"):
        deprecation.deprecated_args(None, "Do not.", "y")(lambda x: x)
    with pytest.raises(ValueError, match="Must use keyword args to call _named_f"):
        deprecation.keyword_args_only(_named_f)(1)


def _named_f(x):
    return x
