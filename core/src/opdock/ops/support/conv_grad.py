"""The gradients of a convolution and of its own two gradients: each is one of the three again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.registry import OpSpec
from opdock.ops.support.nn_util import emit

__all__ = ["Convolution", "both", "each"]


@dataclass(frozen=True, slots=True)
class Convolution:
    """Three ops that are each other's derivatives.

    Attributes:
        forward: (data, kernel) -> results.
        to_data: (shape of the data, kernel, gradient of the results) -> that of the data.
        to_kernel: (data, shape of the kernel, gradient of the results) -> that of the kernel.
        attrs: the attributes that all three have.
        sizes: gives the shapes of data and kernel.
    """

    forward: OpSpec
    to_data: OpSpec
    to_kernel: OpSpec
    attrs: Sequence[str]
    sizes: Callable[[Tensor, Tensor], Sequence[Tensor]]

    def declare(self, old: Sequence[tuple[OpSpec, OpSpec]] = ()) -> None:
        """Declares the gradients.

        Args:
            old: earlier versions of `to_data` and `to_kernel`, of which gradients are asked too.
        """
        self.forward.gradient(self._of_forward)
        for to_data, to_kernel in ((self.to_data, self.to_kernel), *old):
            to_data.gradient(self._of_data)
            to_kernel.gradient(self._of_kernel)

    def _shared(self, op: Operation) -> dict[str, Any]:
        return {name: op.attrs[name] for name in self.attrs if name in op.attrs}

    def _of_forward(self, op: Operation, grad: Tensor) -> list[Tensor]:
        data, kernel = op.inputs
        of_data, of_kernel = self.sizes(data, kernel)
        attrs = self._shared(op)
        return [
            self.to_data(of_data, kernel, grad, **attrs),
            self.to_kernel(data, of_kernel, grad, **attrs),
        ]

    def _of_data(self, op: Operation, grad: Tensor) -> list[Tensor | None]:
        _, kernel, results = op.inputs
        attrs = self._shared(op)
        of_kernel: Any = emit("Shape", kernel)
        return [
            None,
            self.to_kernel(grad, of_kernel, results, **attrs),
            self.forward(grad, kernel, **attrs),
        ]

    def _of_kernel(self, op: Operation, grad: Tensor) -> list[Tensor | None]:
        data, _, results = op.inputs
        attrs = self._shared(op)
        of_data: Any = emit("Shape", data)
        return [
            self.to_data(of_data, grad, results, **attrs),
            None,
            self.forward(data, grad, **attrs),
        ]


def both(data: Tensor, kernel: Tensor) -> Sequence[Tensor]:
    """Both shapes by one op."""
    found: Sequence[Tensor] = emit("ShapeN", [data, kernel])
    return found


def each(data: Tensor, kernel: Tensor) -> Sequence[Tensor]:
    """Each shape by an op of its own."""
    return [emit("Shape", tensor) for tensor in (data, kernel)]
