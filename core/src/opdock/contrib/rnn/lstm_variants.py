"""Cells with the state of an LSTM: variants of it in the literature."""

from __future__ import annotations

import math
from typing import Any

from opdock import dtypes
from opdock.contrib.layers.normalization import layer_norm
from opdock.contrib.rnn.linear import Linear, known_width, sharded_kernel
from opdock.graph.variables.initializers import (
    constant_initializer,
    random_uniform_initializer,
    zeros_initializer,
)
from opdock.graph.variables.variable_scope import get_variable, get_variable_scope, variable_scope
from opdock.layers.rnn_base import LSTMStateTuple, RNNCell, parts_of_state
from opdock.ops.arithmetic import mod
from opdock.ops.bias import bias_add
from opdock.ops.cast import cast
from opdock.ops.clip import clip_by_value
from opdock.ops.composed.dropout import dropout
from opdock.ops.elementary import exp, sigmoid, tanh
from opdock.ops.identity import stop_gradient
from opdock.ops.joining import concat
from opdock.ops.linalg import matmul
from opdock.ops.nn import relu
from opdock.ops.random import random_uniform
from opdock.ops.select import where
from opdock.ops.splitting import split

__all__ = [
    "CoupledInputForgetGateLSTMCell", "GLSTMCell", "LayerNormBasicLSTMCell", "NASCell",
    "PhasedLSTMCell",
]  # fmt: skip


def normed(values: Any, scope: str, gain: float, shift: float) -> Any:
    """Layer normalization with variables `gamma` and `beta` that begin with these numbers."""
    size, dtype = values.shape[-1:], values.dtype.base_dtype
    with variable_scope(scope):
        get_variable("gamma", size, dtype, constant_initializer(gain))
        get_variable("beta", size, dtype, constant_initializer(shift))
    return layer_norm(values, reuse=True, scope=scope)


class LSTMLike(RNNCell):
    """A cell with the state of an LSTM, and a projection of its output where one is asked for."""

    def __init__(self, num_units: int, num_proj: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._num_units, self._num_proj = num_units, num_proj or None

    @property
    def state_size(self) -> Any:
        """The sizes of memory and output."""
        return LSTMStateTuple(self._num_units, self.output_size)

    @property
    def output_size(self) -> int:
        """The number of units, or the size of the projection."""
        return self._num_proj or self._num_units


class LayerNormBasicLSTMCell(LSTMLike):
    """An LSTM with layer normalization and dropout of what it is about to remember.

    After Ba et al. 2016 and Semeniuta et al. 2016.

    Args:
        num_units: the number of units.
        forget_bias: added to the forget gate.
        input_size: not used.
        activation: tanh by default.
        layer_norm: whether to normalize; else there is a bias.
        norm_gain, norm_shift: the starts of gain and shift.
        dropout_keep_prob: the part to keep, a number or a scalar tensor.
        dropout_prob_seed: the seed of the random numbers.
        reuse: whether to share variables of the scope.
    """

    def __init__(
        self, num_units: int, forget_bias: float = 1.0, input_size: Any = None,
        activation: Any = tanh, layer_norm: bool = True, norm_gain: float = 1.0,
        norm_shift: float = 0.0, dropout_keep_prob: Any = 1.0,
        dropout_prob_seed: int | None = None, reuse: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_units, _reuse=reuse)
        self._forget_bias, self._activation = forget_bias, activation
        self._layer_norm, self._gain, self._shift = layer_norm, norm_gain, norm_shift
        self._keep_prob, self._seed = dropout_keep_prob, dropout_prob_seed

    def _norm(self, values: Any, scope: str) -> Any:
        return normed(values, scope, self._gain, self._shift) if self._layer_norm else values

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        c, h = state
        given = concat([inputs, h], 1)
        size, dtype = 4 * self._num_units, given.dtype
        gates = matmul(given, get_variable("kernel", [given.shape[-1], size], dtype))
        if not self._layer_norm:
            gates = bias_add(gates, get_variable("bias", [size], dtype))
        parts = zip(split(gates, 4, 1), ("input", "transform", "forget", "output"), strict=True)
        i, j, f, o = (self._norm(part, name) for part, name in parts)
        new = self._activation(j)
        if not isinstance(self._keep_prob, float) or self._keep_prob < 1:
            new = dropout(new, self._keep_prob, seed=self._seed)
        c = self._norm(c * sigmoid(f + self._forget_bias) + sigmoid(i) * new, "state")
        h = self._activation(c) * sigmoid(o)
        return h, LSTMStateTuple(c, h)


class CoupledInputForgetGateLSTMCell(LSTMLike):
    """An LSTM that takes in as much as it forgets (Greff et al. 2015).

    Args:
        num_units: the number of units.
        use_peepholes: whether the gates see the memory.
        initializer: makes the kernels.
        num_proj: the size of a projection of the output, or None.
        proj_clip: the projection is clipped to [-proj_clip, proj_clip].
        num_unit_shards, num_proj_shards: in how many variables the kernels are kept.
        forget_bias: added to the forget gate.
        state_is_tuple: whether the state is an `LSTMStateTuple`, else one tensor.
        activation: tanh by default.
        reuse: whether to share variables of the scope.
        layer_norm: whether to normalize in place of a bias.
        norm_gain, norm_shift: the starts of gain and shift.
    """

    def __init__(
        self, num_units: int, use_peepholes: bool = False, initializer: Any = None,
        num_proj: int | None = None, proj_clip: float | None = None, num_unit_shards: int = 1,
        num_proj_shards: int = 1, forget_bias: float = 1.0, state_is_tuple: bool = True,
        activation: Any = tanh, reuse: Any = None, layer_norm: bool = False,
        norm_gain: float = 1.0, norm_shift: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(num_units, num_proj, _reuse=reuse)
        self._peepholes, self._initializer, self._proj_clip = use_peepholes, initializer, proj_clip
        self._shards = (num_unit_shards, num_proj_shards)
        self._forget_bias, self._state_is_tuple = forget_bias, state_is_tuple
        self._activation, self._layer_norm = activation, layer_norm
        self._gain, self._shift = norm_gain, norm_shift

    @property
    def state_size(self) -> Any:
        """The sizes of memory and output."""
        sizes = LSTMStateTuple(self._num_units, self.output_size)
        return sizes if self._state_is_tuple else sum(sizes)

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        n, dtype = self._num_units, inputs.dtype
        c, m = state if self._state_is_tuple else parts_of_state(state, [n, self.output_size])
        rows = known_width(inputs) + self.output_size
        gates = matmul(
            concat([inputs, m], 1), sharded_kernel("W", rows, 3 * n, dtype, self._shards[0])
        )
        bias = get_variable("B", [3 * n], dtype, zeros_initializer())
        if not self._layer_norm:
            gates = bias_add(gates, bias)
        j, f, o = split(gates, 3, 1)
        if self._layer_norm:
            names = ("transform", "forget", "output")
            j, f, o = (
                normed(part, name, self._gain, self._shift)
                for part, name in zip((j, f, o), names, strict=True)
            )
        f += self._forget_bias
        if self._peepholes:
            f += get_variable("W_F_diag", [n], dtype) * c
        keep = sigmoid(f)
        c = keep * c + (1 - keep) * self._activation(j)
        if self._layer_norm:
            c = normed(c, "state", self._gain, self._shift)
        if self._peepholes:
            o += get_variable("W_O_diag", [n], dtype) * c
        m = sigmoid(o) * self._activation(c)
        if self._num_proj is not None:
            m = matmul(m, sharded_kernel("W_P", n, self._num_proj, dtype, self._shards[1]))
            if self._proj_clip is not None:
                m = clip_by_value(m, -self._proj_clip, self._proj_clip)
        return m, LSTMStateTuple(c, m) if self._state_is_tuple else concat([c, m], 1)


class NASCell(LSTMLike):
    """The cell that a search over architectures found (Zoph & Le 2016).

    Args:
        num_units: the number of units.
        num_proj: the size of a projection of the output, or None.
        use_bias: whether there is a bias.
        reuse: whether to share variables of the scope.
        **kwargs: `name` and `dtype`.
    """

    def __init__(
        self, num_units: int, num_proj: int | None = None, use_bias: bool = False,
        reuse: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(num_units, num_proj, _reuse=reuse, **kwargs)
        self._use_bias = use_bias

    def build(self, inputs_shape: Any) -> None:
        """Makes the variables."""
        width = inputs_shape.with_rank(2).as_list()[1]
        if width is None:
            raise ValueError("Could not infer input size from inputs.get_shape()[-1]")
        size = 8 * self._num_units
        self.recurrent_kernel = self.add_variable("recurrent_kernel", [self.output_size, size])
        self.kernel = self.add_variable("kernel", [width, size])
        if self._use_bias:
            self.bias = self.add_variable("bias", [size], initializer=zeros_initializer())
        if self._num_proj is not None:
            self.projection_weights = self.add_variable(
                "projection_weights", [self._num_units, self._num_proj]
            )
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        c, m = state
        old = matmul(m, self.recurrent_kernel)
        if self._use_bias:
            old = bias_add(old, self.bias)
        x, y = split(matmul(inputs, self.kernel), 8, 1), split(old, 8, 1)
        pairs = [a * b if i == 3 else a + b for i, (a, b) in enumerate(zip(x, y, strict=True))]
        first = (sigmoid, relu, sigmoid, relu, tanh, sigmoid, tanh, sigmoid)
        n = [f(pair) for f, pair in zip(first, pairs, strict=True)]
        c = tanh(tanh(n[0] * n[1]) + c) * tanh(n[2] + n[3])
        m = tanh(c * tanh(tanh(n[4] * n[5]) + sigmoid(n[6] + n[7])))
        if self._num_proj is not None:
            m = matmul(m, self.projection_weights)
        return m, LSTMStateTuple(c, m)


def _random_exp(low: float, high: float, seed: int | None = None) -> Any:
    """An initializer whose logarithms are uniform."""

    def initializer(shape: Any, dtype: Any = dtypes.float32, partition_info: Any = None) -> Any:
        return exp(random_uniform(shape, math.log(low), math.log(high), dtype, seed=seed))

    return initializer


class PhasedLSTMCell(LSTMLike):
    """An LSTM whose units are open in turns, for inputs with times (Neil et al. 2016).

    Inputs are pairs of a time [batch, 1] and a tensor [batch, size].

    Args:
        num_units: the number of units.
        use_peepholes: whether the gates see the memory.
        leak: what passes a closed unit.
        ratio_on: the part of a period in which a unit is open.
        trainable_ratio_on: whether that is learned.
        period_init_min, period_init_max: the range in which the periods begin.
        reuse: whether to share variables of the scope.
    """

    def __init__(
        self, num_units: int, use_peepholes: bool = False, leak: float = 0.001,
        ratio_on: float = 0.1, trainable_ratio_on: bool = True, period_init_min: float = 1.0,
        period_init_max: float = 1000.0, reuse: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_units, _reuse=reuse)
        self._peepholes, self._leak, self._ratio_on = use_peepholes, leak, ratio_on
        self._trainable_ratio_on = trainable_ratio_on
        self._periods = (period_init_min, period_init_max)
        self._made: dict[str, Linear] = {}

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        c_old, h_old = state
        time, x = inputs
        seen = [c_old] if self._peepholes else []
        gates = sigmoid(self._product("mask_gates", [x, h_old, *seen], 2))
        take, keep = split(gates, 2, 1)
        c = c_old * keep + take * tanh(self._product("new_input", [x, h_old], 1))
        seen = [c] if self._peepholes else []
        h = tanh(c) * sigmoid(self._product("output_gate", [x, h_old, *seen], 1))
        k = self._openness(time)
        c, h = k * c + (1 - k) * c_old, k * h + (1 - k) * h_old
        return h, LSTMStateTuple(c, h)

    def _product(self, name: str, args: list[Any], times: int) -> Any:
        with variable_scope(name):
            if name not in self._made:
                self._made[name] = Linear(args, times * self._num_units, True)
            return self._made[name](args)

    def _openness(self, time: Any) -> Any:
        n = [self._num_units]
        period = get_variable("period", n, initializer=_random_exp(*self._periods))
        phase = get_variable(
            "phase", n, initializer=random_uniform_initializer(0.0, period.initial_value)
        )
        ratio = get_variable(
            "ratio_on", n, initializer=constant_initializer(self._ratio_on),
            trainable=self._trainable_ratio_on,
        )  # fmt: skip
        since, cycle = time - cast(phase, time.dtype), cast(period, time.dtype)
        # The remainder's own gradient would be that of a fixed number of cycles.
        rest = stop_gradient(mod(since, cycle) - since) + since
        part = cast(rest / cycle, dtypes.float32)
        rising = 2 * part / ratio
        k = where(part < ratio, 2 - rising, self._leak * part)
        return where(part < 0.5 * ratio, rising, k)


class GLSTMCell(LSTMLike):
    """An LSTM in groups that do not see each other (Kuchaiev & Ginsburg 2017).

    Args:
        num_units: the number of units.
        initializer: makes the kernels.
        num_proj: the size of a projection of the output, or None.
        number_of_groups: divides the units, the projection and the inputs.
        forget_bias: added to the forget gate.
        activation: tanh by default.
        reuse: whether to share variables of the scope.

    Raises:
        ValueError: the number of groups does not divide them.
    """

    def __init__(
        self, num_units: int, initializer: Any = None, num_proj: int | None = None,
        number_of_groups: int = 1, forget_bias: float = 1.0, activation: Any = tanh,
        reuse: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(num_units, num_proj, _reuse=reuse)
        self._initializer, self._groups = initializer, number_of_groups
        self._forget_bias, self._activation = forget_bias, activation
        for name, size in (("num_units", num_units), ("num_proj", num_proj or 0)):
            if size % number_of_groups:
                raise ValueError(f"{name} must be divisible by number_of_groups")
        self._made: dict[int, Linear] = {}
        self._project: Linear | None = None

    def call(self, inputs: Any, state: Any) -> Any:
        """One step."""
        c, m = state
        width = inputs.shape.as_list()[1]
        if width is None:
            raise ValueError("input size must be statically known")
        if width % self._groups:
            raise ValueError(
                f"input size ({width}) must be divisible by number_of_groups ({self._groups})"
            )
        with variable_scope(get_variable_scope(), initializer=self._initializer):
            rows = zip(split(inputs, self._groups, 1), split(m, self._groups, 1), strict=True)
            gates = [split(self._group(k, concat(list(r), 1)), 4, 1) for k, r in enumerate(rows)]
            i, j, f, o = (
                bias_add(concat(list(parts), 1), self._bias(name, inputs.dtype))
                for name, parts in zip("ijfo", zip(*gates, strict=True), strict=True)
            )
        c = sigmoid(f + self._forget_bias) * c + sigmoid(i) * tanh(j)
        m = sigmoid(o) * self._activation(c)
        if self._num_proj is not None:
            with variable_scope("projection"):
                self._project = self._project or Linear(m, self._num_proj, False)
                m = self._project(m)
        return m, LSTMStateTuple(c, m)

    def _group(self, index: int, given: Any) -> Any:
        with variable_scope(f"group{index}"):
            if index not in self._made:
                self._made[index] = Linear(given, 4 * self._num_units // self._groups, False)
            return self._made[index](given)

    def _bias(self, gate: str, dtype: Any) -> Any:
        zero = constant_initializer(0.0, dtype=dtype)
        return get_variable(f"bias_{gate}", [self._num_units], dtype, zero)
