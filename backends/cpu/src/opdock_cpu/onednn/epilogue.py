"""What follows a product before its result is stored: activations and a sum, as post-ops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from opdock_cpu.onednn.declarations import Alg, Arg
from opdock_cpu.onednn.memory import Desc

__all__ = ["ACTIVATIONS", "Epilogue"]

# oneDNN's relu makes 0 of a NaN. Its elu keeps it, and with a slope of 0 it is relu.
_RELU: Final = (Alg.ELU, 0.0, 0.0)

ACTIVATIONS: Final[Mapping[str, tuple[Any, ...] | None]] = {
    "": None,
    "Relu": _RELU,
    "Relu6": _RELU,
    "Elu": (Alg.ELU, 1.0, 0.0),
    "Tanh": (Alg.TANH, 0.0, 0.0),
    "Sigmoid": (Alg.LOGISTIC, 0.0, 0.0),
}
"""The activations that a product may end in, by TF's op; "" is none."""


@dataclass(frozen=True)
class Epilogue:
    """The post-ops of one fused product.

    Attributes:
        activation: a key of `ACTIVATIONS`.
        channels: the layout of a factor and then a summand per channel, or None.
        residual: the layout of an array that is added before the activation, or None.
    """

    activation: str = ""
    channels: Desc | None = None
    residual: Desc | None = None

    @property
    def _binary(self) -> list[tuple[int, Desc]]:
        steps = []
        if self.channels is not None:
            steps += [(Alg.BINARY_MUL, self.channels), (Alg.BINARY_ADD, self.channels)]
        if self.residual is not None:
            steps.append((Alg.BINARY_ADD, self.residual))
        return steps

    @property
    def post_ops(self) -> list[tuple[Any, ...]]:
        """As `Attributes` takes them."""
        chain: list[tuple[Any, ...]] = [("binary", *step) for step in self._binary]
        last = ACTIVATIONS[self.activation]
        return chain if last is None else [*chain, last]

    @property
    def extra(self) -> list[tuple[int, Desc]]:
        """The further arguments of a call, in the order of the post-ops."""
        return [(Arg.post_op(i) | Arg.SRC_1, desc) for i, (_, desc) in enumerate(self._binary)]

    def finish(self, out: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """What no post-op does as TF does it."""
        if self.activation == "Relu6":
            np.minimum(out, np.float32(6), out=out)
        return out
