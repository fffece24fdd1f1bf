"""The parameters of cuDNN's networks, and where each lies in the one buffer of them all."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Final

from opdock import errors
from opdock.ops.array import reshape
from opdock.ops.elementary import tanh
from opdock.ops.joining import concat
from opdock.ops.nn import relu
from opdock.ops.splitting import split

__all__ = [
    "AUTO", "BIDIRECTION", "GRU", "INPUT_MODES", "LINEAR", "LSTM", "MODES", "RELU", "SKIP", "TANH",
    "UNIDIRECTION", "Layout", "Mode", "check_direction", "check_input_mode", "mode_named",
]  # fmt: skip

UNIDIRECTION: Final = "unidirectional"
BIDIRECTION: Final = "bidirectional"
LINEAR: Final = "linear_input"
SKIP: Final = "skip_input"
AUTO: Final = "auto_select"
INPUT_MODES: Final = (LINEAR, SKIP, AUTO)


@dataclasses.dataclass(frozen=True)
class Mode:
    """A kind of network.

    Attributes:
        name: TensorFlow's name of it.
        gates: how many products of the input, and of the state, a step has.
        activation: that of a plain network; None where the gates say what is done.
    """

    name: str
    gates: int
    activation: Callable[[Any], Any] | None = None


LSTM: Final = Mode("lstm", 4)
GRU: Final = Mode("gru", 3)
RELU: Final = Mode("rnn_relu", 1, relu)
TANH: Final = Mode("rnn_tanh", 1, tanh)
MODES: Final = (LSTM, GRU, TANH, RELU)


def mode_named(name: str) -> Mode:
    """The kind of network of a name.

    Raises:
        ValueError: there is none.
    """
    for mode in MODES:
        if mode.name == name:
            return mode
    names = ", ".join(mode.name for mode in MODES)
    raise ValueError(f"Invalid rnn_mode: {name}, expect one of ({names})")


def check_direction(direction: str) -> None:
    """Whether it is one.

    Raises:
        ValueError: it is none.
    """
    if direction not in (UNIDIRECTION, BIDIRECTION):
        raise ValueError(
            f"Invalid direction: {direction}, expecting {UNIDIRECTION} or {BIDIRECTION}"
        )


def check_input_mode(input_mode: str) -> None:
    """Whether it is one.

    Raises:
        ValueError: it is none.
    """
    if input_mode not in INPUT_MODES:
        raise ValueError(
            f"Invalid input_mode: {input_mode}, expect one of ({', '.join(INPUT_MODES)})"
        )


@dataclasses.dataclass(frozen=True)
class Layout:
    """A network's shape, which says what parameters there are.

    Each layer has, forwards and then backwards, a matrix [units, inputs] a gate, then a matrix
    [units, units] a gate for the state; and as many biases. In the buffer all matrices come first,
    row by row, then all biases. The gates of an LSTM are input, forget, new memory, output; those
    of a GRU reset, update, new memory.

    Attributes:
        mode: the kind.
        layers: how many there are.
        units: of each layer, one way.
        input_size: the size of the first layer's inputs.
        input_mode: whether the first layer multiplies its inputs.
        direction: one way or both.

    Raises:
        ValueError: an argument is none of those, or the inputs are to be added as they are and
            do not have the size of the units.
    """

    mode: Mode
    layers: int
    units: int
    input_size: int
    input_mode: str = LINEAR
    direction: str = UNIDIRECTION

    def __post_init__(self) -> None:
        check_direction(self.direction)
        check_input_mode(self.input_mode)
        if self.input_mode == SKIP and self.input_size != self.units:
            raise ValueError(
                f"input_mode {SKIP} needs inputs of the size of the units, {self.units}, "
                f"not {self.input_size}"
            )

    @property
    def ways(self) -> int:
        """In how many directions it runs."""
        return 1 if self.direction == UNIDIRECTION else 2

    @property
    def skips(self) -> bool:
        """Whether the first layer's inputs are added to each gate as they are."""
        same = self.input_size == self.units
        return self.input_mode == SKIP or (self.input_mode == AUTO and same)

    @property
    def per_block(self) -> int:
        """How many biases a layer has, one way; and matrices, but the first where it skips."""
        return 2 * self.mode.gates

    def width(self, layer: int) -> int:
        """The size of a layer's inputs."""
        return self.input_size if layer == 0 else self.ways * self.units

    def block_shapes(self, layer: int) -> list[tuple[int, int]]:
        """The shapes of a layer's matrices, one way."""
        gates, units = self.mode.gates, self.units
        given = 0 if layer == 0 and self.skips else gates
        return [(units, self.width(layer))] * given + [(units, units)] * gates

    @property
    def weight_shapes(self) -> list[tuple[int, int]]:
        """The shapes of all matrices."""
        return [s for i in range(self.layers) for s in self.block_shapes(i) * self.ways]

    @property
    def bias_shapes(self) -> list[tuple[int]]:
        """The shapes of all biases."""
        return [(self.units,)] * (self.per_block * self.ways * self.layers)

    @property
    def size(self) -> int:
        """How many numbers the buffer has."""
        return sum(math.prod(s) for s in [*self.weight_shapes, *self.bias_shapes])

    def pack(self, weights: Any, biases: Any) -> Any:
        """The buffer.

        Args:
            weights: all matrices, of their shapes or flat.
            biases: all biases.

        Raises:
            InvalidArgumentError: there are more or fewer.
        """
        wanted = (len(self.weight_shapes), len(self.bias_shapes))
        if (len(weights), len(biases)) != wanted:
            raise errors.InvalidArgumentError(
                None, None,
                f"the network has {wanted[0]} weights and {wanted[1]} biases, not {len(weights)} "
                f"and {len(biases)}",
            )  # fmt: skip
        return concat([reshape(p, [-1]) for p in [*weights, *biases]], 0)

    def unpack(self, buffer: Any) -> tuple[list[Any], list[Any]]:
        """All matrices and all biases."""
        shapes = [*self.weight_shapes, *self.bias_shapes]
        parts = split(buffer, [math.prod(s) for s in shapes], 0)
        shaped = [reshape(p, s) for p, s in zip(parts, shapes, strict=True)]
        count = len(self.weight_shapes)
        return shaped[:count], shaped[count:]

    def blocks(self, weights: Any, biases: Any) -> list[tuple[list[Any], list[Any]]]:
        """The matrices and the biases of each layer and way, in order."""
        weights, biases = list(weights), list(biases)
        found = []
        for layer in range(self.layers):
            for _ in range(self.ways):
                count = len(self.block_shapes(layer))
                found.append((weights[:count], biases[: self.per_block]))
                del weights[:count], biases[: self.per_block]
        return found
