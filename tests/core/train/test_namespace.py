"""tf.train: every listed name exists, and no module hides behind the name of a function."""

from __future__ import annotations

from types import ModuleType

import pytest

import opdock.train


@pytest.mark.parametrize("name", sorted(opdock.train._NAMES))
def test_name(name: str) -> None:
    for other in opdock.train._NAMES.values():
        __import__(other)
    assert not isinstance(getattr(opdock.train, name), ModuleType)


def test_unknown_names() -> None:
    with pytest.raises(AttributeError, match="NoSuchThing"):
        opdock.train.NoSuchThing
