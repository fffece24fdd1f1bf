"""Functions that a kind of value takes over."""

from __future__ import annotations

import inspect

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
