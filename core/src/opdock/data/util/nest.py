"""Nested structures as datasets see them: tuples, dicts and attrs classes, but not lists.

A list is a leaf, for it converts to one tensor, and so are sets and `SparseTensorValue`s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opdock.graph.nodes.composite import SparseTensorValue
from opdock.util.nest import compare, like

__all__ = [
    "assert_same_structure", "assert_shallow_structure", "flatten", "flatten_up_to",
    "is_sequence", "map_structure", "map_structure_up_to", "pack_sequence_as",
]  # fmt: skip


def is_sequence(seq: Any) -> bool:
    """Whether a value is a structure rather than a leaf."""
    if isinstance(seq, SparseTensorValue):
        return False
    return isinstance(seq, (tuple, Mapping)) or hasattr(type(seq), "__attrs_attrs__")


def _items(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [value[key] for key in _keys(value)]
    if hasattr(type(value), "__attrs_attrs__"):
        return [getattr(value, a.name) for a in type(value).__attrs_attrs__]
    return list(value)


def _keys(value: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(value)
    except TypeError:
        raise TypeError("nest only supports dicts with sortable keys.") from None


def flatten(nest: Any) -> list[Any]:
    """The leaves in order, dicts by their keys."""
    if not is_sequence(nest):
        return [nest]
    return [leaf for item in _items(nest) for leaf in flatten(item)]


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any]) -> Any:
    """A flat sequence in the form of a structure.

    Raises:
        TypeError: `flat_sequence` is no list or tuple.
        ValueError: the numbers of leaves differ.
    """
    if not isinstance(flat_sequence, (list, tuple)):
        raise TypeError("flat_sequence must be a sequence")
    if not is_sequence(structure):
        if len(flat_sequence) != 1:
            raise ValueError(
                f"Structure is a scalar but len(flat_sequence) == {len(flat_sequence)} > 1"
            )
        return flat_sequence[0]
    needed = len(flatten(structure))
    if needed != len(flat_sequence):
        raise ValueError(
            f"Could not pack sequence. Structure had {needed} elements, but flat_sequence had "
            f"{len(flat_sequence)} elements.  Structure: {structure}, flat_sequence: "
            f"{flat_sequence}."
        )
    return _packed(structure, list(flat_sequence))


def _packed(structure: Any, left: list[Any]) -> Any:
    if not is_sequence(structure):
        return left.pop(0)
    return like(structure, [_packed(item, left) for item in _items(structure)])


def map_structure(func: Callable[..., Any], *structure: Any, **check_types_dict: Any) -> Any:
    """A function of the leaves of equal structures, in the form of the first.

    Args:
        func: takes a leaf of each.
        *structure: the structures.
        **check_types_dict: `check_types`, whether types of sequences must be equal too.

    Raises:
        TypeError: `func` is not callable, or sequences differ in type.
        ValueError: there is no structure, or they differ, or another keyword is given.
    """
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    check_types = check_types_dict.pop("check_types", True)
    if check_types_dict:
        raise ValueError("Only valid keyword argument is check_types")
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types=check_types)
    flat = zip(*(flatten(s) for s in structure), strict=True)
    return pack_sequence_as(structure[0], [func(*leaves) for leaves in flat])


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Checks that two structures are nested in the same way.

    Raises:
        ValueError: they differ in structure.
        TypeError: `check_types`, and they differ in the type of a sequence.
    """
    compare(nest1, nest2, check_types, is_sequence)


def assert_shallow_structure(shallow_tree: Any, input_tree: Any, check_types: bool = True) -> None:
    """Checks that a structure goes at least as deep as another one.

    Raises:
        TypeError: a sequence stands against a leaf, or one of another type.
        ValueError: sequences differ in length or keys.
    """
    if not is_sequence(shallow_tree):
        return
    if not is_sequence(input_tree):
        raise TypeError(
            "If shallow structure is a sequence, input must also be a sequence. Input has type: "
            f"{type(input_tree)}."
        )
    maps = isinstance(shallow_tree, Mapping) and isinstance(input_tree, Mapping)
    if check_types and not maps and not isinstance(input_tree, type(shallow_tree)):
        raise TypeError(
            "The two structures don't have the same sequence type. Input structure has type "
            f"{type(input_tree)}, while shallow structure has type {type(shallow_tree)}."
        )
    if len(input_tree) != len(shallow_tree):
        raise ValueError(
            "The two structures don't have the same sequence length. Input structure has length "
            f"{len(input_tree)}, while shallow structure has length {len(shallow_tree)}."
        )
    if maps and set(input_tree) != set(shallow_tree):
        raise ValueError(
            "The two structures don't have the same keys. Input structure has keys "
            f"{list(input_tree)}, while shallow structure has keys {list(shallow_tree)}."
        )
    for a, b in zip(_items(shallow_tree), _items(input_tree), strict=True):
        assert_shallow_structure(a, b, check_types)


def flatten_up_to(shallow_tree: Any, input_tree: Any) -> list[Any]:
    """The parts of a structure at the leaves of another one; see `assert_shallow_structure`."""
    assert_shallow_structure(shallow_tree, input_tree)
    return list(_up_to(shallow_tree, input_tree))


def _up_to(shallow: Any, tree: Any) -> list[Any]:
    if not is_sequence(shallow):
        return [tree]
    pairs = zip(_items(shallow), _items(tree), strict=True)
    return [leaf for a, b in pairs for leaf in _up_to(a, b)]


def map_structure_up_to(shallow_tree: Any, func: Callable[..., Any], *inputs: Any) -> Any:
    """A function of the parts of structures at the leaves of another one, in its form.

    Raises:
        ValueError: there are no structures.
    """
    if not inputs:
        raise ValueError(
            "Argument error: Cannot map over no sequences. At least one sequence is required."
        )
    for tree in inputs:
        assert_shallow_structure(shallow_tree, tree)
    flat = zip(*(_up_to(shallow_tree, tree) for tree in inputs), strict=True)
    return pack_sequence_as(shallow_tree, [func(*parts) for parts in flat])
