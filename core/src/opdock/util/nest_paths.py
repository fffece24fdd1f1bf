"""Nested structures and where in them something stands, beside what `nest` has.

A path is a tuple of the places, keys or names that lead to a leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from opdock.util.nest import (
    flatten,
    flatten_up_to,
    is_sequence,
    is_sequence_or_composite,
    items,
    keyed_items,
    like,
    pack_sequence_as,
)

__all__ = [
    "flatten_with_joined_string_paths",
    "flatten_with_tuple_paths",
    "flatten_with_tuple_paths_up_to",
    "list_to_tuple",
    "map_structure_up_to",
    "map_structure_with_paths",
    "map_structure_with_tuple_paths",
    "map_structure_with_tuple_paths_up_to",
    "yield_flat_paths",
]  # fmt: skip

Path = tuple[Any, ...]


def yield_flat_paths(nest: Any, expand_composites: bool = False) -> Iterator[Path]:
    """The paths of a structure's leaves, in the order of `flatten`."""
    seen = is_sequence_or_composite if expand_composites else is_sequence
    if not seen(nest):
        yield ()
        return
    for key, item in keyed_items(nest):
        for path in yield_flat_paths(item, expand_composites):
            yield (key, *path)


def list_to_tuple(structure: Any) -> Any:
    """A structure with a tuple in the place of each list."""
    if isinstance(structure, list):
        return tuple(map(list_to_tuple, structure))
    if not is_sequence(structure):
        return structure
    return like(structure, [list_to_tuple(item) for item in items(structure)])


def flatten_with_tuple_paths(
    structure: Any, expand_composites: bool = False
) -> list[tuple[Path, Any]]:
    """The leaves of a structure, each with its path."""
    paths = yield_flat_paths(structure, expand_composites)
    return list(zip(paths, flatten(structure, expand_composites), strict=True))


def flatten_with_joined_string_paths(
    structure: Any, separator: str = "/", expand_composites: bool = False
) -> list[tuple[str, Any]]:
    """The leaves of a structure, each with its path as text."""
    return [
        (separator.join(map(str, path)), leaf)
        for path, leaf in flatten_with_tuple_paths(structure, expand_composites)
    ]


def flatten_with_tuple_paths_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False,
    check_subtrees_length: bool = True,
) -> list[tuple[Path, Any]]:  # fmt: skip
    """The parts of `input_tree` at the leaves of `shallow_tree`, each with its path.

    Raises:
        TypeError, ValueError: see `assert_shallow_structure`, whose arguments these are.
    """
    parts = flatten_up_to(
        shallow_tree, input_tree, check_types, expand_composites, check_subtrees_length
    )
    return list(zip(_paths(shallow_tree, input_tree, expand_composites), parts, strict=True))


def _paths(shallow: Any, given: Any, expand_composites: bool) -> Iterator[Path]:
    """The paths of the shallow structure's leaves, in the other structure's own names."""
    seen = is_sequence_or_composite if expand_composites else is_sequence
    if not seen(shallow):
        yield ()
        return
    if isinstance(shallow, Mapping):
        keys = [key for key, _ in keyed_items(shallow)]
        inner = [given[key] for key in keys]
    else:
        below = keyed_items(given)
        keys, inner = [key for key, _ in below], [item for _, item in below]
    for key, a, b in zip(keys, items(shallow), inner, strict=False):
        for path in _paths(a, b, expand_composites):
            yield (key, *path)


# ---------------------------------------------------------------- functions of leaves and paths
def map_structure_up_to(
    shallow_tree: Any, func: Callable[..., Any], *inputs: Any, **kwargs: Any
) -> Any:
    """Calls `func` with the parts of the inputs at the leaves of `shallow_tree`.

    Args:
        shallow_tree: the structure.
        func: takes a part of each input, and the keyword arguments that are left.
        *inputs: structures that go on where this one ends.
        **kwargs: those of `assert_shallow_structure`; others are the function's.

    Returns:
        The results in the structure of `shallow_tree`.

    Raises:
        TypeError, ValueError: see `assert_shallow_structure`.
    """
    return map_structure_with_tuple_paths_up_to(
        shallow_tree, lambda _, *parts, **more: func(*parts, **more), *inputs, **kwargs
    )


def map_structure_with_tuple_paths_up_to(
    shallow_tree: Any, func: Callable[..., Any], *inputs: Any, **kwargs: Any
) -> Any:
    """Like `map_structure_up_to`, but the function takes the path first."""
    if not inputs:
        raise ValueError("Cannot map over no sequences")
    checks = {
        "check_types": kwargs.pop("check_types", True),
        "expand_composites": kwargs.pop("expand_composites", False),
        "check_subtrees_length": kwargs.pop("check_subtrees_length", True),
    }
    expand = checks["expand_composites"]
    parts = [flatten_up_to(shallow_tree, value, **checks) for value in inputs]
    paths = _paths(shallow_tree, inputs[0], expand)
    found = [func(path, *each, **kwargs) for path, *each in zip(paths, *parts, strict=True)]
    return pack_sequence_as(shallow_tree, found, expand)


def map_structure_with_tuple_paths(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """`func` of the leaves of equal structures and, first, of their path, in that structure.

    Args:
        func: takes a path, a leaf of each structure, and the keyword arguments that are left.
        *structure: the structures.
        **kwargs: see `map_structure_up_to`.
    """
    if not structure:
        raise ValueError("Cannot map over no sequences")
    return map_structure_with_tuple_paths_up_to(structure[0], func, *structure, **kwargs)


def map_structure_with_paths(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """Like `map_structure_with_tuple_paths`, with the path as text, joined by slashes."""

    def joined(path: Path, *leaves: Any, **more: Any) -> Any:
        return func("/".join(map(str, path)), *leaves, **more)

    return map_structure_with_tuple_paths(joined, *structure, **kwargs)
