"""Nested structures: flattening, packing, comparing (`tf.contrib.framework.nest`).

A structure is a list, tuple, namedtuple, dict (in key order) or attrs class of structures;
everything else is a leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def is_sequence(value: Any) -> bool:
    """Whether `value` is a structure rather than a leaf."""
    return isinstance(value, (list, tuple, Mapping)) or hasattr(type(value), "__attrs_attrs__")


is_nested = is_sequence


def is_namedtuple(instance: Any, strict: bool = False) -> bool:
    """Whether a value is a named tuple, and with `strict` of no class derived from one."""
    fields = getattr(instance, "_fields", None)
    if not isinstance(instance, tuple) or not isinstance(fields, Sequence):
        return False
    if strict and type(instance).__base__ is not tuple:
        return False
    return all(isinstance(field, str) for field in fields)


def _items(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [value[k] for k in sorted(value)]
    if hasattr(type(value), "__attrs_attrs__"):
        return [getattr(value, a.name) for a in type(value).__attrs_attrs__]
    return list(value)


def _parts(value: Any) -> list[Any] | None:
    """The tensors of a composite, or None for any other leaf."""
    if hasattr(value, "indices") and hasattr(value, "values") and hasattr(value, "dense_shape"):
        if type(value).__name__ == "IndexedSlices":
            parts = [value.values, value.indices]
            return parts if value.dense_shape is None else [*parts, value.dense_shape]
        if type(value).__name__ == "SparseTensor":
            return [value.indices, value.values, value.dense_shape]
    return getattr(value, "_composite_parts", lambda: None)()


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The leaves in order; composites as their tensors when asked."""
    if is_sequence(structure):
        return [leaf for item in _items(structure) for leaf in flatten(item, expand_composites)]
    if expand_composites:
        parts = _parts(structure)
        if parts is not None:
            return list(parts)
    return [structure]


def pack_sequence_as(
    structure: Any, flat_sequence: Sequence[Any], expand_composites: bool = False
) -> Any:
    """`flat_sequence` in the shape of `structure`; ValueError when the counts differ."""
    flat = list(flat_sequence)
    packed, used = _pack(structure, flat, 0, expand_composites)
    if used != len(flat):
        raise ValueError(
            f"Could not pack sequence. Structure had {used} elements, but flat_sequence had "
            f"{len(flat)} elements."
        )
    return packed


def _pack(structure: Any, flat: list[Any], index: int, expand: bool) -> tuple[Any, int]:
    if is_sequence(structure):
        packed = []
        for item in _items(structure):
            value, index = _pack(item, flat, index, expand)
            packed.append(value)
        return like(structure, packed), index
    parts = _parts(structure) if expand else None
    needed = 1 if parts is None else len(parts)
    if index + needed > len(flat):
        raise ValueError(
            f"Could not pack sequence: structure has more elements than the {len(flat)} given."
        )
    if parts is None:
        return flat[index], index + 1
    chunk = flat[index : index + needed]
    rebuild = getattr(structure, "_from_parts", None)
    return (rebuild(chunk) if rebuild is not None else type(structure)(*chunk)), index + needed


def like(structure: Any, items: list[Any]) -> Any:
    """`items` in a sequence of the type of `structure`."""
    if isinstance(structure, Mapping):
        by_key = dict(zip(sorted(structure), items, strict=True))
        ordered = {k: by_key[k] for k in structure}
        return ordered if type(structure) is dict else type(structure)(ordered)  # type: ignore[call-arg]
    if hasattr(structure, "_fields") or hasattr(type(structure), "__attrs_attrs__"):
        return type(structure)(*items)
    return type(structure)(items)


def map_structure(
    fn: Callable[..., Any], *structures: Any, check_types: bool = True,
    expand_composites: bool = False,
) -> Any:  # fmt: skip
    """`fn` of the leaves of equal structures, in that structure; of composites' tensors if asked.

    Raises:
        TypeError, ValueError: the structures differ.
    """
    for other in structures[1:]:
        assert_same_structure(structures[0], other, check_types, expand_composites)
    flat = [flatten(s, expand_composites) for s in structures]
    found = [fn(*leaves) for leaves in zip(*flat, strict=True)]
    return pack_sequence_as(structures[0], found, expand_composites)


def assert_same_structure(
    nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Raises ValueError (another structure) or TypeError (another sequence type) unless equal."""
    try:
        _assert_same(nest1, nest2, check_types)
        if len(flatten(nest1, expand_composites)) != len(flatten(nest2, expand_composites)):
            raise ValueError("The two structures don't have the same number of elements.")
    except (ValueError, TypeError) as e:
        raise type(e)(
            "The two structures don't have the same nested structure.\n\n"
            f"First structure: {nest1!r}\n\nSecond structure: {nest2!r}\n\n"
            f"More specifically: {e}"
        ) from None


def _assert_same(a: Any, b: Any, check_types: bool) -> None:
    if is_sequence(a) != is_sequence(b):
        raise ValueError(
            f"The two structures don't have the same nested structure: {a!r} and {b!r}."
        )
    if not is_sequence(a):
        return
    if (
        check_types
        and type(a) is not type(b)
        and not (isinstance(a, Mapping) and isinstance(b, Mapping))
    ):
        raise TypeError(
            f"The two structures don't have the same sequence type. First structure has type "
            f"{type(a)}, while second structure has type {type(b)}."
        )
    if isinstance(a, Mapping) and set(a) != set(b):
        raise ValueError(
            f"The two dictionaries don't have the same set of keys: {sorted(a)} and {sorted(b)}."
        )
    left, right = _items(a), _items(b)
    if len(left) != len(right):
        raise ValueError(
            f"The two structures don't have the same number of elements: {a!r} and {b!r}."
        )
    for x, y in zip(left, right, strict=True):
        _assert_same(x, y, check_types)


def assert_shallow_structure(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False,
    check_subtrees_length: bool = True,
) -> None:  # fmt: skip
    """Checks that one structure is another's down to its own leaves.

    Args:
        shallow_tree: the structure that ends first.
        input_tree: the structure that goes on.
        check_types: whether sequences must be of the same types.
        expand_composites: composites are leaves either way.
        check_subtrees_length: whether sequences must be of the same lengths.

    Raises:
        TypeError: a leaf or a sequence of another type is in the place of a sequence.
        ValueError: lengths or keys differ.
    """
    if not is_sequence(shallow_tree):
        return
    if not is_sequence(input_tree):
        raise TypeError(
            "If shallow structure is a sequence, input must also be a sequence. Input has type: "
            f"{type(input_tree)}."
        )
    if check_types and not _same_kind(shallow_tree, input_tree):
        raise TypeError(
            "The two structures don't have the same sequence type. Input structure has type "
            f"{type(input_tree)}, while shallow structure has type {type(shallow_tree)}."
        )
    if check_subtrees_length and len(_items(shallow_tree)) != len(_items(input_tree)):
        raise ValueError(
            "The two structures don't have the same sequence length. Input structure has length "
            f"{len(_items(input_tree))}, while shallow structure has length "
            f"{len(_items(shallow_tree))}."
        )
    for a, b in _pairs(shallow_tree, input_tree):
        assert_shallow_structure(a, b, check_types, expand_composites, check_subtrees_length)


def _same_kind(shallow: Any, given: Any) -> bool:
    if isinstance(given, type(shallow)):
        return True
    if is_namedtuple(shallow) and is_namedtuple(given):
        same: bool = shallow._fields == given._fields
        return same and type(shallow).__name__ == type(given).__name__
    return isinstance(shallow, Mapping) and isinstance(given, Mapping)


def _pairs(shallow: Any, given: Any) -> list[tuple[Any, Any]]:
    """The items of one structure, each with what the other has in its place."""
    if not isinstance(shallow, Mapping) or not isinstance(given, Mapping):
        return list(zip(_items(shallow), _items(given), strict=False))
    lost = set(shallow) - set(given)
    if lost:
        raise ValueError(
            "The two structures don't have the same keys. Input structure has keys "
            f"{sorted(given)}, while shallow structure has keys {sorted(shallow)}."
        )
    return [(shallow[key], given[key]) for key in sorted(shallow)]


def flatten_up_to(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False,
    check_subtrees_length: bool = True,
) -> list[Any]:  # fmt: skip
    """The parts of `input_tree` at the leaves of `shallow_tree`.

    Raises:
        TypeError, ValueError: see `assert_shallow_structure`, whose arguments these are.
    """
    assert_shallow_structure(
        shallow_tree, input_tree, check_types, expand_composites, check_subtrees_length
    )
    return _parts_at_leaves(shallow_tree, input_tree)


def _parts_at_leaves(shallow: Any, given: Any) -> list[Any]:
    if not is_sequence(shallow):
        return [given]
    return [part for a, b in _pairs(shallow, given) for part in _parts_at_leaves(a, b)]


def map_structure_up_to(
    shallow_tree: Any, func: Callable[..., Any], *inputs: Any, **kwargs: Any
) -> Any:
    """Calls `func` with the parts of the inputs at the leaves of `shallow_tree`.

    Returns:
        The results in the structure of `shallow_tree`.

    Raises:
        TypeError, ValueError: see `assert_shallow_structure`, whose other arguments it takes.
    """
    if not inputs:
        raise ValueError("Cannot map over no sequences")
    parts = [flatten_up_to(shallow_tree, value, **kwargs) for value in inputs]
    return pack_sequence_as(shallow_tree, [func(*each) for each in zip(*parts, strict=True)])


def flatten_dict_items(dictionary: Mapping[Any, Any]) -> dict[Any, Any]:
    """A mapping of structures to structures as one of their leaves.

    Raises:
        TypeError: it is no mapping.
        ValueError: a key and its value differ in structure, or a key repeats.
    """
    if not isinstance(dictionary, Mapping):
        raise TypeError("input must be a dictionary")
    flat: dict[Any, Any] = {}
    for key, value in dictionary.items():
        keys, values = (flatten(key), flatten(value)) if is_sequence(key) else ([key], [value])
        if len(keys) != len(values):
            raise ValueError(
                f"Could not flatten dictionary. Key had {len(keys)} elements, but value had "
                f"{len(values)} elements. Key: {keys}, value: {values}."
            )
        for one, leaf in zip(keys, values, strict=True):
            if one in flat:
                raise ValueError(f"Could not flatten dictionary: key {one} is not unique.")
            flat[one] = leaf
    return flat
