"""The parameters of cuDNN's networks as the compatible cells have them, for checkpoints.

A cell keeps one bias where cuDNN keeps two that are added: what is restored is half of it each.
"""

from __future__ import annotations

from typing import Any, ClassVar

from opdock import errors
from opdock.contrib.checkpoint import split_dependency
from opdock.contrib.cudnn_rnn.layout import (
    GRU,
    LINEAR,
    LSTM,
    RELU,
    TANH,
    UNIDIRECTION,
    Layout,
    Mode,
)
from opdock.graph.nodes.scopes import device
from opdock.graph.variables.trackable import Trackable
from opdock.graph.variables.tracked_attributes import AutoTrackable
from opdock.graph.variables.variable_scope import VariableScope
from opdock.ops.identity import identity
from opdock.ops.joining import concat
from opdock.ops.matrix import transpose
from opdock.ops.splitting import split
from opdock.ops.state import assign
from opdock.train.saveable import SaveableObject, SaveSpec

__all__ = [
    "CudnnGRUSaveable", "CudnnLSTMSaveable", "CudnnOpaqueParamsSaveable",
    "CudnnParamsFormatConverter", "CudnnParamsFormatConverterGRU",
    "CudnnParamsFormatConverterLSTM", "CudnnParamsFormatConverterRelu",
    "CudnnParamsFormatConverterTanh", "CudnnRNNReluSaveable", "CudnnRNNTanhSaveable",
]  # fmt: skip


class CudnnParamsFormatConverter:
    """Turns a network's buffer into the variables of compatible cells, and back.

    Args:
        num_layers: how many layers there are.
        num_units: of each layer, one way.
        input_size: the size of the inputs.
        num_proj: must be None or 0: there are no networks with projections here.
        input_mode: see `CudnnLSTM`.
        direction: "unidirectional" or "bidirectional".

    Raises:
        UnimplementedError: there is a projection, or the first layer adds its inputs to the gates
            as they are, which no compatible cell does.
    """

    _mode: ClassVar[Mode]

    def __init__(
        self, num_layers: int, num_units: int, input_size: int, num_proj: int | None = None,
        input_mode: str = LINEAR, direction: str = UNIDIRECTION,
    ) -> None:  # fmt: skip
        if num_proj:
            raise errors.UnimplementedError(
                None, None, "cuDNN's networks with projections (num_proj) are not implemented"
            )
        self._layout = Layout(self._mode, num_layers, num_units, input_size, input_mode, direction)
        if self._layout.skips:
            raise errors.UnimplementedError(
                None, None,
                f"no compatible cell computes a network whose input_mode is {input_mode}: its "
                "first layer has no weights for its inputs",
            )  # fmt: skip

    def opaque_to_tf_canonical(self, opaque_param: Any) -> tuple[list[Any], list[Any]]:
        """The kernels and the biases of the cells: layer by layer, forwards before backwards."""
        kernels: list[Any] = []
        biases: list[Any] = []
        for block in self._layout.blocks(*self._opaque_to_cu_canonical(opaque_param)):
            kernels += self._kernels(block[0])
            biases += self._biases(block[1])
        return kernels, biases

    def tf_canonical_to_opaque(self, tf_canonicals: Any, weights_proj: Any = None) -> Any:
        """The buffer of cells' variables: all kernels, then all biases.

        Raises:
            UnimplementedError: there are weights of projections.
        """
        if weights_proj is not None:
            raise errors.UnimplementedError(
                None, None, "cuDNN's networks with projections (num_proj) are not implemented"
            )
        layout, half = self._layout, len(tf_canonicals) // 2
        kernels, biases = tf_canonicals[:half], tf_canonicals[half:]
        each = half // (layout.layers * layout.ways)
        matrices: list[Any] = []
        vectors: list[Any] = []
        for place in range(layout.layers * layout.ways):
            its = slice(place * each, (place + 1) * each)
            width = layout.width(place // layout.ways)
            matrices += self._matrices(width, *kernels[its])
            vectors += self._vectors(*biases[its])
        return layout.pack(matrices, vectors)

    def _opaque_to_cu_canonical(self, opaque_param: Any) -> tuple[list[Any], list[Any]]:
        return self._layout.unpack(opaque_param)

    def _order(self, gates: list[Any]) -> list[Any]:
        """Gates in the order of the cell; doing it twice gives cuDNN's again."""
        return gates

    def _kernels(self, matrices: list[Any]) -> list[Any]:
        gates = self._mode.gates
        pairs = zip(matrices[:gates], matrices[gates:], strict=True)
        return [transpose(concat(self._order([concat(list(p), 1) for p in pairs]), 0))]

    def _matrices(self, width: int, kernel: Any) -> list[Any]:
        gates = self._order(split(transpose(kernel), self._mode.gates, 0))
        pairs = [split(gate, [width, self._layout.units], 1) for gate in gates]
        return [p[0] for p in pairs] + [p[1] for p in pairs]

    def _biases(self, vectors: list[Any]) -> list[Any]:
        gates = self._mode.gates
        pairs = zip(vectors[:gates], vectors[gates:], strict=True)
        return [concat(self._order([a + b for a, b in pairs]), 0)]

    def _vectors(self, bias: Any) -> list[Any]:
        return [0.5 * b for b in self._order(split(bias, self._mode.gates, 0))] * 2


class CudnnParamsFormatConverterLSTM(CudnnParamsFormatConverter):
    """The converter for `CudnnLSTM` and `CudnnCompatibleLSTMCell`; see the base class."""

    _mode = LSTM

    def _order(self, gates: list[Any]) -> list[Any]:
        return [gates[0], gates[2], gates[1], gates[3]]


class CudnnParamsFormatConverterGRU(CudnnParamsFormatConverter):
    """The converter for `CudnnGRU` and `CudnnCompatibleGRUCell`; see the base class."""

    _mode = GRU

    def _kernels(self, matrices: list[Any]) -> list[Any]:
        w_r, w_u, w_h, r_r, r_u, r_h = matrices
        gates = concat([concat([w_r, r_r], 1), concat([w_u, r_u], 1)], 0)
        return [transpose(m) for m in (gates, w_h, r_h)]

    def _matrices(self, width: int, *kernels: Any) -> list[Any]:
        gates, w_h, r_h = (transpose(k) for k in kernels)
        (w_r, r_r), (w_u, r_u) = (
            split(gate, [width, self._layout.units], 1) for gate in split(gates, 2, 0)
        )
        return [w_r, w_u, w_h, r_r, r_u, r_h]

    def _biases(self, vectors: list[Any]) -> list[Any]:
        w_r, w_u, w_h, r_r, r_u, r_h = vectors
        return [concat([w_r + r_r, w_u + r_u], 0), w_h, r_h]

    def _vectors(self, *biases: Any) -> list[Any]:
        reset, update = split(0.5 * biases[0], 2, 0)
        return [reset, update, biases[1], reset, update, biases[2]]


class CudnnParamsFormatConverterTanh(CudnnParamsFormatConverter):
    """The converter for `CudnnRNNTanh` and `BasicRNNCell`; see the base class."""

    _mode = TANH


class CudnnParamsFormatConverterRelu(CudnnParamsFormatConverter):
    """The converter for `CudnnRNNRelu` and `BasicRNNCell`; see the base class."""

    _mode = RELU


class CudnnOpaqueParamsSaveable(SaveableObject):
    """Saves a network under the names of the variables that compatible cells have.

    The cells are those of a `MultiRNNCell` in `tf.nn.dynamic_rnn`, or of
    `tf.contrib.rnn.stack_bidirectional_dynamic_rnn`, with no scope given.

    Args:
        opaque_params: the variable that holds the buffer.
        num_layers, num_units, input_size, input_mode, direction: the network.
        scope: the variable scope that the cells' network is in, or its name.
        name: the saveable's name.
    """

    _format_converter_cls: ClassVar[type[CudnnParamsFormatConverter]]
    _cell: ClassVar[str]
    _parts: ClassVar[tuple[str, ...]] = ("",)

    def __init__(
        self, opaque_params: Any, num_layers: int, num_units: int, input_size: int,
        input_mode: str = LINEAR, direction: str = UNIDIRECTION, scope: Any = None,
        name: str = "cudnn_rnn_saveable",
    ) -> None:  # fmt: skip
        self._variables, self._direction = opaque_params, direction
        self.format_converter = self._format_converter_cls(
            num_layers, num_units, input_size, input_mode=input_mode, direction=direction
        )
        outer = scope.name if isinstance(scope, VariableScope) else scope
        cells = [c for layer in range(num_layers) for c in self._cells(layer)]
        # The names, as the converter gives the tensors: all kernels, then all biases.
        self._names = [
            f"{cell}{part}/{kind}" for kind in ("kernel", "bias") for cell in cells
            for part in self._parts
        ]  # fmt: skip
        with device(opaque_params.device):
            tensors = self._tensors()
            specs = [
                SaveSpec(tensor, "", f"{outer}/{name}" if outer else name)
                for tensor, name in zip(tensors, self._names, strict=True)
            ]
            super().__init__(identity(opaque_params), specs, name)

    def _cells(self, layer: int) -> list[str]:
        if self._direction == UNIDIRECTION:
            return [f"rnn/multi_rnn_cell/cell_{layer}/{self._cell}"]
        within = f"stack_bidirectional_rnn/cell_{layer}/bidirectional_rnn"
        return [f"{within}/{way}/{self._cell}" for way in ("fw", "bw")]

    def _tensors(self) -> list[Any]:
        kernels, biases = self.format_converter.opaque_to_tf_canonical(self._variables)
        return kernels + biases

    def restore(self, restored_tensors: Any, restored_shapes: Any) -> Any:
        """Assigns the buffer."""
        with device(self._variables.device):
            return assign(
                self._variables, self.format_converter.tf_canonical_to_opaque(restored_tensors)
            )

    def track_as_cells(self, layer: Trackable) -> None:
        """Makes the cells' variables dependencies of the layer, as a `MultiRNNCell` has them.

        A layer alone has them as a single cell has, too.
        """
        layers = len(self._names) // (2 * len(self._parts))
        components = self._components()
        for i in range(layers):
            (cell,) = self._cells(i)
            held = AutoTrackable()
            for name, component in components.items():
                if name.startswith(f"{cell}/"):
                    own = name.removeprefix(f"{cell}/")
                    held._track_trackable(component, own)
                    if layers == 1:
                        layer._track_trackable(component, own)
            layer._track_trackable(held, f"cell-{i}")

    def _components(self) -> dict[str, Trackable]:
        def fill(buffer: dict[str, Any]) -> None:
            buffer.update(zip(self._names, self._tensors(), strict=True))

        def consume(buffer: dict[str, Any]) -> Any:
            return self.restore([buffer[name] for name in self._names], None)

        kind = self._variables.dtype.base_dtype
        return split_dependency(
            self._names, [kind] * len(self._names), fill, consume, self._variables.device
        )


class CudnnLSTMSaveable(CudnnOpaqueParamsSaveable):
    """Saves a `CudnnLSTM`; see the base class."""

    _format_converter_cls = CudnnParamsFormatConverterLSTM
    _cell = "cudnn_compatible_lstm_cell"


class CudnnGRUSaveable(CudnnOpaqueParamsSaveable):
    """Saves a `CudnnGRU`; see the base class."""

    _format_converter_cls = CudnnParamsFormatConverterGRU
    _cell = "cudnn_compatible_gru_cell"
    _parts = ("/gates", "/candidate/input_projection", "/candidate/hidden_projection")


class CudnnRNNTanhSaveable(CudnnOpaqueParamsSaveable):
    """Saves a `CudnnRNNTanh`; see the base class."""

    _format_converter_cls = CudnnParamsFormatConverterTanh
    _cell = "basic_rnn_cell"


class CudnnRNNReluSaveable(CudnnOpaqueParamsSaveable):
    """Saves a `CudnnRNNRelu`; see the base class."""

    _format_converter_cls = CudnnParamsFormatConverterRelu
    _cell = "basic_rnn_cell"
