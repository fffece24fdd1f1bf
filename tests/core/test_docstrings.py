"""Docstrings that several functions share."""

from __future__ import annotations

import inspect

import pytest

import opdock as tf
from opdock.docstrings import explained

WORDS = {"a": "one of two.", "b": "one of two.", "name": "a name.", "returns": "A sum."}


def test_what_is_said_of_several_in_a_row_is_said_once():
    @explained(WORDS, name="its name.", raises="ValueError: never.")
    def add(a, b, name=None):
        """Adds."""

    assert inspect.getdoc(add) == (
        "Adds.\n\nArgs:\n    a, b: one of two.\n    name: its name.\n\n"
        "Returns:\n    A sum.\n\nRaises:\n    ValueError: never."
    )


def test_an_argument_that_nobody_explains_is_a_mistake():
    with pytest.raises(KeyError, match="other"):

        @explained(WORDS)
        def add(a, other):
            """Adds."""


@pytest.mark.parametrize("module", [tf.layers, tf.losses, tf.metrics])
def test_every_argument_of_the_public_functions_is_explained(module):
    functions = [f for f in vars(module).values() if inspect.isfunction(f)]
    assert functions
    for function in functions:
        if "the arguments are those of" in function.__doc__:
            continue
        args = function.__doc__.partition("Args:")[2].partition("Returns:")[0]
        for name in inspect.signature(function).parameters:
            assert name in args, (function.__name__, name)
