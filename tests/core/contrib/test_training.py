"""`tf.contrib.training`: hyperparameters."""

from __future__ import annotations

import pytest

import opdock as tf

HParams = tf.contrib.training.HParams


def test_values_keep_the_type_of_the_first() -> None:
    params = HParams(rate=0.1, steps=10, name="a", sizes=[1, 2], on=False)
    assert params.parse("rate=1,steps=20,name=b c,sizes=[3 4,5],on=true") is params
    assert params.values() == {
        "rate": 1.0, "steps": 20, "name": "b c", "sizes": [3, 4, 5], "on": True
    }  # fmt: skip
    assert params.rate == 1.0 and isinstance(params.rate, float)
    assert "steps" in params and "other" not in params
    assert HParams(**params.values()).parse_json(params.to_json()).values() == params.values()
    params.del_hparam("name")
    assert params.get("name", 3) == 3 and params.get("steps", 4) == 20
    with pytest.raises(ValueError, match=r"incompatible with default=1.5"):
        params.get("steps", 1.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps=1.5", "Could not parse hparam 'steps' of type 'int' with value '1.5'"),
        ("other=1", "Unknown hyperparameter type for other"),
        ("steps=1,steps=2", "Multiple assignments to variable 'steps'"),
        ("steps", "Malformed hyperparameter value: steps"),
        ("on=perhaps", "Could not parse hparam 'on' of type 'bool'"),
        ("sizes=3", "Must pass a list for multi-valued parameter: sizes"),
        ("sizes[1]=[2]", "Assignment of a list to a list index"),
    ],
)
def test_text_that_does_not_fit_is_told(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("[", r"\[")):
        HParams(steps=1, sizes=[1], on=True).parse(text)


def test_elements_are_parsed_by_index() -> None:
    found = tf.contrib.training.parse_values("a[1]=3,a[0]=2,b=4", {"a": int}, ignore_unknown=True)
    assert found == {"a": {1: 3, 0: 2}}


def test_reserved_names_and_other_types() -> None:
    with pytest.raises(ValueError, match="Hyperparameter name is reserved: parse"):
        HParams(parse=1)
    with pytest.raises(ValueError, match="cannot be empty: a"):
        HParams(a=[])
    with pytest.raises(ValueError, match="Could not cast hparam 'a'"):
        HParams(a=1).set_hparam("a", 1.5)
