"""The layers: cuDNN's networks, on any device.

TensorFlow runs them on NVIDIA's GPUs alone. Here they are ordinary ops over the same parameters,
in one variable `opaque_kernel` in the order that `Layout` tells. A `tf.train.Saver` writes that
variable, and beside it the variables of the compatible cells, which is what it reads last.
"""

from __future__ import annotations

from typing import Any, ClassVar

from opdock import dtypes
from opdock.contrib.cudnn_rnn.forward import run
from opdock.contrib.cudnn_rnn.layout import (
    GRU,
    LINEAR,
    LSTM,
    RELU,
    TANH,
    UNIDIRECTION,
    Layout,
    Mode,
    check_direction,
    check_input_mode,
)
from opdock.contrib.cudnn_rnn.saving import (
    CudnnGRUSaveable,
    CudnnLSTMSaveable,
    CudnnOpaqueParamsSaveable,
    CudnnRNNReluSaveable,
    CudnnRNNTanhSaveable,
)
from opdock.graph.nodes.collections import GraphKeys
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.nodes.scopes import init_scope
from opdock.graph.variables.initializers import glorot_uniform_initializer, zeros_initializer
from opdock.graph.variables.variable_scope import get_variable_scope
from opdock.layers.base import Layer, static
from opdock.layers.spec import InputSpec
from opdock.ops.array import shape
from opdock.ops.fill import zeros
from opdock.shapes import TensorShape

__all__ = ["CudnnGRU", "CudnnLSTM", "CudnnRNNRelu", "CudnnRNNTanh"]


class _CudnnRNN(Layer):
    """What the four kinds have in common."""

    _mode: ClassVar[Mode]
    _saveable_cls: ClassVar[type[CudnnOpaqueParamsSaveable]]

    def __init__(
        self, num_layers: int, num_units: int, input_mode: str = LINEAR,
        direction: str = UNIDIRECTION, dropout: float = 0.0, seed: int | None = None,
        dtype: Any = dtypes.float32, kernel_initializer: Any = None, bias_initializer: Any = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(dtype=dtype, name=name)
        check_direction(direction)
        check_input_mode(input_mode)
        if self._dtype not in (dtypes.float16, dtypes.float32, dtypes.float64):
            raise ValueError(f"Only support float16, float32, float64, provided {dtype}")
        self._num_layers, self._num_units = num_layers, num_units
        self._input_mode, self._direction = input_mode, direction
        self._dropout, self._seed = dropout, seed
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer
        self._layout: Layout | None = None
        self._saveable: CudnnOpaqueParamsSaveable | None = None

    @property
    def num_layers(self) -> int:
        """How many layers there are."""
        return self._num_layers

    @property
    def num_units(self) -> int:
        """The number of units of each layer, one way."""
        return self._num_units

    @property
    def input_mode(self) -> str:
        """What the first layer does with its inputs."""
        return self._input_mode

    @property
    def direction(self) -> str:
        """One way, "unidirectional", or both, "bidirectional"."""
        return self._direction

    @property
    def num_dirs(self) -> int:
        """1 or 2."""
        return 1 if self._direction == UNIDIRECTION else 2

    @property
    def rnn_mode(self) -> str:
        """The kind: "lstm", "gru", "rnn_relu" or "rnn_tanh"."""
        return self._mode.name

    @property
    def input_size(self) -> int:
        """The size of the inputs.

        Raises:
            ValueError: the layer has not been built.
        """
        if self._layout is None:
            raise ValueError("'input_size' is unknown since layer has not been built.")
        return self._layout.input_size

    @property
    def saveable(self) -> CudnnOpaqueParamsSaveable | None:
        """What Savers save of it besides its variable.

        None before it is built, where it shares the variable of another layer, and where its
        first layer has no weights for its inputs: no compatible cell computes that.
        """
        return self._saveable

    @property
    def canonical_weight_shapes(self) -> list[tuple[int, int]]:
        """The shapes of all matrices, in the order of `opaque_kernel`.

        Raises:
            RuntimeError: the layer has not been built.
        """
        return self._known("canonical_weight_shapes").weight_shapes

    @property
    def canonical_bias_shapes(self) -> list[tuple[int]]:
        """The shapes of all biases, in the order of `opaque_kernel`.

        Raises:
            RuntimeError: the layer has not been built.
        """
        return self._known("canonical_bias_shapes").bias_shapes

    def _known(self, what: str) -> Layout:
        if self._layout is None:
            raise RuntimeError(f"{type(self).__name__}.{what} invoked before input shape is known")
        return self._layout

    def build(self, input_shape: Any) -> None:
        """Makes the variable.

        Args:
            input_shape: that of the inputs, of three dimensions.

        Raises:
            ValueError: it has another number of dimensions, or the last one is not known.
        """
        if self.built:
            return
        dims = static(TensorShape(input_shape))
        if len(dims) != 3:
            raise ValueError(f"Expecting input_shape with 3 dims, got {len(dims)}")
        size = dims[-1]
        if size is None:
            raise ValueError(
                "The last dimension of the inputs to `CudnnRNN` should be defined. Found `None`."
            )
        layout = self._layout = Layout(
            self._mode, self._num_layers, self._num_units, size, self._input_mode, self._direction
        )
        self.input_spec = InputSpec(ndim=3, axes={-1: size})
        self._set_scope(None)
        assert self._scope is not None
        # The order in the buffer means something only as a whole.
        self._scope.set_partitioner(None)
        self.kernel = self.add_weight("opaque_kernel", [layout.size], initializer=self._initial)
        if get_variable_scope().reuse is not True and not layout.skips:
            self._create_saveable()
        self.built = True

    def _initial(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        """The buffer at the start; each matrix is initialized by itself, as the fans are its."""
        layout = self._known("_initial")
        kernel = self._kernel_initializer or glorot_uniform_initializer(self._seed)
        bias = self._bias_initializer or zeros_initializer()
        return layout.pack(
            [kernel(list(s), dtype=dtype) for s in layout.weight_shapes],
            [bias(list(s), dtype=dtype) for s in layout.bias_shapes],
        )

    def _create_saveable(self) -> None:
        if self._saveable is not None:
            raise RuntimeError("Cudnn saveable already created.")
        layout, name = self._known("_create_saveable"), self.kernel.op.name
        # In the scope that is current, so that other cells' networks in it can read the checkpoint;
        # and where the variable is, whichever loop or branch the layer is first called in.
        scope = get_variable_scope()
        with init_scope():
            self._saveable = self._saveable_cls(
                self.kernel, layout.layers, layout.units, layout.input_size, layout.input_mode,
                layout.direction, scope, f"{name}_saveable",
            )  # fmt: skip
            get_default_graph().add_to_collection(GraphKeys.SAVEABLE_OBJECTS, self._saveable)
        if layout.ways == 1:
            # A `tf.train.Checkpoint` has what a `MultiRNNCell` of the compatible cells has.
            self._delete_tracking("opaque_kernel")
            self._saveable.track_as_cells(self)

    def state_shape(self, batch_size: Any) -> tuple[list[Any], ...]:
        """The shapes of the states, layers first.

        Args:
            batch_size: an int or a scalar tensor.
        """
        one = [self.num_layers * self.num_dirs, batch_size, self.num_units]
        return (one, list(one)) if self._mode is LSTM else (one,)

    def call(
        self, inputs: Any, initial_state: Any = None, sequence_lengths: Any = None,
        time_major: bool = True, training: Any = True,
    ) -> tuple[Any, tuple[Any, ...]]:  # fmt: skip
        """Runs the network over a sequence.

        Args:
            inputs: a tensor [time, batch, size]; batch first unless `time_major`.
            initial_state: a tuple of the output, and for an LSTM the memory, to begin with, each
                [layers * directions, batch, units]; batch first unless `time_major`. Zeros by
                default.
            sequence_lengths: a vector of the examples' lengths; past its end an example's outputs
                are zero, and its state stays.
            time_major: whether time comes first in inputs and outputs, and layers in states.
            training: whether there is dropout; a bool or a bool tensor.

        Returns:
            The outputs of the last layer, [time, batch, directions * units], and a tuple of the
            states at the end, in the form of `initial_state`.

        Raises:
            TypeError: `initial_state` is no tuple.
            ValueError: it has another number of tensors.
        """
        layout = self._known("call")
        inputs = convert_to_tensor(inputs, dtype=self._dtype)
        if initial_state is None:
            initial_state = self._zeros(inputs, time_major)
        if not isinstance(initial_state, tuple):
            raise TypeError(f"Invalid initial_state type: {initial_state}, expecting tuple.")
        wanted = len(self.state_shape(None))
        if len(initial_state) != wanted:
            raise ValueError(
                f"initial_state of {self.rnn_mode} has {wanted} tensors, not {len(initial_state)}"
            )
        states = tuple(convert_to_tensor(s, dtype=self._dtype) for s in initial_state)
        weights, biases = layout.unpack(convert_to_tensor(self.kernel))
        return run(
            layout, weights, biases, inputs, states, sequence_lengths, time_major, self._dropout,
            self._seed, training,
        )  # fmt: skip

    def _zeros(self, inputs: Any, time_major: bool) -> tuple[Any, ...]:
        axis = 1 if time_major else 0
        known = inputs.shape.as_list()[axis]
        batch = shape(inputs)[axis] if known is None else known
        every = self.state_shape(batch)
        if not time_major:
            every = tuple([b, layers, units] for layers, b, units in every)
        return tuple(zeros(s, self._dtype) for s in every)


class CudnnLSTM(_CudnnRNN):
    """Layers of LSTMs over a sequence, one way or both.

    Args:
        num_layers: how many layers there are.
        num_units: of each layer, one way.
        input_mode: "linear_input": the first layer multiplies its inputs; "skip_input": it adds
            them to each gate as they are, where they have the size of the units; or "auto_select":
            the latter where they have.
        direction: "unidirectional" or "bidirectional".
        dropout: what part of a layer's outputs the next one does not see in training.
        seed: that of the dropout, and of the matrices' default initializer.
        dtype: float16, float32 or float64.
        kernel_initializer: makes each matrix; glorot uniform by default.
        bias_initializer: makes each bias; zeros by default.
        name: the layer's name.

    Raises:
        ValueError: an argument is none of those.
    """

    _mode = LSTM
    _saveable_cls = CudnnLSTMSaveable


class CudnnGRU(_CudnnRNN):
    """Layers of GRUs over a sequence; takes what `CudnnLSTM` takes."""

    _mode = GRU
    _saveable_cls = CudnnGRUSaveable


class CudnnRNNTanh(_CudnnRNN):
    """Layers of plain networks with tanh over a sequence; takes what `CudnnLSTM` takes."""

    _mode = TANH
    _saveable_cls = CudnnRNNTanhSaveable


class CudnnRNNRelu(_CudnnRNN):
    """Layers of plain networks with relu over a sequence; takes what `CudnnLSTM` takes."""

    _mode = RELU
    _saveable_cls = CudnnRNNReluSaveable
