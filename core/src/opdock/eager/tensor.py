"""`EagerTensor`, a tensor that has its value, and the operation that computed it."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterator
from typing import Any, Final, NoReturn

import numpy as np

from opdock import shapes
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.nodes.registry import Handle, get
from opdock.graph.nodes.typespec import TensorSpec

__all__ = ["EagerOperation", "EagerTensor"]

_numbers: Final = itertools.count(1)


class EagerTensor(Tensor):
    """A tensor whose value is known.

    Attributes:
        value: an array of the host's memory; the resource or the object behind a handle.
    """

    _id: int
    _passed: list[Tensor]
    value: Any

    def pass_on(self, handles: list[Tensor]) -> None:
        """Keeps the handles that came in: a resource goes with the one that made it."""
        self._passed = handles

    def hold(self, value: Any, handle: Handle | None = None) -> None:
        """Takes the value, once it is computed, and what is known of it if it is a handle."""
        self.value, self._known_handle = value, handle
        self._id = next(_numbers)
        if isinstance(value, np.ndarray):  # of variants as well, unless there is only one
            self._shape = value.shape
        if not self._dtype._is_handle:
            self._known = value

    # ------------------------------------------------------------ as Python's values
    def numpy(self) -> Any:
        """A copy of the value; a scalar as NumPy's scalar, a string as bytes.

        Raises:
            ValueError: there is nothing to copy behind a handle.
        """
        if self._dtype._is_handle:
            raise ValueError(
                f"Cannot convert a Tensor of dtype {self._dtype.name} to a NumPy array."
            )
        return self._plain.copy() if self._plain.ndim else self._plain[()]

    _numpy = numpy

    @property
    def _plain(self) -> np.ndarray[Any, Any]:
        value: np.ndarray[Any, Any] = self.value
        # Quantized numbers leave as the integers that hold them.
        return value if value.dtype.names is None else value.view(value.dtype[0])

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        return np.array(self.numpy(), dtype)

    def __bool__(self) -> bool:
        if self._shape not in ((), (1,)):
            raise ValueError(f"Non-scalar tensor {self!r} cannot be converted to boolean.")
        return bool(self.numpy())

    def __int__(self) -> int:
        return int(self.numpy())

    def __float__(self) -> float:
        return float(self.numpy())

    def __complex__(self) -> complex:
        return complex(self.numpy())

    def __index__(self) -> int:
        found = self.numpy()
        if self._shape != () or not self._dtype.is_integer:
            raise TypeError(f"only integer scalar tensors can be an index, not {self!r}")
        return int(found)

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("Scalar tensor has no `len()`")
        length = self._shape[0]
        assert length is not None
        return length

    def __iter__(self) -> Iterator[Any]:
        if not self._shape:
            raise TypeError("Cannot iterate over a scalar tensor.")
        return (self[i] for i in range(len(self)))

    def __format__(self, format_spec: str) -> str:
        number = self._shape == () and format_spec and not self._dtype._is_handle
        return format(self.numpy() if number else str(self), format_spec)

    def __copy__(self) -> EagerTensor:
        return self  # its value does not change

    def __deepcopy__(self, memo: Any) -> EagerTensor:
        return self

    def __reduce__(self) -> Any:
        return convert_to_tensor, (self.numpy(),)

    def __str__(self) -> str:
        return f"tf.Tensor({self._text(str)}, shape={self._shape}, dtype={self._dtype.name})"

    def __repr__(self) -> str:
        return (
            f"<tf.Tensor: id={self._id}, shape={self._shape}, "
            f"dtype={self._dtype.name}, numpy={self._text(repr)}>"
        )

    def _text(self, text: Any) -> str:
        if self._dtype._is_handle:
            return "<unprintable>"
        value = self.numpy()
        # NumPy 2 has its scalars' types in their `repr`, which TensorFlow's text does not have.
        found: str = str(value) if isinstance(value, np.number | np.bool_) else text(value)
        return "\n" + found if text is repr and "\n" in found else found

    @property
    def _type_spec(self) -> TensorSpec:
        return TensorSpec(self.shape, self._dtype)

    # ------------------------------------------------------------ what a graph's tensors lack
    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._shape or ())

    def _rank(self) -> int:
        """`ndim`, as tensorflow-estimator asks for it."""
        return self.ndim

    @property
    def device(self) -> str:
        """The device on which it was computed."""
        graph: Any = self._op.graph
        found: str = graph.full_device(self._op._device)
        return found

    backing_device = device

    def cpu(self) -> Tensor:
        """The tensor: values are in the host's memory."""
        return self

    def gpu(self, gpu_index: int = 0) -> Tensor:
        """The tensor, handed on by that GPU."""
        with self._op.graph.device(f"GPU:{gpu_index}"):
            copied: Tensor = get("Identity")(self)
        return copied

    def set_shape(self, shape: Any) -> None:
        """Checks a claim.

        Raises:
            ValueError: the shape is another.
        """
        if self._dtype._is_handle:
            super().set_shape(shape)
        elif not shapes.is_compatible(self._shape, shapes.as_shape(shape)):
            raise ValueError(
                f"Tensor's shape {shapes.text(self._shape)} is not compatible with supplied shape "
                f"{shapes.text(shapes.as_shape(shape))}"
            )

    @property
    def graph(self) -> NoReturn:
        """None that could be looked at; libraries tell tensors of graphs by it."""
        raise AttributeError("Tensor.graph is meaningless when eager execution is enabled.")

    def consumers(self) -> NoReturn:
        """Nobody knows them."""
        raise NotImplementedError("tf.Tensor.consumers is not supported when executing eagerly")

    def eval(self, feed_dict: dict[Any, Any] | None = None, session: Any = None) -> NoReturn:
        """There is no session."""
        raise NotImplementedError(
            "eval is not supported when eager execution is enabled, is .numpy() what you're "
            "looking for?"
        )


class EagerOperation(Operation):
    """An operation that has run. Whoever keeps its results keeps it, and not the other way round.

    A tape that watches keeps its inputs and results as long as it lasts.
    """

    __slots__ = ("_results", "tapes")

    def __init__(
        self, graph: Any, spec: Any, name: str, attrs: dict[str, Any], op_id: int, frames: Any
    ) -> None:
        self.tapes = 0
        self._results: list[weakref.ref[Tensor]] = []
        super().__init__(graph, spec, name, (), attrs, [], [], [], op_id, frames)

    @property
    def outputs(self) -> list[Tensor]:
        """The results that are still there; a tape keeps them all."""
        return [t for t in (r() for r in self._results) if t is not None]

    @outputs.setter
    def outputs(self, results: list[Tensor]) -> None:
        self._results = [weakref.ref(t) for t in results]
