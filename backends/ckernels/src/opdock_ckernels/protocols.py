"""What the kernels ask of a backend: arrays in device memory, and a device that compiles C."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from opdock.plugin import codegen

__all__ = ["Array", "KernelDevice"]


class Array(Protocol):
    """Contiguous elements in device memory, in row-major order."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The dimensions."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""

    @property
    def ndim(self) -> int:
        """The rank."""

    @property
    def size(self) -> int:
        """The number of elements."""

    @property
    def nbytes(self) -> int:
        """The size in bytes."""

    def reshape(self, *shape: int) -> Array:
        """The same memory under another shape of as many elements."""

    def view(self, dtype: np.dtype[Any]) -> Array:
        """The same memory as elements of another type of the same size."""


class KernelDevice(Protocol):
    """A device that runs kernels written in the words of `opdock_ckernels.dialect`.

    Attributes:
        dialect: how its C is spelled.
        has_double: whether it computes in double precision.
        is_cpu: whether work items run one after another on few wide cores.
        takes_lines: whether `multiply` takes a left factor of `Factor.of_lines`.
        largest_group: the most work items that a group may have.
        rounded: what the names of functions of double precision begin with that do where a result
            is rounded to single precision: "" where the device's own are as quick.
    """

    dialect: codegen.Dialect
    has_double: bool
    is_cpu: bool
    takes_lines: bool
    largest_group: int
    rounded: str

    def allocate(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An uninitialized array; ResourceExhaustedError where memory is short."""

    def upload(self, array: np.ndarray[Any, Any]) -> Array:
        """A copy of a host array."""

    def download(self, buffer: Any) -> np.ndarray[Any, Any]:
        """A host copy of an array; blocks."""

    def kernel(self, source: str, name: str, **macros: object) -> Any:
        """A kernel of a program in the common words, compiled once; `macros` are defined first."""

    def launch(self, kernel: Any, size: int, *args: Any, group: int = 0) -> None:
        """Queues a kernel for at least `size` work items in groups of `group` (0: a default)."""

    def launch_grid(
        self, kernel: Any, items: tuple[int, ...], group: tuple[int, ...] | None, *args: Any
    ) -> None:
        """Queues a kernel over a grid of work items, a multiple of `group` in each dimension."""

    def fill_zero(self, array: Any) -> None:
        """Sets all bytes of an array to zero."""

    def copy_into(self, source: Any, target: Any, offset: int) -> None:
        """Copies all of `source` into `target` from its element `offset` on."""

    def flag(self) -> Array:
        """A zero of type int32 that a kernel may overwrite to report an error."""

    def read_int(self, array: Any) -> int:
        """The first element of an int32 array; blocks."""

    def multiply(self, a: Any, b: Any, out: Any, pairs: Any | None, add: bool) -> bool:
        """A batch of products of `product.Factor`s by the device's best means.

        Returns:
            False where it has none for these types and sizes; then the plain kernel serves.
        """
