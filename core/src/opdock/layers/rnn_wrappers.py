"""Cells around cells: dropout, a way past the cell, and a device."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from opdock import dtypes
from opdock.graph.nodes.constant_value import constant_value
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import device, name_scope
from opdock.graph.variables.trackable import Trackable
from opdock.layers.rnn_base import LSTMStateTuple, RNNCell, dims
from opdock.ops.composed.dropout import dropout
from opdock.ops.composed.tensor_array import TensorArray
from opdock.ops.random import random_uniform
from opdock.ops.support.nn_util import emit
from opdock.util import nest

__all__ = ["DeviceWrapper", "DropoutWrapper", "ResidualWrapper"]


class Wrapper(RNNCell):
    """A cell that is another one and something more.

    Args:
        cell: the other one.
    """

    # Arguments that are functions of the user's.
    _functions: ClassVar[tuple[str, ...]] = ()

    def __init__(self, cell: Any, dtype: Any = None, **kwargs: Any) -> None:
        super().__init__(dtype=dtype, **kwargs)
        self._cell = cell
        if isinstance(cell, Trackable):
            self._track_trackable(cell, "cell")

    def get_config(self) -> dict[str, Any]:
        """The arguments that make such a wrapper, a function of the user's as it is."""
        given = {name: getattr(self, f"_{name}") for name in self._functions}
        own = {name: function for name, function in given.items() if function is not None}
        return {**super().get_config(), **own}

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> Self:
        """A wrapper from what `get_config` gave, with a cell in the place of the cell's own.

        Args:
            config: the arguments.
            custom_objects: functions by the names that stand for them in `config`.

        Raises:
            TypeError: a function is none, such as its byte code, which is not run.
            ValueError: the cell is not a cell, but what its `get_config` gave: its class is not
                looked for by name.
        """
        for name in cls._functions:
            function = config.get(name)
            if isinstance(function, str) and custom_objects and function in custom_objects:
                function = custom_objects[function]
                config = {**config, name: function}
            if function is not None and not callable(function):
                raise TypeError(
                    f"{name} is no function but {function!r}: give the function itself in its "
                    "place, or by its name in custom_objects"
                )
        cell = config["cell"]
        if not hasattr(cell, "state_size"):
            raise ValueError(
                f"{cls.__name__} cannot reconstruct the wrapped cell. Please overwrite the cell in "
                "the config with a RNNCell instance."
            )
        return cls(**config)

    @property
    def cell(self) -> Any:
        """The cell inside."""
        return self._cell

    @property
    def wrapped_cell(self) -> Any:
        """The cell inside."""
        return self._cell

    @property
    def state_size(self) -> Any:
        """That of the cell."""
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        """That of the cell."""
        return self._cell.output_size

    @property
    def trainable_weights(self) -> list[Any]:
        """Those of the cell."""
        return list(self._cell.trainable_weights)

    @property
    def non_trainable_weights(self) -> list[Any]:
        """Those of the cell."""
        return list(self._cell.non_trainable_weights)

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """That of the cell."""
        with name_scope(type(self).__name__ + "ZeroState", values=[batch_size]):
            return self._cell.zero_state(batch_size, dtype)


class DropoutWrapper(Wrapper):
    """Dropout of the inputs, outputs and states of a cell.

    Args:
        cell: the cell.
        input_keep_prob, output_keep_prob, state_keep_prob: the parts to keep.
        variational_recurrent: whether all steps drop the same places.
        input_size: the shapes of the inputs without the batch, where they are dropped alike.
        dtype: the type of what is dropped alike.
        seed: the seed of the random numbers.
        dropout_state_filter_visitor: takes a part of the state and says, in its structure, what
            may be dropped; an LSTM's memory and arrays are not, by default.

    Raises:
        TypeError: the visitor is not callable.
        ValueError: a part is not between 0 and 1, or what all steps are to drop alike has no type
            or no size.
    """

    _functions = ("dropout_state_filter_visitor",)

    def __init__(
        self, cell: Any, input_keep_prob: Any = 1.0, output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0, variational_recurrent: bool = False, input_size: Any = None,
        dtype: Any = None, seed: int | None = None,
        dropout_state_filter_visitor: Callable[[Any], Any] | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(cell, None if dtype is None else dtypes.as_dtype(dtype), **kwargs)
        if dropout_state_filter_visitor is not None and not callable(dropout_state_filter_visitor):
            raise TypeError("dropout_state_filter_visitor must be callable")
        self._dropout_state_filter_visitor = dropout_state_filter_visitor
        self._dropout_state_filter = dropout_state_filter_visitor or _may_drop
        self._input_keep_prob, self._output_keep_prob = input_keep_prob, output_keep_prob
        self._state_keep_prob, self._input_size = state_keep_prob, input_size
        self._variational_recurrent = variational_recurrent
        self._seed = seed
        self._keep = {
            kind: _checked(f"{kind}_keep_prob", value)
            for kind, value in (
                ("input", input_keep_prob), ("state", state_keep_prob),
                ("output", output_keep_prob),
            )
        }  # fmt: skip
        self._noise: dict[str, list[Tensor]] = {}
        if variational_recurrent:
            self._draw(input_size, dtype)

    def _draw(self, input_size: Any, dtype: Any) -> None:
        """The random numbers of all steps."""
        if dtype is None:
            raise ValueError("When variational_recurrent=True, dtype must be provided")
        sizes = {"state": self.state_size, "output": self.output_size}
        if _drops(self._keep["input"]):
            if input_size is None:
                raise ValueError(
                    "When variational_recurrent=True and input_keep_prob < 1.0 or is unknown, "
                    "input_size must be provided"
                )
            sizes = {"input": input_size, **sizes}
        for kind, size in sizes.items():
            self._noise[kind] = [
                random_uniform([1, *dims(s)], dtype=dtype, seed=self._seed_of(kind, i))
                for i, s in enumerate(nest.flatten(size))
            ]

    def __call__(self, inputs: Any, state: Any, scope: Any = None, **kwargs: Any) -> Any:
        """One step of the cell."""
        output, new = self._cell(self._drop("input", inputs), state, scope=scope)
        return self._drop("output", output), self._drop("state", new)

    def _drop(self, kind: str, values: Any) -> Any:
        if not _drops(self._keep[kind]):
            return values
        flat = nest.flatten(values)
        may = (
            nest.flatten(self._dropout_state_filter(values))
            if kind == "state"
            else [True] * len(flat)
        )
        kept = [
            self._dropped(kind, i, value) if allowed else value
            for i, (value, allowed) in enumerate(zip(flat, may, strict=True))
        ]
        return nest.pack_sequence_as(values, kept) if nest.is_sequence(values) else kept[0]

    def _dropped(self, kind: str, index: int, value: Any) -> Any:
        keep = self._keep[kind]
        if kind not in self._noise:
            return dropout(value, keep_prob=keep, seed=self._seed_of(kind, index))
        mask = emit("Floor", self._noise[kind][index] + keep)
        kept = emit("RealDiv", value, keep) * mask
        kept.set_shape(value.shape)
        return kept

    def _seed_of(self, kind: str, index: int) -> int | None:
        """A seed of its own for each place, so that they do not drop alike."""
        if self._seed is None:
            return None
        text = f"{self._seed}{kind}_{index}".encode()
        return int(hashlib.md5(text, usedforsecurity=False).hexdigest()[:8], 16) & 0x7FFFFFFF


def _checked(name: str, value: Any) -> Any:
    known = constant_value(convert_to_tensor(value))
    if known is not None and not 0 < float(known) <= 1:
        raise ValueError(f"Parameter {name} must be between 0 and 1: {float(known)}")
    return value if known is None else float(known)


def _drops(keep: Any) -> bool:
    return not isinstance(keep, float) or keep < 1


def _may_drop(state: Any) -> Any:
    """Everything but the memory of an LSTM and arrays."""
    if isinstance(state, LSTMStateTuple):
        return LSTMStateTuple(False, True)
    if isinstance(state, TensorArray):
        return False
    return nest.like(state, [_may_drop(s) for s in state]) if nest.is_sequence(state) else True


class ResidualWrapper(Wrapper):
    """Adds the inputs of a cell to its outputs.

    Args:
        cell: the cell.
        residual_fn: takes the inputs and the outputs, and gives the outputs; their sum by default,
            for which they must have the same structure and shapes.
    """

    _functions = ("residual_fn",)

    def __init__(
        self, cell: Any, residual_fn: Callable[[Any, Any], Any] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(cell, **kwargs)
        self._residual_fn = residual_fn

    def __call__(self, inputs: Any, state: Any, scope: Any = None, **kwargs: Any) -> Any:
        """One step of the cell."""
        outputs, new = self._cell(inputs, state, scope=scope, **kwargs)
        if self._residual_fn is not None:
            return self._residual_fn(inputs, outputs), new
        nest.assert_same_structure(inputs, outputs)
        for given, made in zip(nest.flatten(inputs), nest.flatten(outputs), strict=True):
            given.shape.assert_is_compatible_with(made.shape)
        return nest.map_structure(lambda given, made: given + made, inputs, outputs), new


class DeviceWrapper(Wrapper):
    """Runs a cell on a device.

    Args:
        cell: the cell.
        device: a device string or function, as `tf.device` takes it.
    """

    def __init__(self, cell: Any, device: Any, **kwargs: Any) -> None:
        super().__init__(cell, **kwargs)
        self._device = device

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """That of the cell, on the device."""
        with (
            name_scope("DeviceWrapperZeroState", values=[batch_size]),
            device(self._device),
        ):
            return self._cell.zero_state(batch_size, dtype)

    def __call__(self, inputs: Any, state: Any, scope: Any = None, **kwargs: Any) -> Any:
        """One step of the cell, on the device."""
        with device(self._device):
            return self._cell(inputs, state, scope=scope, **kwargs)
