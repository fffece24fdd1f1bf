"""What a record names and its op does not have, in the words of `opdock doctor`."""

from __future__ import annotations

import pytest

from opdock import dtypes
from opdock.kernels.select.flaws import flaw
from opdock.plugin import Kernel

# ops of core's families, which are found by name
RELU = {"op": "Relu", "fn": print}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"may_alias": {5: 0}}, "may_alias has {5: 0}, and Relu no result 5"),
        ({"may_alias": {0: 9}}, "may_alias has {0: 9}, and Relu no argument 9"),
        ({"may_alias": {0: -1}}, "may_alias has {0: -1}, and Relu no argument -1"),
        ({"host_inputs": {"x"}}, "host_inputs names x, for Relu no argument (it has features)"),
        ({"keeps": {"x"}}, "keeps names x, for Relu no argument (it has features, activations)"),
        ({"traced": {"x"}}, "traced names x, for Relu none of its host_inputs (it has none)"),
        ({"dtypes": {"Q": {dtypes.int8}}}, "the record constrains Q, for Relu an attribute that"),
    ],
)
def test_a_flaw_is_told(fields, words):
    assert flaw(Kernel(**RELU | fields)).startswith(words)


@pytest.mark.parametrize(
    "fields",
    [
        {}, {"may_alias": {0: 0}}, {"op": "AddN", "may_alias": {0: 7}},
        {"op": "Split", "may_alias": {7: 1}}, {"op": "acme>Whatever", "may_alias": {3: 3}},
    ],
)  # fmt: skip
def test_what_is_none(fields):
    """How many a list of arguments or results has is known of a node alone."""
    assert flaw(Kernel(**RELU | fields)) == ""
