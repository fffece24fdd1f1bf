"""The cells that compute on any device what cuDNN's networks do, under TensorFlow's names."""

from __future__ import annotations

from typing import Any

from opdock.contrib.rnn.fused import LSTMBlockCell
from opdock.graph.variables.initializers import constant_initializer, zeros_initializer
from opdock.layers.rnn_base import check_types
from opdock.layers.rnn_cell import GRUCell
from opdock.ops.bias import bias_add
from opdock.ops.elementary import sigmoid
from opdock.ops.joining import concat
from opdock.ops.linalg import matmul
from opdock.ops.splitting import split

__all__ = ["CudnnCompatibleGRUCell", "CudnnCompatibleLSTMCell"]


class CudnnCompatibleLSTMCell(LSTMBlockCell):
    """The step of a `CudnnLSTM`, whose checkpoints it reads.

    Args:
        num_units: the number of units.
        reuse: whether to share variables of the scope.
    """

    def __init__(self, num_units: int, reuse: Any = None) -> None:
        super().__init__(num_units, 0.0, reuse=reuse, name="cudnn_compatible_lstm_cell")


class CudnnCompatibleGRUCell(GRUCell):
    """The step of a `CudnnGRU`, whose checkpoints it reads.

    It resets the product of the state, where `GRUCell` resets the state, and has a bias of its own
    for that product.

    Args:
        num_units: the number of units.
        reuse: whether to share variables of the scope.
        kernel_initializer: makes the kernels.
    """

    def __init__(self, num_units: int, reuse: Any = None, kernel_initializer: Any = None) -> None:
        super().__init__(num_units, reuse=reuse, kernel_initializer=kernel_initializer)

    def build(self, input_shape: Any) -> None:
        """Makes the variables."""
        n, depth, make = self._num_units, self._depth(input_shape), self._kernel_initializer
        ones, zeros = constant_initializer(1.0), zeros_initializer()

        def pair(name: str, rows: int, columns: int, start: Any) -> tuple[Any, Any]:
            kernel = self.add_weight(f"{name}/kernel", [rows, columns], initializer=make)
            return kernel, self.add_weight(f"{name}/bias", [columns], initializer=start)

        self._gates = pair("gates", depth + n, 2 * n, ones)
        self._of_input = pair("candidate/input_projection", depth, n, zeros)
        self._of_state = pair("candidate/hidden_projection", n, n, zeros)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        check_types(inputs, state)
        gates = _affine(concat([inputs, state], 1), self._gates)
        reset, update = split(sigmoid(gates), 2, 1)
        new = _affine(inputs, self._of_input) + reset * _affine(state, self._of_state)
        output = (1 - update) * self._activation(new) + update * state
        return output, output


def _affine(values: Any, weights: tuple[Any, Any]) -> Any:
    return bias_add(matmul(values, weights[0]), weights[1])
