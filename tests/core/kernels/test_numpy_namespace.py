"""NumPy as the array API has it, without importing the wrapper for what NumPy says itself."""

from __future__ import annotations

import array_api_compat.numpy as compat
import numpy as np
import pytest

from opdock.kernels import numpy_namespace
from opdock.kernels.numpy_namespace import NATIVE, WRAPPED, NumpyNamespace

FOLLOWS = numpy_namespace._FOLLOWS
NAMES = sorted(name for name in compat.__all__ if not name.startswith("_"))


@pytest.mark.parametrize("name", NAMES)
def test_a_name_means_what_the_standard_says(name: str) -> None:
    found = getattr(NumpyNamespace("made"), name)
    if not FOLLOWS or name in WRAPPED:
        assert found is getattr(compat, name)
    elif name not in ("astype", "reshape"):
        # The wrapper adds nothing to what NumPy has, or what NumPy has by now.
        assert found is getattr(np, name)
        assert name in NATIVE or found is getattr(compat, name)


def test_reshape_is_numpys() -> None:
    xp, x = NumpyNamespace("made"), np.arange(6.0)
    assert xp.reshape(x, (2, 3)).base is x
    assert xp.reshape(x, (2, -1), copy=True).base is not x
    assert xp.reshape(np.float32(2.5), (1,)).shape == (1,)
    with pytest.raises(ValueError, match="cannot reshape"):
        xp.reshape(x, (4,))


def test_astype_takes_what_numpy_gives_for_no_dimensions() -> None:
    xp = NumpyNamespace("made")
    assert xp.astype(np.float32(2.5), xp.int32) == 2
    x = xp.ones((2,), dtype=xp.float32)
    assert xp.astype(x, xp.float32, copy=False) is x
    assert xp.astype(x, xp.float32) is not x


def test_parts_come_first_and_are_made_once() -> None:
    made: list[int] = []

    def part() -> object:
        made.append(1)
        return made

    xp = NumpyNamespace("made", {"add": part})
    assert xp.add is xp.add is made
    assert made == [1]


def test_what_neither_has_is_an_attribute_error() -> None:
    xp = NumpyNamespace("made")
    with pytest.raises(AttributeError, match="no attribute 'fold_rows'"):
        _ = xp.fold_rows
    with pytest.raises(AttributeError, match="module 'made' has no attribute '__path__'"):
        _ = xp.__path__
