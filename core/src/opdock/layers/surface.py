"""What `tf.layers.Layer` has of tf.keras' layers beside variables and calls.

TensorFlow's layers descend from Keras': they can be made again from their configuration, and give
and take the values of their weights. They are no nodes of a Keras model, so who asks one of them
for its `input` or `output` hears that it has none, as in TensorFlow.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Self

from opdock import errors
from opdock.dtypes import DType
from opdock.graph.nodes.typespec import TensorSpec
from opdock.shapes import TensorShape
from opdock.util import nest


class KerasSurface:
    """A mixin for `Layer`."""

    name: Any
    dtype: Any
    trainable: bool
    weights: Any
    compute_output_shape: Callable[[Any], Any]

    # ------------------------------------------------------------ configuration
    def get_config(self) -> dict[str, Any]:
        """The arguments that make such a layer, in a form that JSON can hold.

        Raises:
            NotImplementedError: the class takes arguments that are no attributes of the layer.
        """
        config: dict[str, Any] = {"name": self.name, "trainable": self.trainable}
        config["dtype"] = None if self.dtype is None else self.dtype.name
        for name in _arguments(type(self)):
            if name in config:
                continue
            # Cells keep what they were given to themselves, as those of TF do.
            kept = name if hasattr(self, name) else f"_{name}"
            if not hasattr(self, kept):
                raise NotImplementedError(
                    f"Layers with arguments in `__init__` must override `get_config`: "
                    f"{type(self).__name__} does not keep {name!r}."
                )
            config[name] = _plain(getattr(self, kept))
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """A layer from what `get_config` gave."""
        return cls(**config)

    # ------------------------------------------------------------ values
    def get_weights(self) -> list[Any]:
        """The values of the weights as arrays, from the default session or Keras' own."""
        from opdock.keras_base.state import batch_get_value

        return batch_get_value(self.weights)

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Gives the weights values, in the order of `get_weights`.

        Raises:
            ValueError: there are more or fewer arrays than weights, or a shape does not fit.
        """
        from opdock.keras_base.state import batch_set_value

        own = self.weights
        if len(own) != len(weights):
            raise ValueError(
                f'You called `set_weights(weights)` on layer "{self.name}" with a weight list of '
                f"length {len(weights)}, but the layer was expecting {len(own)} weights."
            )
        for variable, value in zip(own, weights, strict=True):
            if not variable.shape.is_compatible_with(value.shape):
                raise ValueError(
                    f"Layer weight shape {variable.shape} not compatible with provided weight "
                    f"shape {value.shape}"
                )
        batch_set_value(zip(own, weights, strict=True))

    # ------------------------------------------------------------ what a call would give
    def compute_output_signature(self, input_signature: Any) -> Any:
        """The specs of the results for specs of the inputs.

        Raises:
            TypeError: something in `input_signature` is no TensorSpec.
        """

        def shape_of(spec: Any) -> TensorShape:
            if not isinstance(spec, TensorSpec):
                raise TypeError(
                    "Only TensorSpec signature types are supported, but saw signature signature "
                    f"entry: {spec}."
                )
            return spec.shape

        shapes = nest.map_structure(shape_of, input_signature)
        dtype = self.dtype or nest.flatten(input_signature)[0].dtype
        return nest.map_structure(
            lambda shape: TensorSpec(shape, dtype), self.compute_output_shape(shapes)
        )

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        """None: these layers know no masks."""
        return

    # ------------------------------------------------------------ as part of a Keras model
    @property
    def dynamic(self) -> bool:
        """Whether the layer runs eagerly: never."""
        return False

    @property
    def metrics(self) -> list[Any]:
        """None: see `add_metric`."""
        return []

    def add_metric(self, value: Any, aggregation: str | None = None, name: Any = None) -> NoReturn:
        """Metrics belong to models of tf.keras.

        Raises:
            UnimplementedError: always.
        """
        raise errors.UnimplementedError(
            None, None,
            f"Layer {self.name} is one of tf.layers, which belongs to no model that could report "
            "a metric: use tf.metrics, or a layer of tf.keras.",
        )  # fmt: skip

    @property
    def inbound_nodes(self) -> list[Any]:
        """No nodes of Keras' lead here."""
        return []

    @property
    def outbound_nodes(self) -> list[Any]:
        """No nodes of Keras' lead away."""
        return []

    @property
    def input(self) -> NoReturn:
        """The tensor that a Keras model gives the layer; AttributeError."""
        raise AttributeError(f"Layer {self.name} is not connected, no input to return.")

    @property
    def output(self) -> NoReturn:
        """The tensor that the layer gives a Keras model; AttributeError."""
        raise AttributeError(f"Layer {self.name} has no inbound nodes.")

    @property
    def input_mask(self) -> Any:
        """The mask of `input`; AttributeError."""
        return self.input

    @property
    def output_mask(self) -> Any:
        """The mask of `output`; AttributeError."""
        return self.output

    @property
    def input_shape(self) -> NoReturn:
        """The shape of `input`; AttributeError."""
        raise AttributeError(
            f'The layer "{self.name}" has never been called and thus has no defined input shape.'
        )

    @property
    def output_shape(self) -> NoReturn:
        """The shape of `output`; AttributeError."""
        raise AttributeError(
            f'The layer "{self.name}" has never been called and thus has no defined output shape.'
        )

    def _at(self, node_index: int, what: str) -> NoReturn:
        raise RuntimeError(
            f"The layer {self.name} has never been called and thus has no defined {what} "
            f"(asked for node {node_index})."
        )

    def get_input_at(self, node_index: int) -> NoReturn:
        """The input at one of Keras' nodes; RuntimeError."""
        self._at(node_index, "input")

    def get_output_at(self, node_index: int) -> NoReturn:
        """The output at one of Keras' nodes; RuntimeError."""
        self._at(node_index, "output")

    def get_input_shape_at(self, node_index: int) -> NoReturn:
        """The input's shape at one of Keras' nodes; RuntimeError."""
        self._at(node_index, "input shape")

    def get_output_shape_at(self, node_index: int) -> NoReturn:
        """The output's shape at one of Keras' nodes; RuntimeError."""
        self._at(node_index, "output shape")

    def get_input_mask_at(self, node_index: int) -> NoReturn:
        """The input's mask at one of Keras' nodes; RuntimeError."""
        self._at(node_index, "input mask")

    def get_output_mask_at(self, node_index: int) -> NoReturn:
        """The output's mask at one of Keras' nodes; RuntimeError."""
        self._at(node_index, "output mask")


def _arguments(cls: type) -> list[str]:
    """The names of what a class takes, those that it hands on as keywords among them."""
    found: list[str] = []
    for base in cls.__mro__:
        init = vars(base).get("__init__")
        if init is None:
            continue
        parameters = list(inspect.signature(init).parameters.values())[1:]
        named = (p for p in parameters if p.kind is not p.VAR_KEYWORD)
        found += [p.name for p in named if p.name not in found]
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, DType):
        return value.name
    if hasattr(value, "get_config"):
        return {"class_name": type(value).__name__, "config": value.get_config()}
    if callable(value):
        return getattr(value, "__name__", repr(value))
    if isinstance(value, tuple | list):
        return type(value)(_plain(v) for v in value)
    return value
