"""Several reductions in one pass: however they lie, whatever their kinds, however many threads."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opdock.plugin import as_dtype, codegen, dtypes
from opdock_cpu.crew import Loop
from opdock_cpu.jit.generated import Generated, folds_well, layout_of
from opdock_cpu.jit.loops import BAND, BLOCK, module
from opdock_cpu.jit.plan import Plan
from opdock_cpu.sharing import Governor
from opdock_cpu.threads import use_threads

RNG = np.random.default_rng(11)
KINDS = ("sum", "mean", "max", "min", "prod")
Reduce = codegen.Reduce


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")


@pytest.fixture(params=[1, 2, 4])
def team(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """So many threads, for small work too."""
    monkeypatch.setattr("opdock_cpu.jit.generated._PARALLEL", 0)
    monkeypatch.setattr("opdock_cpu.jit.generated._CHUNK", 1)
    use_threads(request.param)
    yield
    use_threads(0)


def shape_of(shape: tuple[int, ...], reduce: Reduce) -> tuple[int, ...]:
    return tuple(
        1 if a in reduce.axes else n
        for a, n in enumerate(shape)
        if reduce.keep_dims or a not in reduce.axes
    )


def code(
    texts: list[str], inputs: dict[str, Any], reduces: list[Reduce]
) -> tuple[Generated, tuple[int, ...]]:
    """The code of a line whose last results are reduced, and the shape that it computes."""
    shape = np.broadcast_shapes(*(a.shape for a in inputs.values()))
    types = {n: as_dtype(a.dtype) for n, a in inputs.items()}
    (dtype,) = set(types.values())
    line = codegen.lower([codegen.parse(t) for t in texts], types, results=[dtype] * len(texts))
    whole = len(texts) - len(reduces)
    shapes = [shape] * whole + [shape_of(shape, r) for r in reduces]
    taken = [(types[n], a.shape) for n, a in inputs.items()]
    given = [(dtype, s) for s in shapes]
    return Generated(line, tuple(inputs), taken, shape, given, reduces), shape


def check(inputs: dict[str, Any], text: str, value: Any, reduces: list[Reduce]) -> None:
    """One whole result, and reductions of the same value."""
    made, _ = code([text] * (1 + len(reduces)), inputs, reduces)
    whole, *folded = made(list(inputs.values()))
    np.testing.assert_array_equal(whole, value)
    rtol = 3e-6 if value.dtype == np.float32 else 1e-12
    for got, r in zip(folded, reduces, strict=True):
        want = getattr(np, r.kind)(value.astype(np.float64), axis=r.axes, keepdims=r.keep_dims)
        assert got.shape == want.shape
        scale = np.abs(value).astype(np.float64).sum(axis=r.axes, keepdims=r.keep_dims)
        atol = rtol * (scale if r.kind == "sum" else scale / (value.size / want.size))
        assert (np.abs(got - want) <= np.maximum(atol, rtol * np.abs(want))).all(), r


class Turns(Governor):
    """Shares work out every other time."""

    def wanted(self, base: float) -> bool:
        self.shares = not self.shares
        return self.shares


def every_way(rank: int) -> list[Reduce]:
    """Each kind over each set of axes."""
    subsets = [tuple(a for a in range(rank) if bits >> a & 1) for bits in range(1, 2**rank)]
    return [Reduce(KINDS[i % 5], axes, bool(i % 2)) for i, axes in enumerate(subsets)]


@pytest.mark.usefixtures("team")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "shape",
    [(7,), (3, 2 * BLOCK + 5), (2 * BAND + 3, 19), (5, 6, 7), (BAND + 1, 3, 40), (2, 3, 4, 5)],
)
def test_reductions_over_differing_axes(shape: tuple[int, ...], dtype: Any) -> None:
    # Near one, so that products stay finite.
    x = (1 + RNG.normal(size=shape) / 100).astype(dtype)
    for first in range(0, 2 ** len(shape) - 1, 7):
        check({"x": x}, "x * x", x * x, every_way(len(shape))[first : first + 7])


@pytest.mark.parametrize("shape", [(3, 2 * BLOCK + 5), (2 * BAND + 3, 19), (5, 6, 7), (40_000,)])
def test_results_are_the_same_bits_for_any_number_of_threads(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opdock_cpu.jit.generated._PARALLEL", 0)
    monkeypatch.setattr("opdock_cpu.jit.generated._CHUNK", 1)
    monkeypatch.setattr("opdock_cpu.jit.generated.Loop", functools.partial(Loop, Turns()))
    x = RNG.normal(size=shape).astype(np.float32)
    reduces, found = every_way(len(shape)), []
    for count in (1, 2, 5):
        use_threads(count)
        try:
            made, _ = code(["x * x"] * (1 + len(reduces)), {"x": x}, reduces)
            assert made._chunks > 1
            found += [made([x]) for _ in range(4)]
        finally:
            use_threads(0)
    for results in found[1:]:
        for a, b in zip(found[0], results, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.usefixtures("team")
def test_inputs_that_broadcast() -> None:
    x, row, column = (RNG.normal(size=s).astype(np.float32) for s in ((6, 9, 33), (33,), (9, 1)))
    reduces = [Reduce("sum", (0, 1), False), Reduce("max", (2,), False), Reduce("min", (1,), True)]
    check({"x": x, "row": row, "column": column}, "x * row + column", x * row + column, reduces)


@settings(max_examples=25)
@given(
    shape=st.lists(st.integers(1, 6), min_size=1, max_size=4),
    data=st.data(),
)
def test_any_axes_and_kinds(shape: list[int], data: st.DataObject) -> None:
    os.environ["OPDOCK_JIT"] = "sync"  # a function-scoped fixture does not reach each example
    axes = st.sets(st.integers(0, len(shape) - 1), min_size=1).map(lambda s: tuple(sorted(s)))
    made = st.builds(Reduce, st.sampled_from(KINDS), axes, st.booleans())
    reduces = data.draw(st.lists(made, min_size=1, max_size=4))
    x = (0.5 + RNG.normal(size=shape) / 100).astype(np.float32)
    use_threads(data.draw(st.sampled_from([1, 2, 4])))
    try:
        check({"x": x}, "x + x", x + x, reduces)
    finally:
        use_threads(0)


@pytest.mark.usefixtures("team")
@pytest.mark.parametrize("kind", ["max", "min"])
def test_a_nan_is_the_extreme_of_all_that_holds_it(kind: str) -> None:
    x = RNG.normal(size=(9, 2000)).astype(np.float32)
    x[3, 77] = np.nan
    reduces = [Reduce(kind, axes, False) for axes in ((0,), (1,), (0, 1))]
    made, _ = code(["x"] * 3, {"x": x}, reduces)
    columns, rows, everything = made([x])
    assert np.flatnonzero(np.isnan(columns)).tolist() == [77]
    assert np.flatnonzero(np.isnan(rows)).tolist() == [3]
    assert np.isnan(everything)


def test_extremes_of_infinities_only() -> None:
    x = np.full((3, 40), -np.inf, np.float32)
    made, _ = code(["x"] * 2, {"x": x}, [Reduce("max", (0,), False), Reduce("max", (1,), False)])
    assert all(np.isneginf(v).all() for v in made([x]))


@pytest.mark.parametrize("axes", [(0,), (0, 1)])
def test_long_sums_of_float32_lose_no_digits(axes: tuple[int, ...]) -> None:
    """Added up one by one in float32 the last of these would be off by a few in a thousand."""
    x = np.full((300_000, 8), 0.1, np.float32)
    made, _ = code(["x"], {"x": x}, [Reduce("sum", axes, False)])
    np.testing.assert_allclose(made([x])[0], x.astype(np.float64).sum(axis=axes), rtol=1e-6)


def test_a_sum_and_a_mean_are_one_fold() -> None:
    line = codegen.lower([codegen.parse("x")] * 3, {"x": dtypes.float32},
                         results=[dtypes.float32] * 3)  # fmt: skip
    layout, _ = layout_of([(4, 5)], (4, 5), [(0,), (0,), (1,)])
    one, kinds = dtypes.float32, ("sum", "mean", "sum")
    plan = Plan(line, ("x",), [one], [one] * 3, layout, kinds)
    assert [f.kept for f in plan.folds] == [(False, True), (True, False)]
    assert plan.ends == [0, 0, 1]


def test_what_leaves_as_much_as_it_reads_does_not_fold_well() -> None:
    assert folds_well([(64, 1000)], (64, 1000), [(0,), (1,)])
    assert not folds_well([(2, 100_000)], (2, 100_000), [(0,)])
    assert not folds_well([(100_000, 1)], (100_000, 1), [(1,)])


@pytest.mark.usefixtures("team")
@pytest.mark.parametrize("which", [0, 1])
def test_a_result_may_lie_where_an_input_lies(which: int) -> None:
    x, y, row = (RNG.normal(size=s).astype(np.float32) for s in ((37, 1111), (37, 1111), (1111,)))
    texts = ["x * row + y", "x - y", "x * y", "y"]
    reduces = [Reduce("sum", (0,), False), Reduce("max", (0, 1), False)]
    inputs = {"x": x, "y": y, "row": row}
    made, shape = code(texts, inputs, reduces)
    want = made([x, y, row])
    mine = [x.copy(), y.copy(), row]
    outs = [None] * 4
    outs[which] = mine[1 - which]
    outs[1 - which] = np.empty(shape, np.float32)
    for a, b in zip(made(mine, outs), want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_lines_that_are_alike_are_written_once() -> None:
    """The layers of a network give the same cluster again and again, of other sizes too."""
    module.cache_clear()
    for rows in (3, 4, 5):
        a = RNG.normal(size=(rows, 7))
        made, _ = code(["a * 3.0", "a"], {"a": a}, [Reduce("sum", (1,), False)])
        first, second = made([a])
        np.testing.assert_array_equal(first, a * 3)
        np.testing.assert_allclose(second, a.sum(1))
    assert module.cache_info().misses == 1
