"""What cells of recurrent networks share: the base class, states, checks of their types."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from opdock.dtypes import as_dtype
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.layers.base import Layer, static
from opdock.ops.array import expand_dims, shape
from opdock.ops.fill import zeros
from opdock.ops.joining import concat
from opdock.ops.slicing import slice
from opdock.shapes import TensorShape
from opdock.util import nest


class LSTMStateTuple(NamedTuple):
    """The state of an LSTM cell: the memory `c` and the output `h`."""

    c: Any
    h: Any

    @property
    def dtype(self) -> Any:
        """The type of both.

        Raises:
            TypeError: they differ.
        """
        if self.c.dtype != self.h.dtype:
            raise TypeError(f"Inconsistent internal state: {self.c.dtype} vs {self.h.dtype}")
        return self.c.dtype


def dims(size: Any) -> list[int | None]:
    """A size of a state or an output as a shape without the batch."""
    if not isinstance(size, Tensor):
        return [size] if isinstance(size, int) else TensorShape(size).as_list()
    if size.shape.ndims == 0:  # the length of what attention looks at
        return [known_int(size)]
    known = constant_value(size)
    return [None] * int(size.shape[0]) if known is None else [int(n) for n in known]


def known_int(value: Any) -> int | None:
    """An int or a scalar tensor as an int; None where it is not known now."""
    known = value if isinstance(value, int) else constant_value(convert_to_tensor(value))
    return None if known is None else int(known)


def zero_states(sizes: Any, batch: Any, dtype: Any) -> Any:
    """Zeros for a structure of sizes, with the batch in front of each.

    Args:
        sizes: an int, a shape, or a structure of them.
        batch: an int or a scalar tensor.
        dtype: the type of all.
    """

    def zero(size: Any) -> Tensor:
        made = zeros(joined_sizes(batch, size), dtype)
        made.set_shape(joined_sizes(batch, size, static=True))
        return made

    flat = [zero(s) for s in nest.flatten(sizes)]
    return nest.pack_sequence_as(sizes, flat) if nest.is_sequence(sizes) else flat[0]


def joined_sizes(prefix: Any, suffix: Any, static: bool = False) -> Any:
    """A shape of two parts, each an int, a shape or an integer tensor of rank 0 or 1.

    Args:
        prefix: most often the batch.
        suffix: what follows it.
        static: give a list, with None for what is not known now, instead of a tensor.

    Raises:
        ValueError: a tensor of another rank; without `static`, a shape that is not fully known.
    """
    if static:
        return [*dims(prefix), *dims(suffix)]
    parts = [_sizes("prefix", prefix), _sizes("suffix", suffix)]
    if any(part is None for part in parts):
        raise ValueError(f"Provided a prefix or suffix of None: {prefix} and {suffix}")
    return concat(parts, 0)


def _sizes(role: str, sizes: Any) -> Tensor | None:
    """As a vector; None where a shape is not fully known."""
    if not isinstance(sizes, Tensor):
        known = dims(sizes)
        return None if None in known else constant(known, "int32")
    if sizes.shape.ndims == 0:
        return expand_dims(sizes, 0)
    if sizes.shape.ndims != 1:
        raise ValueError(
            f"{role} tensor must be either a scalar or vector, but saw tensor: {sizes}"
        )
    return sizes


def checked_cell(name: str, cell: Any) -> None:
    """Raises TypeError where an argument does not have what a cell has."""
    missing = [
        f"'{part}' property is missing" for part in ("output_size", "state_size")
        if not hasattr(cell, part)
    ]  # fmt: skip
    if not hasattr(cell, "zero_state") and not hasattr(cell, "get_initial_state"):
        missing.append("either 'zero_state' or 'get_initial_state' method is required")
    if not callable(cell):
        missing.append("is not callable")
    if missing:
        raise TypeError(f"The argument {name!r} ({cell}) is not an RNNCell: {', '.join(missing)}.")


def check_types(*values: Any) -> None:
    """Raises ValueError where a tensor holds neither floats nor complex numbers."""
    for dtype in (as_dtype(t.dtype) for t in nest.flatten(values)):
        if not (dtype.is_floating or dtype.is_complex):
            raise ValueError(
                f"RNN cell only supports floating point inputs, but saw dtype: {dtype}"
            )


def parts_of_state(state: Any, sizes: Sequence[int]) -> list[Tensor]:
    """The states that stand side by side in one.

    What it has behind them, as the first state of a decoder may, is left alone.
    """
    firsts = itertools.accumulate(sizes, initial=0)
    return [slice(state, [0, i], [-1, size]) for i, size in zip(firsts, sizes, strict=False)]


class RNNCell(Layer):
    """One step: `output, new_state = cell(inputs, state)`.

    Subclasses define `call(inputs, state)`, `state_size` and `output_size`. Variables that `call`
    gets from `tf.get_variable`, or from cells inside, are the cell's weights.
    """

    # Keras' layers ask for it: a state of one tensor is handed to such a cell as it is, in no list.
    _is_tf_rnn_cell = True

    def _call_getter(self) -> Callable[..., Any] | None:
        def noting(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            variable = getter(*args, **kwargs)
            self._note_weight(variable, trainable=True)
            return variable

        return noting

    def __call__(self, inputs: Any, state: Any, scope: Any = None, **kwargs: Any) -> Any:
        """Makes the ops of one step.

        Args:
            inputs: a tensor [batch, size].
            state: a tensor or structure of tensors as `state_size` says.
            scope: the variable scope at the first call; the class's name by default.

        Returns:
            The output and the new state.
        """
        if scope is not None:
            kwargs["scope"] = scope
        return super().__call__(inputs, state, **kwargs)

    @property
    def state_size(self) -> Any:
        """The sizes of the state: an int, a shape, or a structure of them."""
        raise NotImplementedError("Abstract method")

    @property
    def output_size(self) -> Any:
        """The size of the output."""
        raise NotImplementedError("Abstract method")

    def get_initial_state(
        self, inputs: Any = None, batch_size: Any = None, dtype: Any = None
    ) -> Any:
        """The state to begin with: zeros.

        Args:
            inputs: a tensor whose first dimension and type say what the others are.
            batch_size: an int or a scalar tensor; needed without `inputs`.
            dtype: the type of the state; needed without `inputs`.

        Raises:
            ValueError: something is missing, or contradicts `inputs`.
        """
        if inputs is not None:
            inputs = convert_to_tensor(inputs, name="inputs")
            (known, *_) = static(inputs.shape)
            if batch_size is not None and known_int(batch_size) != known:
                raise ValueError(
                    "batch size from input tensor is different from the input param. Input tensor "
                    f"batch: {known}, batch_size: {batch_size}"
                )
            if dtype is not None and inputs.dtype != dtype:
                raise ValueError(
                    "dtype from input tensor is different from the input param. Input tensor "
                    f"dtype: {inputs.dtype}, dtype: {dtype}"
                )
            batch_size = shape(inputs)[0] if known is None else known
            dtype = inputs.dtype
        if batch_size is None or dtype is None:
            raise ValueError(
                "batch_size and dtype cannot be None while constructing initial state: "
                f"batch_size={batch_size}, dtype={dtype}"
            )
        return self.zero_state(batch_size, dtype)

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros.

        Args:
            batch_size: an int or a scalar tensor.
            dtype: the type of the state.
        """
        with name_scope(type(self).__name__ + "ZeroState", values=[batch_size]):
            return zero_states(self.state_size, batch_size, dtype)


class LayerRNNCell(RNNCell):
    """A cell that makes its variables in `build`, by `add_weight`, as layers do."""

    def _call_getter(self) -> None:
        return None
