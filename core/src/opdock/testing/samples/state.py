"""Samples of the ops on variables; the first input is the variable's value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.testing.harness.sample import ErrorSample, Sample, Sampler, error_samples, samples

Array = npt.NDArray[Any]

_SHAPES: dict[str, tuple[int, ...]] = {
    "plain": (3, 2), "scalar": (), "empty": (0, 2), "rank5": (2, 1, 3, 1, 2),
}  # fmt: skip


def _ids(*values: Any, dtype: Any = np.int32) -> Array:
    return np.array(values, dtype)


def _updates(rng: Sampler) -> Iterator[Sample]:
    for tag, shape in _SHAPES.items():
        yield Sample([rng.normal(shape), rng.normal(shape)], {}, tag, grad=False)


@samples("Assign", "AssignAdd", "AssignSub")
def assigns(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """A value of the variable's shape."""
    yield from _updates(rng)


@samples("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp", vary="dtype")
def resource_assigns(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same through a handle; types without a sum are assigned only."""
    yield from _updates(rng)


@samples("CountUpTo", "ResourceCountUpTo")
def counts(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """From below and up to the limit."""
    yield Sample([np.array(3, dtype)], {"limit": 10}, "plain")
    yield Sample([np.array(-5, dtype)], {"limit": -4}, "last")


@samples("ReadVariableOp", "IsVariableInitialized", vary="dtype")
def reads(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Values of every rank."""
    for tag, shape in _SHAPES.items():
        yield Sample([rng.normal(shape)], {}, tag, grad=False)


@samples("VarIsInitializedOp", "DisableCopyOnRead")
def initialized(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """A variable that has a value."""
    yield Sample([np.zeros((2,), np.float32)], {}, "plain")


@samples("VariableShape", vary="out_type")
def shapes(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Values of every rank, both output types."""
    for tag, shape in _SHAPES.items():
        yield Sample([np.zeros(shape, np.float32)], {}, tag)


@samples("ResourceGather", vary="dtype")
def gathers(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Indices of every rank, with and without batch dimensions."""
    yield Sample([rng.normal((5, 2)), _ids(4, 0, 0)], {}, "plain", grad=False)
    yield Sample([rng.normal((5,)), np.array(2, np.int64)], {}, "scalar-index", grad=False)
    yield Sample([rng.normal((4, 3, 2)), _ids([1, 3], [0, 0])], {}, "matrix", grad=False)
    yield Sample([rng.normal((4, 2)), np.zeros((0,), np.int32)], {}, "empty", grad=False)
    batch = [rng.normal((2, 4, 3)), _ids([1, 3, 3], [0, 2, 1])]
    yield Sample(batch, {"batch_dims": 1}, "batch", grad=False)


@samples("ResourceGatherNd", vary="dtype")
def coordinates(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Coordinates of elements, of rows, of the whole, and none."""
    yield Sample([rng.normal((5, 2)), _ids([4], [0])], {}, "rows", grad=False)
    yield Sample([rng.normal((5, 2)), _ids([[4, 1]], [[0, 0]])], {}, "elements", grad=False)
    yield Sample([rng.normal((3, 2)), np.zeros((2, 0), np.int64)], {}, "whole", grad=False)
    yield Sample([rng.normal((4, 2)), np.zeros((0, 1), np.int32)], {}, "empty", grad=False)


def _scatters(rng: Sampler, *, repeats: bool, scalar: bool, divisor: bool) -> Iterator[Sample]:
    draw = rng.positive if divisor else rng.normal
    yield Sample([rng.normal((5, 2)), _ids(4, 1), draw((2, 2))], {}, "plain")
    yield Sample([rng.normal((4,)), np.array(2, np.int64), draw(())], {}, "scalar-index")
    yield Sample([rng.normal((5, 3)), _ids([4, 0], [2, 1]), draw((2, 2, 3))], {}, "matrix-index")
    yield Sample([rng.normal((3, 2)), np.zeros((0,), np.int32), draw((0, 2))], {}, "no-index")
    if scalar:
        yield Sample([rng.normal((5, 2)), _ids(3, 1), draw(())], {}, "scalar-update")
    if repeats:
        yield Sample([rng.positive((3,)), _ids(1, 1, 0, 1), draw((4,))], {}, "repeated")


@samples("ScatterUpdate")
def scatter_update(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Distinct slices: of two updates of one slice TF does not say which wins."""
    yield from _scatters(rng, repeats=False, scalar=True, divisor=False)


@samples("ResourceScatterUpdate", vary="dtype")
def resource_scatter_update(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """The same through a handle."""
    yield from _scatters(rng, repeats=False, scalar=True, divisor=False)


def _register(name: str) -> None:
    divisor = name == "Div"

    def make(dtype: np.dtype[Any], rng: Sampler) -> Iterator[Sample]:
        yield from _scatters(rng, repeats=True, scalar=True, divisor=divisor)

    samples(f"Scatter{name}")(make)
    samples(f"ResourceScatter{name}", vary="dtype")(make)


for _name in ("Add", "Sub", "Mul", "Div", "Min", "Max"):
    _register(_name)


def _scatter_nds(rng: Sampler, *, repeats: bool) -> Iterator[Sample]:
    yield Sample([rng.normal((5,)), _ids([4], [1]), rng.normal((2,))], {}, "elements")
    yield Sample([rng.normal((4, 3)), _ids([3], [0]), rng.normal((2, 3))], {}, "slices")
    index = _ids([0, 2, 1], [1, 0, 0], dtype=np.int64)
    yield Sample([rng.normal((2, 3, 2)), index, rng.normal((2,))], {}, "full-depth")
    deep = _ids([[1], [0]], [[3], [2]])
    yield Sample([rng.normal((4, 2)), deep, rng.normal((2, 2, 2))], {}, "matrix-of-indices")
    yield Sample([rng.normal((4,)), np.zeros((0, 1), np.int32), rng.normal((0,))], {}, "empty")
    if repeats:
        yield Sample([rng.normal((4,)), _ids([1], [1], [3]), rng.normal((3,))], {}, "repeated")


@samples("ScatterNdUpdate", "ResourceScatterNdUpdate")
def scatter_nd_update(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Distinct positions."""
    yield from _scatter_nds(rng, repeats=False)


@samples("ScatterNdAdd", "ScatterNdSub", "ResourceScatterNdAdd", "ResourceScatterNdSub")
def scatter_nd_add(dtype: np.dtype[Any], rng: Sampler) -> Iterable[Sample]:
    """Repeated positions add up."""
    yield from _scatter_nds(rng, repeats=True)


@error_samples("Assign")
def bad_assign() -> Iterable[ErrorSample]:
    """A value of another shape."""
    inputs = [np.zeros((2, 3), np.float32), np.zeros((3, 3), np.float32)]
    yield ErrorSample(inputs, {}, "ValueError", "must be equal", "build")
    yield ErrorSample(inputs, {})


@error_samples("AssignAdd", "AssignSub")
def bad_add() -> Iterable[ErrorSample]:
    """A value of another shape."""
    inputs = [np.zeros((2, 3), np.float32), np.zeros((3, 3), np.float32)]
    yield ErrorSample(inputs, {}, "ValueError", "must be equal", "build")
    yield ErrorSample(inputs, {})


@error_samples("CountUpTo")
def bad_count() -> Iterable[ErrorSample]:
    """A counter at its limit."""
    yield ErrorSample([np.array(10, np.int32)], {"limit": 10}, "OutOfRangeError", "10")


@error_samples("ResourceCountUpTo")
def bad_resource_count() -> Iterable[ErrorSample]:
    """The same behind a handle."""
    counter = [np.array(10, np.int32)]
    yield ErrorSample(counter, {"limit": 10, "T": np.int32}, "OutOfRangeError", "10")


@error_samples("ScatterUpdate", "ScatterAdd", "ScatterMul")
def bad_scatter() -> Iterable[ErrorSample]:
    """An index beyond the variable; updates that do not fit."""
    ref, updates = np.zeros((3, 2), np.float32), np.zeros((2, 2), np.float32)
    yield ErrorSample([ref, _ids(0, 3), updates], {}, match=r"indices\[1\] = 3 is not in \[0, 3\)")
    yield ErrorSample([ref, _ids(-1, 0), updates], {}, match=r"is not in \[0, 3\)")
    wrong = [ref, _ids(0, 1, 2), updates]
    yield ErrorSample(wrong, {}, "ValueError", "must be equal", "build")
    yield ErrorSample(wrong, {})


@error_samples("ScatterNdAdd", "ScatterNdUpdate")
def bad_scatter_nd() -> Iterable[ErrorSample]:
    """A position beyond the variable."""
    inputs = [np.zeros((3, 2), np.float32), _ids([0, 2]), np.zeros((1,), np.float32)]
    yield ErrorSample(inputs, {}, match="does not index into shape")
