"""Work in parts: what they are depends on the work alone, and so do the bits of results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from opdock.plugin import dtypes, windows
from opdock_cpu.onednn import conv, parts, pool
from opdock_cpu.onednn.declarations import Type
from opdock_cpu.onednn.kernels.conv import shape_of
from opdock_cpu.onednn.matmul import Factors, laid_out, matrices, multiplied
from opdock_cpu.onednn.memory import dense
from opdock_cpu.onednn.parts import Parts, evenly
from opdock_cpu.threads import use_threads
from tests.backends.cpu.onednn import needs_onednn

pytestmark = needs_onednn
RNG = np.random.default_rng(8)


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Parts of a few thousand multiply-adds."""
    monkeypatch.setattr(parts, "LEAST", 4_000)
    yield
    use_threads(0)


def array(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(
    ("length", "work", "least", "sizes"),
    [
        (32, 1_000, 1, [32]), (32, 16_000, 1, [8] * 4), (30, 16_000, 1, [10] * 3),
        (7, 16_000, 1, [1, 2, 2, 2]), (3, 1e9, 1, [1] * 3), (1, 1e9, 1, [1]),
        (64, 1e9, 1, [4] * 16), (100, 1e9, 30, [50, 50]), (20, 1e9, 30, [20]),
    ],
)  # fmt: skip
def test_sizes(
    length: int, work: float, least: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opdock_cpu.onednn.parts._MOST", 16)
    assert sorted(evenly(length, work, least)) == sizes


def on_threads(
    make: Callable[[], Callable[..., None]], inputs: Sequence[Any], *outputs: tuple[int, ...]
) -> list[Any]:
    """The results, which must not depend on the number of threads."""
    found = []
    for count in (1, 2, 5):
        use_threads(count)
        run = make()
        for _ in range(2):
            outs = [np.full(s, np.nan, np.float32) for s in outputs]
            run(*inputs, *outs)
            found.append(outs)
    for outs in found[1:]:
        for a, b in zip(found[0], outs, strict=True):
            np.testing.assert_array_equal(a, b)
    return found[0]


def geometry(batch: int) -> conv.ConvShape:
    attrs = {
        "data_format": "NHWC", "strides": [1, 1, 1, 1], "padding": "SAME",
        "dilations": [1, 1, 1, 1], "explicit_paddings": [],
    }  # fmt: skip
    layout = windows.Layout(attrs)
    return shape_of(layout, dtypes.float32, (batch, 6, 5, 8), (3, 3, 8, 16))


@pytest.mark.parametrize("batch", [4, 7])
def test_convolutions(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = geometry(batch)
    x, w, dy = array(batch, 6, 5, 8), array(3, 3, 8, 16), array(batch, 6, 5, 16)
    bias = array(16)
    monkeypatch.setattr(conv, "_PER_SUMMAND", 1_000_000)
    cases: list[tuple[Callable[[], conv.Call], list[Any], list[tuple[int, ...]]]] = [
        (lambda: conv.forward(shape, shape.weights(), bias=True), [x, w, bias], [dy.shape]),
        (lambda: conv.backward_data(shape, shape.weights()), [dy, w], [x.shape]),
        (lambda: conv.backward_weights(shape, shape.weights(), True), [x, dy], [w.shape, (16,)]),
    ]
    for make, inputs, outputs in cases:
        assert isinstance(make().primitive, Parts)
        got = on_threads(lambda make=make: make().bind(), inputs, *outputs)
        with monkeypatch.context() as patch:
            patch.setattr(conv, "divides", lambda: "a test compares")
            call = make()
        assert not isinstance(call.primitive, Parts)
        want = [np.empty(s, np.float32) for s in outputs]
        call.bind()(*inputs, *want)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def test_few_sums_are_not_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """A weight of the result takes less time to compute than to add up from two parts."""
    monkeypatch.setattr(conv, "_PER_SUMMAND", 20)
    shape = geometry(4)
    assert len(shape.parts(sums=False)) == 4
    assert [s.batch for s in shape.parts(sums=True)] == [4]


@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize(
    "sizes", [(8, 24, 200), (200, 24, 8), (130, 16, 130), (1, 64, 300), (300, 1, 70)]
)
def test_products(sizes: tuple[int, int, int], ta: bool, tb: bool) -> None:
    rows, inner, columns = sizes
    a = array(*((inner, rows) if ta else (rows, inner)))
    b = array(*((columns, inner) if tb else (inner, columns)))
    bias, shape = array(columns), (rows, columns)
    factors = Factors(
        matrices(a.shape, ta), matrices(b.shape, tb), dense(shape), dense((1, columns))
    )
    assert len(factors.parts()) > 1
    want = (a.T if ta else a) @ (b.T if tb else b) + bias
    (got,) = on_threads(lambda: multiplied(factors, None), [a, b, bias], shape)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)

    def packed() -> Callable[..., None]:
        call = laid_out(factors, None)
        pack, run = call.keep(1), call.bind()
        return lambda a, b, bias, out: run(a, pack(b), bias, out)

    (got,) = on_threads(packed, [a, b, bias], shape)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("lead", [(6, 1), (6, 6)])
def test_batches_of_products(lead: tuple[int, int]) -> None:
    a, b = array(lead[0], 20, 16), array(lead[1], 16, 24)
    shape = (6, 20, 24)
    factors = Factors(matrices(a.shape, False), matrices(b.shape, False), dense(shape))
    assert (len(factors.parts()) > 1) == (lead[0] == lead[1])
    (got,) = on_threads(lambda: multiplied(factors, None), [a, b], shape)
    np.testing.assert_allclose(got, a @ b, rtol=1e-4, atol=1e-4)


def test_pools() -> None:
    attrs = {"data_format": "NHWC", "ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1]}
    spec = windows.Pool({**attrs, "padding": "VALID"})
    x, dy = array(5, 8, 8, 16), array(5, 4, 4, 16)
    batch, space, channels = spec.parts(x.shape)
    shape = pool.PoolShape(batch, channels, spec.window(space, spec.ksize), spec.first, Type.F32)
    cells = x.reshape(5, 4, 2, 4, 2, 16)
    (got,) = on_threads(lambda: pool.maximum(shape).run, [x], dy.shape)
    np.testing.assert_array_equal(got, cells.max((2, 4)))
    (got,) = on_threads(lambda: pool.average_gradient(shape).run, [dy], x.shape)
    np.testing.assert_allclose(got, np.repeat(np.repeat(dy, 2, 1), 2, 2) / 4)

    def gradient() -> Callable[..., None]:
        forward, backward, size = pool.maximum_gradient(shape)
        assert isinstance(forward, Parts) and isinstance(backward, Parts)
        places, again = np.empty(size, np.uint8), np.empty_like(dy)

        def run(x: Any, dy: Any, dx: Any) -> None:
            forward.run(x, again, places)
            backward.run(dy, places, dx)

        return run

    (got,) = on_threads(gradient, [x, dy], x.shape)
    first = cells == cells.max((2, 4), keepdims=True)
    np.testing.assert_array_equal(got, (first * dy[:, :, None, :, None]).reshape(x.shape))


def test_arrays_that_are_not_contiguous() -> None:
    a, b = array(16, 12).T, array(256, 16)[:, ::-1].T
    factors = Factors(matrices((12, 16), False), matrices((16, 256), False), dense((12, 256)))
    (got,) = on_threads(lambda: multiplied(factors, None), [a, b], (12, 256))
    np.testing.assert_allclose(got, a @ b, rtol=1e-4, atol=1e-4)
