"""Definitions of ops in TensorFlow's small language: what is malformed is told where it stands."""

from __future__ import annotations

import pytest

from opdock.graph.nodes import opdef, registry
from opdock.plugin import define_op


@pytest.mark.parametrize(
    ("name", "signature", "attrs", "told"),
    [
        ("acme>A", "x T y", "", "argument 'x T y' has unknown type ''"),
        ("acme>A", "x: T -> y: U", "T: {float}", "argument 'y' has unknown type 'U'"),
        ("acme>A", "x: T -> y: T", "T: {flaot}", "there is no element type 'flaot'"),
        ("acme>A", "x: T -> y: T", "T: type = DT_FLAOT", "there is no element type 'flaot'"),
        ("acme>A", "x: float", "n: integer", "unknown attribute type 'integer'"),
        ("acme>A", "x: float", "n: int = one", "invalid literal for int"),
        ("acme>A", "x: float, x: float", "", "the name 'x' is there twice"),
        ("acme>A", "x: float -> x: float", "", "the name 'x' is there twice"),
        ("acme>A", "x: T -> T: float", "T: type", "the name 'T' is there twice"),
        ("acme>A", "1x: float", "", "'1x' is no name of an argument or an attribute"),
        ("acme>A", "x: N * float", "", "argument 'x' has no attribute 'N: int' for its number"),
        ("acme>A", "x: N * float", "N: type", "argument 'x' has no attribute 'N: int'"),
        ("acme A", "x: float", "", "the name must be of letters, digits and"),
        ("", "x: float", "", "the name must be of letters, digits and"),
    ],
)
def test_a_malformed_definition_is_told_as_it_is_made(name, signature, attrs, told):
    before = registry.find(name)
    with pytest.raises(ValueError, match=f"Malformed definition of op '{name}': ") as caught:
        define_op(name, signature, attrs)
    assert told in str(caught.value)
    assert registry.find(name) is before is None


def test_all_definitions_of_core_are_right():
    """They are parsed at their first use."""
    found = [spec.definition for spec in registry.all_ops(probes=True)]
    assert len(found) > 1000 and all(isinstance(d, opdef.OpDef) for d in found)
