"""Functions that a kind of value takes over."""

from __future__ import annotations

import inspect

import pytest

from opdock.graph.nodes import dispatch


def test_a_registered_kind_is_asked(monkeypatch):
    monkeypatch.setattr(dispatch, "_kinds", {})

    class Cells:
        pass

    @dispatch.extensible
    def add(x, y, name=None):
        """Adds."""
        return "plain", x, y, name

    assert add(1, 2) == ("plain", 1, 2, None)
    dispatch.register(Cells, lambda fn, args, kwargs: (fn.__name__, len(args), sorted(kwargs)))
    assert add(1, y=2) == ("plain", 1, 2, None)
    assert add(Cells(), 2) == ("add", 2, []) and add(1, y=Cells(), name="n") == (
        "add",
        1,
        ["name", "y"],
    )
    assert add([1, Cells()], 2) == ("add", 2, [])
    assert list(inspect.signature(add).parameters) == ["x", "y", "name"] and add.__doc__ == "Adds."


def test_a_kind_may_pass(monkeypatch):
    monkeypatch.setattr(dispatch, "_kinds", {})

    class Cells:
        pass

    dispatch.register(Cells, lambda fn, args, kwargs: NotImplemented)
    assert dispatch.extensible(lambda x: "plain")(Cells()) == "plain"


def test_dispatchers_do_what_a_function_could_not():
    class Cells:
        pass

    @dispatch.add_dispatch_support
    def total(values, name=None):
        return sum(values)

    @dispatch.dispatch_for_types(total, Cells)
    def of_cells(values, name=None):
        return "cells"

    assert total([1, 2]) == 3
    assert total(Cells()) == total([Cells(), 1]) == total(values=(Cells(),)) == "cells"
    with pytest.raises(TypeError, match="not iterable"):
        total(3)
    assert len(total._tf_dispatchers) == 1
    assert dispatch.dispatch(total, 3) is dispatch.OpDispatcher.NOT_SUPPORTED
    assert dispatch.dispatch(total, Cells()) == "cells"


def test_dispatchers_take_the_arguments_of_a_function_that_asks_them():
    @dispatch.add_dispatch_support
    def asks(x, y=1):
        return x

    with pytest.raises(AssertionError, match="signature must exactly match"):
        dispatch.dispatch_for_types(asks, int)(lambda a, b=1: a)
    with pytest.raises(AssertionError, match="signature must exactly match"):
        dispatch.dispatch_for_types(asks, int)(lambda x, y: x)
    with pytest.raises(AssertionError, match="Dispatching not enabled for"):
        dispatch.dispatch_for_types(lambda x: x, int)(lambda x: x)
