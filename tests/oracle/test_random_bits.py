"""Random ops draw TensorFlow's bits: integers equal, floats equal but for the last two bits.

opdock rounds log, sin and cos correctly; the math library that TensorFlow was recorded with does
not quite, which shows in the last bits of a normal deviate.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import opdock as tf
from tests.oracle import reference, scope

pytestmark = reference.needs_reference
LAST_BITS = 0b11  # units in the last place
BFLOAT16_BITS = 1  # read as bit patterns


@functools.cache
def drawn() -> Mapping[str, np.ndarray]:
    return dict(np.load(reference.FOLDER / "random" / "random.npz", allow_pickle=False))


def argument(value: Any) -> Any:
    """A recorded argument as the call takes it."""
    if isinstance(value, dict):
        return tf.constant(np.asarray(value["np"], value["dtype"]))
    if isinstance(value, str) and value.startswith("tf."):
        return getattr(tf, value[3:])
    return value


def function(path: str) -> Any:
    return functools.reduce(getattr, path.split("."), tf)


@pytest.mark.parametrize("record", reference.cases("random/random.json"))
def test_bits(record: dict[str, Any]) -> None:
    known = scope.reason(f"random/{record['id']}")
    if known:
        with pytest.raises((AttributeError, tf.errors.UnimplementedError)):
            function(record["api"])
        return
    with tf.Graph().as_default():
        if record["graph_seed"] is not None:
            tf.set_random_seed(record["graph_seed"])
        keywords = {name: argument(value) for name, value in record["kwargs"].items()}
        output = function(record["api"])(*[argument(a) for a in record["args"]], **keywords)
        for _ in range(2):  # a new session draws the same again
            with tf.Session() as sess:
                for key in record["runs"]:
                    compare(sess.run(output), drawn()[key])


def compare(got: np.ndarray, want: np.ndarray) -> None:
    assert got.shape == want.shape
    if got.dtype.name == "bfloat16":
        bits = got.view(np.uint16).astype(np.int32) - want.astype(np.int32)
        assert np.abs(bits).max(initial=0) <= BFLOAT16_BITS
    elif got.dtype.kind == "f":
        assert got.dtype == want.dtype
        np.testing.assert_array_max_ulp(got, want, LAST_BITS)
    else:
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
