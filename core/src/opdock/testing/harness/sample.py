"""Conformance samples: what an op is called with, and the registry that finds them by op.

A family file under :mod:`opdock.testing.samples` says, per op, which inputs and attributes are
worth trying; the runner decides on which device, in which dtype and in which variants (plain,
non-contiguous, unknown static shapes) each of them runs.  Randomness is seeded by op, dtype and
position, so a failing sample is the same sample tomorrow.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from opdock.dtypes import DType
from opdock.testing.reference._registry import imported

__all__ = [
    "ErrorSample", "Sample", "SampleSet", "Sampler", "error_samples", "error_samples_for",
    "load_families", "sample_ops", "sample_sets_for", "samples", "samples_for",
]  # fmt: skip

Array = npt.NDArray[Any]
Shape = Sequence[int]


@dataclass(frozen=True)
class Sample:
    """One call of an op.

    Args:
      inputs: arrays in the op's input order; a homogeneous-list argument is a nested list.  Shape
        and axis inputs are int32 arrays.
      attrs: attribute values as Python natives (types as numpy dtypes).  Type and length attributes
        that follow from the inputs may be left out.
      tag: a short word that tells this sample from its neighbours in a report.
      grad: whether the gradient level uses this sample (False at kinks and for huge cases).
      tol: ``(rtol, atol)`` wider than the table's; the report lists it, so give ``tol_reason``.
      tol_reason: why ``tol`` is wider.
      grad_inputs: positions of the inputs that the op's gradient covers; None for all that are
        floating.  (TF gives None for some, such as the constant of ``PadV2``.)
      grad_outputs: positions of the outputs through which the gradient flows; None for all.
      shape_only: compare dtype and shape of the outputs only (``Empty``: contents are arbitrary).
    """

    inputs: Sequence[Any]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    tag: str = ""
    grad: bool = True
    tol: tuple[float, float] | None = None
    tol_reason: str = ""
    shape_only: bool = False
    grad_inputs: tuple[int, ...] | None = None
    grad_outputs: tuple[int, ...] | None = None


@dataclass(frozen=True)
class ErrorSample:
    """A call that must fail.

    Args:
      inputs: arrays in the op's input order.
      attrs: attribute values as for ``Sample``.
      exception: name of the class that must be raised: ``"ValueError"`` and ``"TypeError"`` when
        the graph is built, a class of ``tf.errors`` when it runs.
      match: regular expression searched for in the message; "" matches every message.
      phase: ``"build"`` calls the op with constants and expects the error at once; ``"run"`` feeds
        placeholders of unknown shape and expects the error from ``Session.run``.
      tag: a short word for the report.
      dtype: the element type, where the arrays do not say it: NumPy has no quantized ones.
    """

    inputs: Sequence[Any]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    exception: str = "InvalidArgumentError"
    match: str = ""
    phase: Literal["build", "run"] = "run"
    tag: str = ""
    dtype: str = ""


class Sampler:
    """Seeded source of arrays that already have the sample's dtype.

    Integer dtypes round and (when unsigned) fold negative values, complex dtypes draw both parts,
    bool draws coins: a family writes ``rng.normal((2, 3))`` once for all dtypes.
    """

    def __init__(self, dtype: npt.DTypeLike, seed: int | str = 0) -> None:
        self.dtype = np.dtype(dtype)
        number = zlib.crc32(seed.encode()) if isinstance(seed, str) else seed
        self._rng = np.random.Generator(np.random.Philox(number))

    def normal(self, shape: Shape, scale: float = 1.0) -> Array:
        """Normal values around zero; integers spread over about -6 .. 6 (times ``scale``)."""
        if self._is_string:
            return self._strings(shape)
        if self.dtype.kind == "b":
            return self.bools(shape)
        return self._cast(self._draw_normal(shape, scale))

    def uniform(self, shape: Shape, lo: float = -1.0, hi: float = 1.0) -> Array:
        """Uniform values of ``[lo, hi)``; integers of ``[floor(lo), ceil(hi)]``."""
        if self._is_string:
            return self._strings(shape)
        if self.dtype.kind == "b":
            return self.bools(shape)
        if self.dtype.kind in "iu":
            return self.integers(shape, int(np.floor(lo)), int(np.ceil(hi)) + 1)
        real = self._rng.uniform(lo, hi, tuple(shape))
        if self.dtype.kind == "c":
            return self._cast(real + 1j * self._rng.uniform(lo, hi, tuple(shape)))
        return self._cast(real)

    def integers(self, shape: Shape, lo: int = -5, hi: int = 6) -> Array:
        """Whole numbers of ``[lo, hi)`` in the sample's dtype; unsigned dtypes start at 0."""
        if self._is_string:
            return self._strings(shape)
        if self.dtype.kind == "b":
            return self.bools(shape)
        if self.dtype.kind == "u":
            lo, hi = max(lo, 0), max(hi, 1)
        values = self._rng.integers(lo, hi, tuple(shape))
        if self.dtype.kind == "c":
            return self._cast(values + 1j * self._rng.integers(lo, hi, tuple(shape)))
        return self._cast(values)

    def positive(self, shape: Shape, lo: float = 0.5, hi: float = 3.0) -> Array:
        """Values well away from zero on the positive side (logs, roots, divisors)."""
        if self._is_string:
            return self._strings(shape)
        if self.dtype.kind == "b":
            return np.ones(tuple(shape), np.bool_)
        if self.dtype.kind in "iu":
            return self.integers(shape, max(1, int(lo)), max(2, int(np.ceil(hi)) + 3))
        if self.dtype.kind == "c":
            real = self._rng.uniform(lo, hi, tuple(shape))
            return self._cast(real + 1j * self._rng.uniform(lo, hi, tuple(shape)))
        return self._cast(self._rng.uniform(lo, hi, tuple(shape)))

    def distinct(self, shape: Shape, gap: float = 0.25) -> Array:
        """Shuffled values that differ by at least ``gap`` (max, sort, top-k: no ties, no kinks)."""
        count = int(np.prod(tuple(shape), dtype=np.int64))
        ranks = self._rng.permutation(count).reshape(tuple(shape))
        if self.dtype.kind in "iu":
            return self._cast(ranks if self.dtype.kind == "u" else ranks - count // 2)
        return self._cast((ranks - count / 2 + 0.25) * gap)

    def away_from(self, shape: Shape, kink: float = 0.0, margin: float = 0.2) -> Array:
        """Normal values no closer than ``margin`` to ``kink`` (relu, abs: a clean derivative)."""
        if self._is_string or self.dtype.kind == "b":
            return self.normal(shape)
        values = self._draw_normal(shape, 1.0)
        if self.dtype.kind == "c":
            return self._cast(values)
        offset = values - kink
        near = np.abs(offset) < margin
        return self._cast(np.where(near, kink + np.where(offset < 0, -1, 1) * 2 * margin, values))

    def bools(self, shape: Shape) -> Array:
        """Fair coins, dtype bool whatever the sample's dtype is."""
        return np.asarray(self._rng.integers(0, 2, tuple(shape)), np.bool_)

    def indices(self, shape: Shape, size: int, dtype: npt.DTypeLike = np.int32) -> Array:
        """Indices of ``[0, size)``, int32 unless ``dtype`` says otherwise."""
        return np.asarray(self._rng.integers(0, max(size, 1), tuple(shape)), np.dtype(dtype))

    @property
    def _is_string(self) -> bool:
        return self.dtype.kind in "OSU"

    def _draw_normal(self, shape: Shape, scale: float) -> Array:
        values = self._rng.standard_normal(tuple(shape)) * scale
        if self.dtype.kind in "iu":
            values = np.rint(values * 2)
            return np.abs(values) if self.dtype.kind == "u" else values
        if self.dtype.kind == "c":
            return np.asarray(values + 1j * self._rng.standard_normal(tuple(shape)) * scale)
        return np.asarray(values)

    def _strings(self, shape: Shape) -> Array:
        count = int(np.prod(tuple(shape), dtype=np.int64))
        out = np.empty(count, object)
        out[:] = [b"s%d" % n for n in self._rng.integers(0, 100, count)]
        return out.reshape(tuple(shape))

    def _cast(self, values: Array) -> Array:
        return np.asarray(values).astype(self.dtype)


SampleFn = Callable[[np.dtype[Any], Sampler], Iterable[Sample]]
ErrorFn = Callable[[], Iterable[ErrorSample]]


@dataclass(frozen=True)
class SampleSet:
    """The registered generator of one op: which type attribute varies, and how to make samples."""

    op: str
    fn: SampleFn
    vary: str
    since: tuple[int, int]
    types: frozenset[DType] = frozenset()

    def make(self, dtype: npt.DTypeLike) -> Iterator[Sample]:
        """Yields the samples for ``dtype``, the same ones each time."""
        dt = np.dtype(dtype)
        yield from self.fn(dt, Sampler(dt, f"{self.op}/{dt.name}"))


_samples: dict[str, list[SampleSet]] = {}
_errors: dict[str, list[ErrorFn]] = {}


def samples(
    *ops: str, vary: str = "T", since: tuple[int, int] = (1, 0), types: Iterable[DType] = ()
) -> Callable[[SampleFn], SampleFn]:
    """Registers a generator of samples for each op named.

    The generator is called as ``fn(dtype, rng)`` once per dtype that the device claims for the
    attribute ``vary``.  An op without that attribute varies its first type attribute; an op without
    any type attribute is called once, with the dtype of its first fixed-type argument.

    Args:
      *ops: op types.
      vary: name of the type attribute that takes the claimed dtypes.
      since: plugin API version from which these samples count.
      types: the only types that count, for an op whose definition allows more than TF computes.

    Returns:
      A decorator that returns the generator unchanged.
    """

    def register(fn: SampleFn) -> SampleFn:
        for op in ops:
            _samples.setdefault(op, []).append(SampleSet(op, fn, vary, since, frozenset(types)))
        return fn

    return register


def error_samples(*ops: str) -> Callable[[ErrorFn], ErrorFn]:
    """Registers a generator of ``ErrorSample`` for each op named."""

    def register(fn: ErrorFn) -> ErrorFn:
        for op in ops:
            _errors.setdefault(op, []).append(fn)
        return fn

    return register


def load_families() -> Mapping[str, str]:
    """Imports every family of samples once.

    Returns:
      Families that could not be imported, with the error: the report counts each as a failure
      instead of letting its ops vanish.
    """
    return imported("opdock.testing.samples")


def sample_ops() -> frozenset[str]:
    """Op types that have samples."""
    load_families()
    return frozenset(_samples)


def sample_sets_for(op: str) -> Sequence[SampleSet]:
    """The generators registered for ``op``; empty when there are none."""
    load_families()
    return tuple(_samples.get(op, ()))


def samples_for(op: str, dtype: npt.DTypeLike) -> Iterator[Sample]:
    """All samples of ``op`` for one dtype."""
    for entry in sample_sets_for(op):
        yield from entry.make(dtype)


def error_samples_for(op: str) -> Iterator[ErrorSample]:
    """All error samples of ``op``."""
    load_families()
    for fn in _errors.get(op, ()):
        yield from fn()
