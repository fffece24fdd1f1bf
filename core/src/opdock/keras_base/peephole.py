"""The LSTM cell of tf.keras whose gates see its state: tf_keras has dropped it."""

from __future__ import annotations

from typing import Any

from tf_keras.api._v1.keras.backend import dot
from tf_keras.api._v1.keras.layers import LSTMCell

from opdock.graph.nodes.operation import Tensor
from opdock.ops.splitting import split

__all__ = ["PeepholeLSTMCell"]


class PeepholeLSTMCell(LSTMCell):  # type: ignore[misc]
    """An LSTM cell whose gates look at the carry as well, each unit's at its own.

    The input and the forget gate see the carry [batch, units] of the last step, the output gate
    that of this one. Arguments are those of `tf.keras.layers.LSTMCell`.
    """

    def build(self, input_shape: Any) -> None:
        """Makes the kernels and the weights of the gates."""
        super().build(input_shape)
        self.input_gate_peephole_weights = self._peephole("input")
        self.forget_gate_peephole_weights = self._peephole("forget")
        self.output_gate_peephole_weights = self._peephole("output")

    def _peephole(self, gate: str) -> Any:
        return self.add_weight(
            shape=(self.units,),
            name=f"{gate}_gate_peephole_weights",
            initializer=self.kernel_initializer,
        )

    def _compute_carry_and_output(
        self, x: list[Tensor], h_tm1: list[Tensor], c_tm1: Tensor
    ) -> tuple[Tensor, Tensor]:
        kernels = split(self.recurrent_kernel, 4, axis=1)
        parts = [a + dot(h, k) for a, h, k in zip(x, h_tm1, kernels, strict=True)]
        return self._compute_carry_and_output_fused(parts, c_tm1)

    def _compute_carry_and_output_fused(
        self, z: list[Tensor], c_tm1: Tensor
    ) -> tuple[Tensor, Tensor]:
        gate = self.recurrent_activation
        enter = gate(z[0] + self.input_gate_peephole_weights * c_tm1)
        forget = gate(z[1] + self.forget_gate_peephole_weights * c_tm1)
        carry = forget * c_tm1 + enter * self.activation(z[2])
        return carry, gate(z[3] + self.output_gate_peephole_weights * carry)
