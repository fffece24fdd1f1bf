"""What serves until code is there: the same values, block by block, in the memory that is given."""

from __future__ import annotations

from typing import Any

import array_api_compat.numpy as xp
import ml_dtypes
import numpy as np
import pytest

from opdock.plugin import CLUSTER, NodeSig, as_dtype, codegen
from opdock_cpu.jit import cluster
from opdock_cpu.jit.plain import Plain, _blocks

RNG = np.random.default_rng(17)
TEXTS = ["a * 2.0 + b", "b", "exp(a)", "b", "a * b"]
REDUCES = [("sum", "max"), ("mean", "min"), ("prod", "sum")]


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPDOCK_JIT", "sync")
    monkeypatch.setattr("opdock_cpu.jit.plain._BLOCK", 12)


def sig_of(texts: list[str], arrays: list[Any], reduces: list[codegen.Reduce]) -> NodeSig:
    dtype = as_dtype(arrays[0].dtype)
    names = ("a", "b")[: len(arrays)]
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    line = codegen.lower(
        [codegen.parse(t) for t in texts], dict.fromkeys(names, dtype),
        results=[dtype] * len(texts),
    )  # fmt: skip
    shapes = [shape] * (len(texts) - len(reduces)) + [
        tuple(
            1 if i in r.axes else n for i, n in enumerate(shape) if r.keep_dims or i not in r.axes
        )
        for r in reduces
    ]
    attrs = {"line": line, "names": names, "shape": shape, "reduces": reduces, "members": ()}
    return NodeSig(
        CLUSTER, "fused", attrs, tuple(a.shape for a in arrays), (dtype,) * len(arrays),
        tuple(shapes), (dtype,) * len(texts),
    )  # fmt: skip


def plain_of(sig: NodeSig) -> Plain:
    attrs = sig.attrs
    outputs = list(zip(sig.out_dtypes, sig.out_shapes, strict=True))
    return Plain(attrs["line"], attrs["names"], attrs["shape"], outputs, attrs["reduces"])


@pytest.mark.parametrize("kinds", REDUCES)
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(
    ("shapes", "axes"),
    [
        ([(), ()], [(), ()]), ([(7, 5), (5,)], [(0,), (1,)]), ([(3, 1), (4,)], [(0, 1), (0,)]),
        ([(2, 3, 4, 5), (3, 1, 5)], [(0, 2), (1, 3)]), ([(40,), ()], [(0,), (0,)]),
    ],
)  # fmt: skip
def test_the_values_are_those_of_whole_arrays(
    shapes: list[Any], axes: list[Any], dtype: str, keep: bool, kinds: tuple[str, str]
) -> None:
    kind = as_dtype(dtype).np
    arrays = [np.asarray(RNG.uniform(0.5, 1.5, s)).astype(kind) for s in shapes]
    reduces = [codegen.Reduce(k, a, keep) for k, a in zip(kinds, axes, strict=True)]
    sig = sig_of(TEXTS, arrays, reduces)
    wanted = codegen.evaluate_cluster(xp, sig)(*arrays)
    got = plain_of(sig)(arrays, None)
    rtol = 1e-12 if dtype == "float64" else 4 * float(ml_dtypes.finfo(kind).eps)
    for have, want in zip(got, wanted, strict=True):
        assert (have.shape, have.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(have.astype(float), want.astype(float), rtol=rtol)


def test_blocks_are_small_and_cover_everything_once() -> None:
    for shape in [(), (1,), (12,), (13,), (3, 5), (2, 3, 7), (2, 40), (1, 1, 30), (6, 2, 3)]:
        seen = np.zeros(shape, int)
        for block in _blocks(shape):
            assert seen[block].size <= 12
            seen[block] += 1
        assert (seen == 1).all()


def test_nans_and_infinities_go_through_folds() -> None:
    a = np.array([[1, np.nan, 3], [-np.inf, 2, -np.inf]] * 4, np.float32)
    reduces = [codegen.Reduce(k, (0,), False) for k in ("max", "min", "sum")]
    sig = sig_of(["a"] * 3, [a], reduces)
    with np.errstate(all="ignore"):
        for got, want in zip(
            plain_of(sig)([a], None), codegen.evaluate_cluster(xp, sig)(a), strict=True
        ):
            np.testing.assert_array_equal(got, want)


def test_a_buffer_that_is_an_input_keeps_it_until_all_is_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who gives up half-way is stood in for by another kernel, which reads the inputs again."""
    a = RNG.normal(size=(8, 6))
    plain, before = plain_of(sig_of(["a * 2.0"], [a], [])), a.copy()
    whole = Plain._values
    calls = iter(range(9))

    def fails_late(self: Plain, parts: list[Any]) -> Any:
        if next(calls) == 3:
            raise MemoryError
        return whole(self, parts)

    with monkeypatch.context() as patch:
        patch.setattr(Plain, "_values", fails_late)
        with pytest.raises(MemoryError):
            plain([a], [a])
    np.testing.assert_array_equal(a, before)
    (got,) = plain([a], [a])
    assert got is a
    np.testing.assert_array_equal(a, before * 2)


def test_a_cluster_without_code_fills_the_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opdock_cpu.jit.generated.Generated.ready", False)
    a, b = RNG.normal(size=(9, 5)), RNG.normal(size=5)
    run = cluster.cluster(sig_of(["a + b", "a"], [a, b], [codegen.Reduce("sum", (1,), False)]))
    out = (np.empty((9, 5)), np.empty(9))
    first, second = run(a, b, out)
    assert first is out[0]
    assert second is out[1]
    np.testing.assert_array_equal(first, a + b)
    np.testing.assert_allclose(second, a.sum(1))
