"""`tfe.Network`: a layer that is made of layers, as programs had before `tf.keras.Model`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from opdock.layers.base import Layer

__all__ = ["Network", "Sequential"]


class Network(Layer):
    """A layer whose variables are those of the layers that it tracks.

    A subclass tracks its layers in `__init__`, and says in `call` how they follow each other.

    Args:
        name: the name; by default the class's, made unique.
    """

    def __init__(self, name: str | None = None) -> None:
        self._tracked: list[Layer] = []
        super().__init__(name=name)

    def track_layer(self, layer: Any) -> Any:
        """Makes a layer's variables the network's, too; returns the layer.

        Raises:
            TypeError: it is no layer.
            ValueError: another layer of the network has its name.
        """
        if not isinstance(layer, Layer):
            raise TypeError(
                f"Network.track_layer() passed type {type(layer)}, not a tf.layers.Layer"
            )
        if any(known.name == layer.name for known in self._tracked):
            raise ValueError(
                f"Attempt to add two layers with the name '{layer.name}' to the same Network."
            )
        self._tracked.append(layer)
        return layer

    @property
    def layers(self) -> list[Layer]:
        """The layers, in the order in which they were tracked."""
        return list(self._tracked)

    def get_layer(self, name: str | None = None, index: int | None = None) -> Layer:
        """A layer, by its name or its place.

        Raises:
            ValueError: there is none, or both or none of name and place are given.
        """
        if (name is None) == (index is None):
            raise ValueError("Provide either a layer name or a layer index, and not both.")
        if index is not None:
            if index >= len(self._tracked):
                raise ValueError(
                    f"Was asked to retrieve layer at index {index} but the network only has "
                    f"{len(self._tracked)} layers."
                )
            return self._tracked[index]
        for layer in self._tracked:
            if layer.name == name:
                return layer
        raise ValueError(f"No such layer: {name}.")

    @property
    def trainable_weights(self) -> list[Any]:
        """The variables of its layers that optimizers update; none if it is not trainable."""
        return _of(self._tracked, "trainable_weights") if self.trainable else []

    @property
    def non_trainable_weights(self) -> list[Any]:
        """All others."""
        others = _of(self._tracked, "non_trainable_weights")
        return others if self.trainable else _of(self._tracked, "trainable_weights") + others

    @property
    def losses(self) -> list[Any]:
        """The losses of its layers."""
        return [*super().losses, *_of(self._tracked, "losses")]


class Sequential(Network):
    """Layers, each of which takes what the one before it gives.

    Args:
        layers_funcs: layers, and functions of a tensor.
        name: the name; by default the class's, made unique.
    """

    def __init__(
        self, layers_funcs: Iterable[Callable[..., Any]] | None = None, name: str | None = None
    ) -> None:
        super().__init__(name=name)
        self._steps: list[Callable[..., Any]] = []
        for step in layers_funcs or ():
            self.add(step)

    def add(self, layer_func: Callable[..., Any]) -> None:
        """Appends a layer or a function.

        Raises:
            TypeError: it cannot be called.
        """
        if not callable(layer_func):
            raise TypeError(
                "Sequential.add() takes only tf.layers.Layer or callables, not "
                f"'{layer_func}' of type '{type(layer_func)}'."
            )
        if isinstance(layer_func, Layer):
            self.track_layer(layer_func)
        self._steps.append(layer_func)

    def call(self, inputs: Any, training: Any = None) -> Any:
        """The result of the last layer.

        Args:
            inputs: what the first one takes.
            training: for layers that ask for it, whether they are trained.
        """
        for step in self._steps:
            asks = training is not None and _asks(step)
            inputs = step(inputs, training=training) if asks else step(inputs)
        return inputs


def _asks(step: Callable[..., Any]) -> bool:
    called = step.call if isinstance(step, Layer) else step
    try:
        return "training" in inspect.signature(called).parameters
    except ValueError:  # a function of C that does not tell its arguments
        return False


def _of(layers: list[Layer], what: str) -> list[Any]:
    return [v for layer in layers for v in getattr(layer, what)]
