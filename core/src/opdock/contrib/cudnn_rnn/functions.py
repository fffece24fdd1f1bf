"""The networks over a buffer that the program holds: `contrib.cudnn_rnn.python.ops.cudnn_rnn_ops`.

Before there were the layers, programs made a variable of `params_size()` numbers themselves.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from opdock import dtypes, errors
from opdock.contrib.cudnn_rnn import layout as layouts
from opdock.contrib.cudnn_rnn.forward import run
from opdock.contrib.cudnn_rnn.layout import (
    BIDIRECTION,
    GRU,
    LINEAR,
    LSTM,
    RELU,
    TANH,
    UNIDIRECTION,
    Layout,
    Mode,
    check_direction,
    mode_named,
)
from opdock.graph.nodes.constant import constant
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.layers.base import static

__all__ = [
    "CUDNN_GRU", "CUDNN_GRU_PARAMS_PER_LAYER", "CUDNN_INPUT_AUTO_MODE", "CUDNN_INPUT_LINEAR_MODE",
    "CUDNN_INPUT_SKIP_MODE", "CUDNN_LSTM", "CUDNN_LSTM_PARAMS_PER_LAYER", "CUDNN_RNN_BIDIRECTION",
    "CUDNN_RNN_RELU", "CUDNN_RNN_RELU_PARAMS_PER_LAYER", "CUDNN_RNN_TANH",
    "CUDNN_RNN_TANH_PARAMS_PER_LAYER", "CUDNN_RNN_UNIDIRECTION", "CudnnGRU", "CudnnLSTM",
    "CudnnRNNRelu", "CudnnRNNTanh", "cudnn_gru", "cudnn_lstm",
    "cudnn_rnn_canonical_to_opaque_params", "cudnn_rnn_opaque_params_size",
    "cudnn_rnn_opaque_params_to_canonical", "cudnn_rnn_relu", "cudnn_rnn_tanh",
]  # fmt: skip

CUDNN_RNN_UNIDIRECTION: Final = UNIDIRECTION
CUDNN_RNN_BIDIRECTION: Final = BIDIRECTION
CUDNN_INPUT_LINEAR_MODE: Final = LINEAR
CUDNN_INPUT_SKIP_MODE: Final = layouts.SKIP
CUDNN_INPUT_AUTO_MODE: Final = layouts.AUTO
CUDNN_LSTM: Final = LSTM.name
CUDNN_GRU: Final = GRU.name
CUDNN_RNN_RELU: Final = RELU.name
CUDNN_RNN_TANH: Final = TANH.name
CUDNN_LSTM_PARAMS_PER_LAYER: Final = 2 * LSTM.gates
CUDNN_GRU_PARAMS_PER_LAYER: Final = 2 * GRU.gates
CUDNN_RNN_RELU_PARAMS_PER_LAYER: Final = 2 * RELU.gates
CUDNN_RNN_TANH_PARAMS_PER_LAYER: Final = 2 * TANH.gates


def _no_projection(num_proj: int | None) -> None:
    if num_proj:
        raise errors.UnimplementedError(
            None, None, "cuDNN's networks with projections (num_proj) are not implemented"
        )


def _run(
    mode: Mode, inputs: Any, states: tuple[Any, ...], params: Any, is_training: Any, lengths: Any,
    time_major: bool, input_mode: str, direction: str, dropout: float, seed: int | None,
    name: str | None,
) -> tuple[Any, ...]:  # fmt: skip
    check_direction(direction)
    with name_scope(name, "CudnnRNN", [inputs, *states, params]):
        inputs, params = convert_to_tensor(inputs), convert_to_tensor(params)
        states = tuple(convert_to_tensor(s) for s in states)
        shape = static(states[0].shape)
        blocks, units, size = shape[0 if time_major else 1], shape[2], static(inputs.shape)[2]
        if blocks is None or units is None or size is None:
            raise ValueError(
                "The number of layers and units, which are those of the state, and the size of the "
                f"inputs must be known, but saw shapes: {states[0].shape}, {inputs.shape}"
            )
        ways = 1 if direction == UNIDIRECTION else 2
        layout = Layout(mode, blocks // ways, units, size, input_mode, direction)
        outputs, ends = run(
            layout, *layout.unpack(params), inputs, states, lengths, time_major, dropout, seed,
            is_training,
        )  # fmt: skip
    return (outputs, *ends)


def cudnn_lstm(
    inputs: Any, input_h: Any, input_c: Any, params: Any, is_training: Any,
    sequence_lengths: Any = None, time_major: bool = True, input_mode: str = LINEAR,
    direction: str = UNIDIRECTION, dropout: float = 0.0, seed: int | None = 0,
    num_proj: int | None = None, name: str | None = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Runs layers of LSTMs over a sequence.

    Args:
        inputs: a tensor [time, batch, size]; batch first unless `time_major`.
        input_h, input_c: the output and the memory to begin with, [layers * directions, batch,
            units]; batch first unless `time_major`.
        params: the buffer of all parameters.
        is_training: whether there is dropout.
        sequence_lengths: a vector of the examples' lengths.
        time_major: whether time comes first.
        input_mode, direction, dropout, seed: see `tf.contrib.cudnn_rnn.CudnnLSTM`.
        num_proj: must be None or 0.
        name: a name for the operations.

    Returns:
        The outputs, and the output and the memory at the end.

    Raises:
        ValueError: a size is not known.
        UnimplementedError: there is a projection.
    """
    _no_projection(num_proj)
    outputs, h, c = _run(
        LSTM, inputs, (input_h, input_c), params, is_training, sequence_lengths, time_major,
        input_mode, direction, dropout, seed, name,
    )  # fmt: skip
    return outputs, h, c


def cudnn_gru(
    inputs: Any, input_h: Any, params: Any, is_training: Any, sequence_lengths: Any = None,
    time_major: bool = True, input_mode: str = LINEAR, direction: str = UNIDIRECTION,
    dropout: float = 0.0, seed: int | None = 0, name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Runs layers of GRUs over a sequence; see `cudnn_lstm`."""
    outputs, h = _run(
        GRU, inputs, (input_h,), params, is_training, sequence_lengths, time_major, input_mode,
        direction, dropout, seed, name,
    )  # fmt: skip
    return outputs, h


def cudnn_rnn_tanh(
    inputs: Any, input_h: Any, params: Any, is_training: Any, sequence_lengths: Any = None,
    time_major: bool = True, input_mode: str = LINEAR, direction: str = UNIDIRECTION,
    dropout: float = 0.0, seed: int | None = 0, name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Runs plain layers with tanh over a sequence; see `cudnn_lstm`."""
    outputs, h = _run(
        TANH, inputs, (input_h,), params, is_training, sequence_lengths, time_major, input_mode,
        direction, dropout, seed, name,
    )  # fmt: skip
    return outputs, h


def cudnn_rnn_relu(
    inputs: Any, input_h: Any, params: Any, is_training: Any, input_mode: str = LINEAR,
    direction: str = UNIDIRECTION, dropout: float = 0.0, seed: int | None = 0,
    sequence_lengths: Any = None, time_major: bool = True, name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Runs plain layers with relu over a sequence; see `cudnn_lstm`."""
    outputs, h = _run(
        RELU, inputs, (input_h,), params, is_training, sequence_lengths, time_major, input_mode,
        direction, dropout, seed, name,
    )  # fmt: skip
    return outputs, h


def cudnn_rnn_opaque_params_size(
    rnn_mode: str, num_layers: int, num_units: int, input_size: int, input_mode: str = LINEAR,
    direction: str = UNIDIRECTION, dtype: Any = dtypes.float32, dropout: float = 0,
    seed: int | None = 0, num_proj: int | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """How many numbers a network's buffer has, as an int32 scalar.

    Args:
        rnn_mode: "lstm", "gru", "rnn_tanh" or "rnn_relu".
        num_layers, num_units, input_size, input_mode, direction: the network.
        dtype, dropout, seed: make no difference.
        num_proj: must be None or 0.
        name: a name for the operation.
    """
    _no_projection(num_proj)
    layout = Layout(mode_named(rnn_mode), num_layers, num_units, input_size, input_mode, direction)
    return constant(layout.size, dtypes.int32, name=name or "CudnnRNNParamsSize")


def cudnn_rnn_opaque_params_to_canonical(
    rnn_mode: str, num_layers: int, num_units: int, input_size: int, params: Any,
    input_mode: str = LINEAR, direction: str = UNIDIRECTION, dropout: float = 0,
    seed: int | None = 0, num_proj: int | None = None, name: str | None = None,
) -> tuple[list[Any], list[Any]]:  # fmt: skip
    """The matrices and the biases of a buffer; the arguments are those of the size."""
    _no_projection(num_proj)
    layout = Layout(mode_named(rnn_mode), num_layers, num_units, input_size, input_mode, direction)
    with name_scope(name, "CudnnRNNParamsToCanonical", [params]):
        return layout.unpack(convert_to_tensor(params))


def cudnn_rnn_canonical_to_opaque_params(
    rnn_mode: str, num_layers: int, num_units: int, input_size: int, weights: Any, biases: Any,
    input_mode: str = LINEAR, direction: str = UNIDIRECTION, dropout: float = 0,
    seed: int | None = 0, num_proj: int | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """The buffer of matrices and biases; the arguments are those of the size."""
    _no_projection(num_proj)
    layout = Layout(mode_named(rnn_mode), num_layers, num_units, input_size, input_mode, direction)
    with name_scope(name, "CudnnRNNCanonicalToParams", [*weights, *biases]):
        return layout.pack(weights, biases)


class _Network:
    """A network whose buffer is given at each call.

    Args:
        num_layers, num_units, input_size, input_mode, direction, dropout, seed: see
            `tf.contrib.cudnn_rnn.CudnnLSTM`.
        dtype: accepted for TF's signature: it is that of the buffer.
        num_proj: must be None or 0.
    """

    _mode: ClassVar[Mode]

    def __init__(
        self, num_layers: int, num_units: int, input_size: int, input_mode: str = LINEAR,
        direction: str = UNIDIRECTION, dtype: Any = dtypes.float32, dropout: float = 0.0,
        seed: int | None = 0, num_proj: int | None = None,
    ) -> None:  # fmt: skip
        _no_projection(num_proj)
        self._layout = Layout(self._mode, num_layers, num_units, input_size, input_mode, direction)
        self._dropout, self._seed = dropout, seed
        self.num_layers, self.num_units, self.input_size = num_layers, num_units, input_size
        self.input_mode, self.direction, self.num_proj = input_mode, direction, num_proj
        self.rnn_mode = self._mode.name

    def params_size(self) -> Any:
        """How many numbers the buffer has, as an int32 scalar."""
        return constant(self._layout.size, dtypes.int32, name="CudnnRNNParamsSize")

    def params_to_canonical(self, params: Any) -> tuple[list[Any], list[Any]]:
        """The matrices and the biases of a buffer."""
        return self._layout.unpack(convert_to_tensor(params))

    def canonical_to_params(self, weights: Any, biases: Any) -> Any:
        """The buffer of matrices and biases."""
        return self._layout.pack(weights, biases)

    def _run(
        self, inputs: Any, states: tuple[Any, ...], params: Any, is_training: Any, lengths: Any,
        time_major: bool,
    ) -> tuple[Any, ...]:  # fmt: skip
        return _run(
            self._mode, inputs, states, params, is_training, lengths, time_major, self.input_mode,
            self.direction, self._dropout, self._seed, None,
        )  # fmt: skip


class CudnnLSTM(_Network):
    """Layers of LSTMs; see the base class."""

    _mode = LSTM

    def __call__(
        self, input_data: Any, input_h: Any, input_c: Any, params: Any, is_training: Any = True,
        sequence_lengths: Any = None, time_major: bool = True,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Runs over a sequence; see `cudnn_lstm`."""
        states = (input_h, input_c)
        return self._run(input_data, states, params, is_training, sequence_lengths, time_major)


class _WithoutMemory(_Network):
    """A network whose state is its output."""

    def __init__(
        self, num_layers: int, num_units: int, input_size: int, input_mode: str = LINEAR,
        direction: str = UNIDIRECTION, dtype: Any = dtypes.float32, dropout: float = 0.0,
        seed: int | None = 0,
    ) -> None:  # fmt: skip
        super().__init__(
            num_layers, num_units, input_size, input_mode, direction, dtype, dropout, seed
        )

    def __call__(
        self, input_data: Any, input_h: Any, params: Any, is_training: Any = True,
        sequence_lengths: Any = None, time_major: bool = True,
    ) -> tuple[Any, ...]:  # fmt: skip
        """Runs over a sequence; see `cudnn_gru`."""
        states = (input_h,)
        return self._run(input_data, states, params, is_training, sequence_lengths, time_major)


class CudnnGRU(_WithoutMemory):
    """Layers of GRUs; see the base class."""

    _mode = GRU


class CudnnRNNTanh(_WithoutMemory):
    """Plain layers with tanh; see the base class."""

    _mode = TANH


class CudnnRNNRelu(_WithoutMemory):
    """Plain layers with relu; see the base class."""

    _mode = RELU
