"""Sets that grow together, against the plain way of keeping them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from opdock.compiler.ir.together import Together


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30))))
def test_who_was_joined_has_one_root(pairs):
    together, plain = Together(range(31)), [{i} for i in range(31)]
    for a, b in pairs:
        root = together.root(b)
        together.join(a, b)
        assert together.root(a) == root
        joined = plain[a] | plain[b]
        for member in joined:
            plain[member] = joined
    for i in range(31):
        assert {j for j in range(31) if together.root(j) == together.root(i)} == plain[i]
    assert 30 in together
    assert 31 not in together
