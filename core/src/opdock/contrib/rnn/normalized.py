"""The LSTM of `tf.nn.rnn_cell.LSTMCell` with its layers or its weights normalized."""

from __future__ import annotations

from typing import Any

from opdock.contrib.rnn.linear import known_width
from opdock.contrib.rnn.lstm_variants import LSTMLike, normed
from opdock.graph.nodes.scopes import control_dependencies
from opdock.graph.variables.initializers import zeros_initializer
from opdock.graph.variables.variable_scope import get_variable, get_variable_scope, variable_scope
from opdock.layers.rnn_base import LSTMStateTuple
from opdock.ops.bias import bias_add
from opdock.ops.clip import clip_by_value
from opdock.ops.composed.moments import l2_normalize
from opdock.ops.elementary import sigmoid, tanh
from opdock.ops.joining import concat
from opdock.ops.linalg import matmul
from opdock.ops.splitting import split

__all__ = ["LayerNormLSTMCell", "WeightNormLSTMCell"]


class _PeepholeLSTM(LSTMLike):
    """An LSTM with peepholes, bounds and a projection, whose subclasses normalize something."""

    def __init__(
        self, num_units: int, use_peepholes: bool, cell_clip: float | None, initializer: Any,
        num_proj: int | None, proj_clip: float | None, forget_bias: float, activation: Any,
        reuse: Any,
    ) -> None:  # fmt: skip
        super().__init__(num_units, num_proj, _reuse=reuse)
        self._peepholes, self._clip, self._initializer = use_peepholes, cell_clip, initializer
        self._proj_clip, self._forget_bias = proj_clip, forget_bias
        self._activation = activation or tanh

    def _product(self, args: list[Any], columns: int, bias: bool) -> Any:
        raise NotImplementedError

    def _normed(self, value: Any, scope: str) -> Any:
        return value

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        known_width(inputs)
        c, m = state
        i, j, f, o = (
            self._normed(part, name)
            for part, name in zip(
                split(self._product([inputs, m], 4 * self._num_units, bias=True), 4, 1),
                ("input", "transform", "forget", "output"),
                strict=True,
            )
        )
        f += self._forget_bias
        seen: dict[str, Any] = {}
        if self._peepholes:
            names = ("w_f_diag", "w_i_diag", "w_o_diag")
            seen = {n: get_variable(n, [self._num_units], inputs.dtype) for n in names}
            f, i = f + seen["w_f_diag"] * c, i + seen["w_i_diag"] * c
        c = self._normed(sigmoid(f) * c + sigmoid(i) * self._activation(j), "state")
        if self._clip is not None:
            c = clip_by_value(c, -self._clip, self._clip)
        if self._peepholes:
            o += seen["w_o_diag"] * c
        m = self._projected(sigmoid(o) * self._activation(c))
        return m, LSTMStateTuple(c, m)

    def _projected(self, m: Any) -> Any:
        if self._num_proj is None:
            return m
        with variable_scope("projection"):
            m = self._product([m], self._num_proj, bias=False)
        if self._proj_clip is not None:
            m = clip_by_value(m, -self._proj_clip, self._proj_clip)
        return m


class LayerNormLSTMCell(_PeepholeLSTM):
    """An LSTM whose gates and memory are normalized over its units (Ba et al. 2016).

    Args:
        num_units: the number of units.
        use_peepholes: whether the gates see the memory.
        cell_clip: the memory is clipped to [-cell_clip, cell_clip].
        initializer: makes the kernels.
        num_proj: the size of a projection of the output, or None.
        proj_clip: the projection is clipped to [-proj_clip, proj_clip].
        forget_bias: added to the forget gate.
        activation: tanh by default.
        layer_norm: whether to normalize.
        norm_gain, norm_shift: the starts of gain and shift.
        reuse: whether to share variables of the scope.
    """

    def __init__(
        self, num_units: int, use_peepholes: bool = False, cell_clip: float | None = None,
        initializer: Any = None, num_proj: int | None = None, proj_clip: float | None = None,
        forget_bias: float = 1.0, activation: Any = None, layer_norm: bool = False,
        norm_gain: float = 1.0, norm_shift: float = 0.0, reuse: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            num_units, use_peepholes, cell_clip, initializer, num_proj, proj_clip, forget_bias,
            activation, reuse,
        )  # fmt: skip
        self._layer_norm, self._gain, self._shift = layer_norm, norm_gain, norm_shift

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            return super().call(inputs, state)

    def _product(self, args: list[Any], columns: int, bias: bool) -> Any:
        given = concat(args, 1)
        found = matmul(given, get_variable("kernel", [known_width(given), columns], given.dtype))
        if bias:  # there is one beside the normalization too, though nothing adds it
            shift = get_variable("bias", [columns], given.dtype, zeros_initializer())
            found = found if self._layer_norm else bias_add(found, shift)
        return found

    def _normed(self, value: Any, scope: str) -> Any:
        return normed(value, scope, self._gain, self._shift) if self._layer_norm else value


class WeightNormLSTMCell(_PeepholeLSTM):
    """An LSTM each of whose kernels' columns has a length of its own (Salimans & Kingma 2016).

    Args:
        num_units: the number of units.
        norm: whether to normalize.
        use_peepholes: whether the gates see the memory.
        cell_clip: the memory is clipped to [-cell_clip, cell_clip].
        initializer: makes the kernels.
        num_proj: the size of a projection of the output, or None.
        proj_clip: the projection is clipped to [-proj_clip, proj_clip].
        forget_bias: added to the forget gate.
        activation: tanh by default.
        reuse: whether to share variables of the scope.
    """

    def __init__(
        self, num_units: int, norm: bool = True, use_peepholes: bool = False,
        cell_clip: float | None = None, initializer: Any = None, num_proj: int | None = None,
        proj_clip: float | None = None, forget_bias: float = 1, activation: Any = None,
        reuse: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            num_units, use_peepholes, cell_clip, initializer, num_proj, proj_clip, forget_bias,
            activation, reuse,
        )  # fmt: skip
        self._norm = norm

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        with variable_scope("wn_lstm_cell", initializer=self._initializer):
            return super().call(inputs, state)

    def _product(self, args: list[Any], columns: int, bias: bool) -> Any:
        given = concat(args, 1)
        kernel = get_variable("kernel", [known_width(given), columns], given.dtype)
        if self._norm:
            # Outside of whatever loop the cell runs in: a step changes no kernel.
            with control_dependencies(None):
                kernel = self._of_own_length(kernel, [known_width(arg) for arg in args])
        found = matmul(given, kernel)
        if bias:
            found = bias_add(
                found, get_variable("bias", [columns], given.dtype, zeros_initializer())
            )
        return found

    def _of_own_length(self, kernel: Any, widths: list[int]) -> Any:
        parts, start = [], 0
        for k, width in enumerate(widths):
            length = get_variable(f"norm_{k}", [kernel.shape.as_list()[1]], kernel.dtype.base_dtype)
            parts.append(l2_normalize(kernel[start : start + width, :], axis=0) * length)
            start += width
        return concat(parts, 0)
