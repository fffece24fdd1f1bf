"""Hashes in generated code are those that NumPy computes."""

from __future__ import annotations

import numpy as np
import pytest

from opdock_cpu.text import hash_loops, hashing
from opdock_cpu.text.packed import joined

RNG = np.random.default_rng(23)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")


def test_few_strings_of_many_lengths_are_hashed_as_many() -> None:
    """In generated code and in NumPy: however few there are, and none."""
    texts = [bytes(RNG.integers(0, 256, n).astype(np.uint8)) for n in range(40)]
    whole = joined(np.array(texts, object))
    for loops, plain in (
        (hash_loops.farm, hashing.fingerprint64),
        (hash_loops.murmur, hashing.murmur64),
        (hash_loops.city, hashing.fingerprint128),
        (lambda s: hash_loops.sip(s, (3, 5)), lambda s: hashing.siphash24(s, (3, 5))),
    ):
        np.testing.assert_array_equal(loops(whole), plain(texts))
    assert joined(np.array([], object)).starts.size == 0
    with pytest.raises(TypeError):
        joined(np.array(["text"], object))
