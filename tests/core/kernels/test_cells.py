"""The cells of sparse tensors: numbers that order them, and unions of two."""

from __future__ import annotations

import numpy as np
import pytest

from opdock.plugin import cells

RNG = np.random.default_rng(4)
ENDS = np.iinfo(np.int64)


@pytest.mark.parametrize("rank", [1, 2, 3, 40])
@pytest.mark.parametrize("values", [[0, 1, 2], [ENDS.min, -1, 0, ENDS.max], [0, 2**40, 2**61]])
def test_keys_order_cells_as_their_coordinates_do(rank: int, values: list[int]) -> None:
    indices = RNG.choice(np.array(values, np.int64), (200, rank))
    _, ranks = np.unique(indices, axis=0, return_inverse=True)
    _, found = np.unique(cells.keys(indices), return_inverse=True)
    np.testing.assert_array_equal(found.reshape(-1), ranks.reshape(-1))


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("repeats", [True, False])
def test_a_union_has_each_cell_of_both_once(ordered: bool, repeats: bool) -> None:
    def some(count: int) -> cells.Array:
        found = RNG.integers(0, 9, (count, 2))
        found = found if repeats else np.unique(found, axis=0)
        order = np.lexsort(found.T[::-1]) if ordered else RNG.permutation(len(found))
        return found[order]

    for a, b in ((some(40), some(30)), (some(0), some(5)), (some(5), some(0))):
        union = cells.union(a, b)
        every = [tuple(c) for c in np.concatenate([a, b])[union.source]]
        assert every == sorted(every)
        one, other = ([tuple(c) for c in part] for part in (a, b))
        assert {c: every.count(c) for c in every} == {
            c: max(one.count(c), other.count(c)) for c in {*one, *other}
        }
        for part, at in ((one, union.a), (other, union.b)):
            assert sorted(at[at >= 0]) == list(range(len(part)))
            assert all(part[i] == cell for i, cell in zip(at, every, strict=True) if i >= 0)
