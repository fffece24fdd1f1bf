"""`tf.Module`: an object that finds the variables and modules in its attributes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from opdock.graph.nodes.scopes import name_scope
from opdock.graph.variables.tracked_attributes import AutoTrackable
from opdock.graph.variables.variable import Variable
from opdock.util import nest

_CAMEL = re.compile(r"((?<=[a-z0-9])[A-Z]|(?!^)[A-Z](?=[a-z]))")
_IDENTIFIER = re.compile(r"^[a-zA-Z_]([a-zA-Z0-9_])*$")


class Module(AutoTrackable):
    """A named container of variables and other modules.

    Args:
        name: a Python identifier; the class's name in snake case by default.

    Raises:
        ValueError: the name is no identifier.
    """

    # What checkpoints note of the object is no part of it.
    _TF_MODULE_IGNORED_PROPERTIES: frozenset[str] = frozenset(
        {"_self_dependencies", "_self_deferred"}
    )

    def __init__(self, name: str | None = None) -> None:
        if name is None:
            name = _CAMEL.sub(r"_\1", type(self).__name__).lower()
        elif not _IDENTIFIER.match(name):
            raise ValueError(
                f"{name!r} is not a valid module name. Module names must be valid Python "
                "identifiers (e.g. a valid class name)."
            )
        self._name = name
        with name_scope(name) as scope:
            self._scope_name = scope

    @property
    def name(self) -> str:
        """The name that was given, or made of the class's."""
        return self._name

    @property
    def name_scope(self) -> Any:
        """A context that puts operations into the module's name scope."""
        return name_scope(self._scope_name)

    @property
    def variables(self) -> Sequence[Any]:
        """The variables of the module and of those in it, by attribute name."""
        return tuple(self._flatten(predicate=_is_variable))

    @property
    def trainable_variables(self) -> Sequence[Any]:
        """Those that are trainable."""
        return tuple(self._flatten(predicate=_is_trainable))

    @property
    def submodules(self) -> tuple[Any, ...]:
        """The modules in the attributes, and those in them."""
        return tuple(self._flatten(predicate=_is_module))

    def _flatten(
        self, recursive: bool = True, predicate: Callable[[Any], bool] | None = None,
        attribute_traversal_key: Callable[[str], Any] | None = None, with_path: bool = False,
    ) -> Iterator[Any]:  # fmt: skip
        """The leaves of the attributes that a predicate holds for, each once.

        Args:
            recursive: whether to go into modules that are found.
            predicate: which leaves to give; all by default.
            attribute_traversal_key: orders the attributes; by name by default.
            with_path: give pairs of path and leaf, a leaf for each of its paths.
        """
        keep = predicate or (lambda leaf: True)
        return _walk(self, recursive, keep, attribute_traversal_key, with_path, (), {id(self)})

    @classmethod
    def with_name_scope(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator for methods whose operations go into the module's name scope."""

        @functools.wraps(method)
        def scoped(self: Any, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return scoped


def _is_variable(leaf: Any) -> bool:
    return isinstance(leaf, Variable)


def _is_trainable(leaf: Any) -> bool:
    return _is_variable(leaf) and bool(getattr(leaf, "trainable", False))


def _is_module(leaf: Any) -> bool:
    return isinstance(leaf, Module)


def _paths(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if not nest.is_sequence(value):
        yield path, value
        return
    if isinstance(value, dict):
        keys: Any = sorted(value)
    elif hasattr(value, "_fields"):
        keys = value._fields
    else:
        keys = range(len(nest.items(value)))
    items = [value[k] for k in keys] if isinstance(value, dict) else nest.items(value)
    for key, item in zip(keys, items, strict=True):
        yield from _paths(item, (*path, key))


def _walk(
    module: Module, recursive: bool, keep: Callable[[Any], bool], order: Any, with_path: bool,
    path: tuple[Any, ...], seen: set[int],
) -> Iterator[Any]:  # fmt: skip
    inner: list[tuple[tuple[Any, ...], Module]] = []
    for key in sorted(vars(module), key=order):
        if key in module._TF_MODULE_IGNORED_PROPERTIES:
            continue
        for place, leaf in _paths(vars(module)[key], (key,)):
            if not with_path:
                if id(leaf) in seen:
                    continue
                seen.add(id(leaf))
            if keep(leaf):
                yield ((*path, *place), leaf) if with_path else leaf
            if recursive and isinstance(leaf, Module):
                inner.append(((*path, *place), leaf))
    for place, found in inner:
        yield from _walk(found, recursive, keep, order, with_path, place, seen)
