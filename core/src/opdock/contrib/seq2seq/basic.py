"""The decoder that runs a cell on what a helper gives it."""

from __future__ import annotations

from typing import Any, NamedTuple

from opdock.contrib.seq2seq.decoder import Decoder
from opdock.contrib.seq2seq.helpers import Helper
from opdock.graph.nodes.scopes import name_scope
from opdock.layers.base import Layer
from opdock.layers.rnn_base import checked_cell
from opdock.shapes import TensorShape
from opdock.util import nest

__all__ = ["BasicDecoder", "BasicDecoderOutput"]


class BasicDecoderOutput(NamedTuple):
    """What a step gives: the outputs, and the ids that they stand for."""

    rnn_output: Any
    sample_id: Any


def output_shapes(cell: Any, layer: Layer | None) -> Any:
    """The shapes of a cell's outputs, behind a layer if there is one, without the batch."""
    if layer is None:
        return cell.output_size
    with_batch = nest.map_structure(
        lambda size: TensorShape([None]).concatenate(size), cell.output_size
    )
    return nest.map_structure(lambda size: size[1:], layer.compute_output_shape(with_batch))


def check_layer(layer: Any) -> None:
    """Raises TypeError where an output layer is none."""
    if layer is not None and not hasattr(layer, "compute_output_shape"):
        raise TypeError(f"output_layer must be a Layer, received: {type(layer)}")


class BasicDecoder(Decoder):
    """A cell, fed by a helper.

    Args:
        cell: a cell of `tf.nn.rnn_cell`.
        helper: a Helper.
        initial_state: the cell's first state.
        output_layer: a layer that is applied to the outputs, before ids are made of them.

    Raises:
        TypeError: an argument is none of these.
    """

    def __init__(
        self, cell: Any, helper: Helper, initial_state: Any, output_layer: Any = None
    ) -> None:
        checked_cell("cell", cell)
        if not isinstance(helper, Helper):
            raise TypeError(f"helper must be a Helper, received: {type(helper)}")
        check_layer(output_layer)
        self._cell, self._helper = cell, helper
        self._initial_state, self._output_layer = initial_state, output_layer

    @property
    def batch_size(self) -> Any:
        """The number of examples."""
        return self._helper.batch_size

    @property
    def output_size(self) -> Any:
        """The shapes of outputs and ids."""
        shapes = output_shapes(self._cell, self._output_layer)
        return BasicDecoderOutput(shapes, self._helper.sample_ids_shape)

    @property
    def output_dtype(self) -> Any:
        """The types of outputs and ids."""
        dtype = nest.flatten(self._initial_state)[0].dtype
        shapes = output_shapes(self._cell, self._output_layer)
        return BasicDecoderOutput(
            nest.map_structure(lambda _: dtype, shapes), self._helper.sample_ids_dtype
        )

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """What is finished, the first inputs and the first state."""
        return (*self._helper.initialize(), self._initial_state)

    def step(
        self, time: Any, inputs: Any, state: Any, name: str | None = None
    ) -> tuple[Any, Any, Any, Any]:
        """One step of the cell, and of the helper."""
        with name_scope(name, "BasicDecoderStep"):
            outputs, state = self._cell(inputs, state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            ids = self._helper.sample(time=time, outputs=outputs, state=state)
            finished, inputs, state = self._helper.next_inputs(
                time=time, outputs=outputs, state=state, sample_ids=ids
            )
        return BasicDecoderOutput(outputs, ids), state, inputs, finished
