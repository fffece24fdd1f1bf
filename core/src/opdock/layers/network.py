"""A model made of layers: the part of Keras' `Model` on which TensorFlow's own models stand."""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes.scopes import name_scope
from opdock.layers.base import Layer, snake_case


class Model:
    """A function over layers, which are its attributes or in lists that are.

    Subclasses make layers in `__init__` and their ops in `call`.

    Args:
        name: the name scope of calls; by default the class's.
    """

    def __init__(self, name: str | None = None) -> None:
        self.name = name or snake_case(type(self).__name__)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Makes the ops; of the subclass."""
        raise NotImplementedError(f"{type(self).__name__} has no method call")

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls the model, below its name."""
        with name_scope(self.name):
            return self.call(inputs, *args, **kwargs)

    @property
    def layers(self) -> list[Any]:
        """The layers, in the order in which they became attributes."""
        found: dict[int, Any] = {}
        for value in vars(self).values():
            for item in value if isinstance(value, list | tuple) else [value]:
                if isinstance(item, Layer | Model):
                    found.setdefault(id(item), item)
        return list(found.values())

    def _gather(self, what: str) -> list[Any]:
        items = {id(v): v for layer in self.layers for v in getattr(layer, what)}
        return list(items.values())

    @property
    def variables(self) -> list[Any]:
        """The variables of all layers."""
        return self._gather("variables")

    @property
    def trainable_variables(self) -> list[Any]:
        """Those of them that optimizers update."""
        return self._gather("trainable_variables")

    @property
    def losses(self) -> list[Any]:
        """The losses that layers added."""
        return self._gather("losses")

    @property
    def updates(self) -> list[Any]:
        """The operations that layers ask a training step to run."""
        return self._gather("updates")
