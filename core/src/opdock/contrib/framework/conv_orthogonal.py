"""Initializers of convolutions that keep lengths (Xiao et al. 2018).

A kernel is a field of matrices, one a pixel. One that is orthogonal in itself is made of smaller
ones that are, of width 2, by convolving them with each other.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from opdock import dtypes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.variables.initializers import Initializer, Orthogonal
from opdock.ops.array import reshape
from opdock.ops.cast import cast
from opdock.ops.composed.eye import eye
from opdock.ops.joining import stack
from opdock.ops.linalg import matmul
from opdock.ops.random import random_normal
from opdock.ops.scatter import scatter_nd
from opdock.shapes import as_shape

__all__ = [
    "ConvolutionDeltaOrthogonal", "ConvolutionOrthogonal", "ConvolutionOrthogonal1D",
    "ConvolutionOrthogonal2D", "ConvolutionOrthogonal3D", "convolutional_delta_orthogonal",
    "convolutional_orthogonal_1d", "convolutional_orthogonal_2d", "convolutional_orthogonal_3d",
]  # fmt: skip

_Field = Mapping[tuple[int, ...], Tensor]
_WORDS = {1: "three", 2: "four", 3: "five"}


class _Orthogonal(Initializer):
    """What they have in common.

    Args:
        gain: what all is multiplied by.
        seed: of the random matrix; where there are several, the others have the numbers after it.
        dtype: a floating-point type, which a call may replace.
    """

    def __init__(
        self, gain: float = 1.0, seed: int | None = None, dtype: Any = dtypes.float32
    ) -> None:
        found = dtypes.as_dtype(dtype)
        if not found.is_floating:
            raise ValueError(f"Expected floating point type, got {found}.")
        self.gain, self.seed, self.dtype = gain, seed, found

    def get_config(self) -> dict[str, Any]:
        """The arguments."""
        return {"gain": self.gain, "seed": self.seed, "dtype": self.dtype.name}


class ConvolutionDeltaOrthogonal(_Orthogonal):
    """An orthogonal matrix in the middle of a kernel whose other pixels are 0."""

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """The kernel of shape [..., inputs, outputs].

        Raises:
            ValueError: it has not 1 to 3 dimensions in space, or more inputs than outputs.
        """
        dims, found = _dims(shape), self._dtype(dtype)
        if not 3 <= len(dims) <= 5:
            raise ValueError(
                "The tensor to initialize must be at least three-dimensional and at most "
                "five-dimensional"
            )
        _check_channels(dims)
        matrix = _matrix(dims[-1], self.seed, found)[: dims[-2], :]
        middle = [(size - 1) // 2 for size in dims[:-2]]
        return scatter_nd([middle], (matrix * convert_to_tensor(self.gain, found))[None], dims)


class ConvolutionOrthogonal(_Orthogonal):
    """The base of those that make orthogonal kernels, for some number of dimensions in space."""

    space: ClassVar[int] = 0
    # Where along a dimension of a kernel of width 2 is what a projection keeps.
    kept_at: ClassVar[int] = 0

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """The kernel of shape [size, ..., size, inputs, outputs].

        Raises:
            ValueError: it is no such shape, or has more inputs than outputs.
        """
        if not self.space:
            raise NotImplementedError
        dims = _dims(shape)
        if len(dims) != self.space + 2:
            raise ValueError(f"The tensor to initialize must be {_WORDS[self.space]}-dimensional")
        _check_channels(dims)
        if len(set(dims[: self.space])) > 1:
            raise ValueError("Kernel sizes must be equal.")
        return self._kernel(dims) * convert_to_tensor(self.gain, self._dtype(dtype))

    def _kernel(self, dims: Sequence[int]) -> Tensor:
        size, inputs, outputs = dims[0], dims[-2], dims[-1]
        rows = _matrix(outputs, self._next_seed(), self.dtype)[:inputs, :]
        if size == 1:
            return reshape(rows, dims)
        field = self._block(outputs)
        for _ in range(size - 2):
            field = _convolved(field, self._block(outputs))
        return reshape(stack([matmul(rows, field[place]) for place in sorted(field)]), dims)

    def _block(self, size: int) -> _Field:
        """A kernel of width 2: products of what random projections keep, and of what they leave."""
        sides = []
        for _ in range(self.space):
            kept = self._projection(size)
            left = eye(size, dtype=self.dtype) - kept
            sides.append((kept, left) if self.kept_at == 0 else (left, kept))
        return {
            place: functools.reduce(matmul, (side[i] for side, i in zip(sides, place, strict=True)))
            for place in itertools.product((0, 1), repeat=self.space)
        }

    def _projection(self, size: int) -> Tensor:
        """A symmetric matrix that projects onto a random part of the space."""
        basis = _matrix(size, self._next_seed(), self.dtype)
        chosen = basis * cast(random_normal([size], seed=self._next_seed()) > 0, self.dtype)
        return matmul(chosen, chosen, transpose_b=True)

    def _next_seed(self) -> int | None:
        seed = self.seed
        if self.seed:
            self.seed += 1
        return seed


class ConvolutionOrthogonal1D(ConvolutionOrthogonal):
    """An orthogonal kernel [size, inputs, outputs]."""

    space = 1


class ConvolutionOrthogonal2D(ConvolutionOrthogonal):
    """An orthogonal kernel [size, size, inputs, outputs]."""

    space = 2


class ConvolutionOrthogonal3D(ConvolutionOrthogonal):
    """An orthogonal kernel [size, size, size, inputs, outputs]."""

    space = 3
    kept_at = 1


convolutional_delta_orthogonal = ConvolutionDeltaOrthogonal
convolutional_orthogonal_1d = ConvolutionOrthogonal1D
convolutional_orthogonal_2d = ConvolutionOrthogonal2D
convolutional_orthogonal_3d = ConvolutionOrthogonal3D


def _dims(shape: Any) -> list[int]:
    return [d or 0 for d in as_shape(shape) or ()]


def _matrix(size: int, seed: int | None, dtype: Any) -> Tensor:
    return Orthogonal(seed=seed, dtype=dtype)([size, size])


def _check_channels(dims: Sequence[int]) -> None:
    if dims[-2] > dims[-1]:
        raise ValueError("In_filters cannot be greater than out_filters.")


def _convolved(one: _Field, other: _Field) -> _Field:
    """The convolution of two fields of matrices."""
    found: dict[tuple[int, ...], Tensor] = {}
    for (a, x), (b, y) in itertools.product(one.items(), other.items()):
        place, product = tuple(map(operator.add, a, b)), matmul(x, y)
        found[place] = found[place] + product if place in found else product
    return found
