"""Transforms by name: those in `library/`, and those that plugins bring."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from opdock import errors
from opdock.nearest import nearest
from opdock.runtime.brought import graph_transforms
from opdock.transforms.options import Option, options_of

__all__ = ["Context", "Transform", "find_transform", "transform_names"]


@dataclass(frozen=True, slots=True)
class Context:
    """What a transform knows beside the graph.

    Attributes:
        inputs: names of nodes, or tensors, that will be fed.
        outputs: names of nodes, or tensors, whose results are wanted.
    """

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()

    @property
    def ends(self) -> tuple[str, ...]:
        """Both: what must keep its name."""
        return (*self.inputs, *self.outputs)


@dataclass(frozen=True)
class Transform:
    """A function of GraphDefs with a name.

    Attributes:
        name: by which users call it.
        run: `run(graph_def, context, **options) -> GraphDef`; it does not change what it gets.
        plugin: who brings it; empty for opdock's own.
        options: read from the function's keyword-only arguments.
    """

    name: str
    run: Callable[..., Any]
    plugin: str = ""
    options: dict[str, Option] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", options_of(self.run))

    @property
    def summary(self) -> str:
        """The first line of its documentation."""
        return (inspect.getdoc(self.run) or "").partition("\n")[0]


def transform_names() -> list[str]:
    """The names of all transforms, sorted."""
    return sorted({*_own_names(), *_plugins()})


@functools.cache
def _own_names() -> tuple[str, ...]:
    from opdock.transforms import library

    return tuple(module.name for module in pkgutil.iter_modules(library.__path__))


def _plugins() -> dict[str, Transform]:
    return {
        record.name: Transform(record.name, record.run, plugin)
        for plugin, record in graph_transforms()
    }


def find_transform(name: str) -> Transform:
    """A transform by name.

    Raises:
        InvalidArgumentError: there is none.
    """
    if name in _own_names():
        module = importlib.import_module(f"opdock.transforms.library.{name}")
        return Transform(name, getattr(module, name))
    brought = _plugins()
    if name in brought:
        return brought[name]
    close = nearest(name, transform_names())
    hint = f" Did you mean '{close}'?" if close else ""
    raise errors.InvalidArgumentError(None, None, f"Transform '{name}' not recognized.{hint}")
