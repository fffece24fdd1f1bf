"""Fetch structures as keys: equal for equal structures of the same elements, and for no others.

A structure may be a list that its owner changes from step to step, so a key holds the elements
themselves, which are equal by identity, and never the containers.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Final

from opdock.graph.nodes.composite import IndexedSlices, SparseTensor
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.graph.variables.variable import Variable
from opdock.runtime.fetch import has_conversion

# Nothing that a caller passes is equal to these, so no fetch is mistaken for a key.
LIST: Final = object()
TUPLE: Final = object()
UNKEYED: Final = object()
_TREE: Final = object()

_ELEMENTS: Final = frozenset({Tensor, Operation, str, bytes})


class _Same:
    """An object that is equal to itself alone: as a mapping's keys, 1 and True are not the same."""

    __slots__ = ("_held",)

    def __init__(self, held: Any) -> None:
        self._held = held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._held is other._held

    def __hash__(self) -> int:
        return id(self._held)


def structure_key(fetches: Any) -> Hashable | None:
    """The key of a fetch structure; None if it may mean something else at another time.

    Those of elements, and of flat lists and tuples of them, `ProgramCache.find` makes without a
    look at what they hold.
    """
    kind = type(fetches)
    if _is_element(fetches):
        return fetches  # type: ignore[no-any-return]
    if (kind is list or kind is tuple) and all(map(_is_element, fetches)):
        return (LIST if kind is list else TUPLE, *fetches)
    return _tree(fetches)


def _is_element(fetch: Any) -> bool:
    """Whether it is equal to itself alone, or a name, and always stands for the same."""
    return type(fetch) in _ELEMENTS or (isinstance(fetch, Variable) and not has_conversion(fetch))


def _tree(fetch: Any) -> Hashable | None:
    if _is_element(fetch):
        return fetch  # type: ignore[no-any-return]
    kind: Any = type(fetch)
    names: list[Hashable] = []
    if isinstance(fetch, (list, tuple)):
        parts = list(fetch)
    elif isinstance(fetch, Mapping):
        names = [k if type(k) in _ELEMENTS else _Same(k) for k in fetch]
        parts = [fetch[k] for k in fetch]
    elif hasattr(kind, "__attrs_attrs__"):
        parts = [getattr(fetch, a.name) for a in kind.__attrs_attrs__]
    elif kind is SparseTensor or kind is IndexedSlices or hasattr(kind, "_composite_value"):
        return _Same(fetch)
    else:
        # An object of the user's own may stand for another tensor the next time.
        return None
    keys = [_tree(p) for p in parts]
    # A variable may have an `==` of its own, which makes a node.
    return None if any(k is None for k in keys) else (_TREE, kind, *names, *keys)
