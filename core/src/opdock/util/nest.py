"""Nested structures: flattening, packing, comparing (`tf.contrib.framework.nest`).

A structure is a list, tuple, namedtuple, dict (in key order) or attrs class of structures;
everything else is a leaf. Where composites are expanded, so are values of several tensors and
their specs: what they hold stands one level below them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, MappingView, Sequence
from typing import Any

_STRUCTURES_HAVE_MISMATCHING_TYPES = (
    "The two structures don't have the same sequence type. Input structure has type {input_type}, "
    "while shallow structure has type {shallow_type}."
)
_STRUCTURES_HAVE_MISMATCHING_LENGTHS = (
    "The two structures don't have the same sequence length. Input structure has length "
    "{input_length}, while shallow structure has length {shallow_length}."
)
_INPUT_TREE_SMALLER_THAN_SHALLOW_TREE = (
    "The input_tree has fewer elements than the shallow_tree. Input structure has length "
    "{input_size}, while shallow structure has length {shallow_size}."
)
_SHALLOW_TREE_HAS_INVALID_KEYS = (
    "The shallow_tree's keys are not a subset of the input_tree's keys. The shallow_tree has the "
    "following keys that are not in the input_tree: {}."
)
_IF_SHALLOW_IS_SEQ_INPUT_MUST_BE_SEQ = (
    "If shallow structure is a sequence, input must also be a sequence. Input has type: {}."
)


# ---------------------------------------------------------------- what structures are
def is_sequence(seq: Any) -> bool:
    """Whether `seq` is a structure rather than a leaf."""
    if isinstance(seq, (list, tuple, dict)):
        return True
    if isinstance(seq, (Sequence, Mapping, MappingView)):
        return not isinstance(seq, (str, bytes, bytearray))
    return hasattr(type(seq), "__attrs_attrs__")


is_nested = is_sequence


def is_composite(value: Any) -> bool:
    """Whether `value` is made of several tensors, or is the spec of what is."""
    return getattr(type(value), "_is_composite", False)


def is_sequence_or_composite(value: Any) -> bool:
    """Whether `value` is a structure where composites are expanded."""
    return is_sequence(value) or is_composite(value)


def is_namedtuple(instance: Any, strict: bool = False) -> bool:
    """Whether a value is a named tuple, and with `strict` of no class derived from one."""
    fields = getattr(instance, "_fields", None)
    if not isinstance(instance, tuple) or not isinstance(fields, Sequence):
        return False
    if strict and type(instance).__base__ is not tuple:
        return False
    return all(isinstance(field, str) for field in fields)


def is_mapping(value: Any) -> bool:
    """Whether a structure has keys."""
    return isinstance(value, Mapping)


def is_attrs(value: Any) -> bool:
    """Whether a structure is an instance of a class that the library attrs made."""
    return hasattr(type(value), "__attrs_attrs__")


def _same_namedtuples(one: Any, other: Any) -> bool:
    return type(one).__name__ == type(other).__name__ and one._fields == other._fields


def _seen_as(expand: bool) -> Callable[[Any], bool]:
    return is_sequence_or_composite if expand else is_sequence


def _sorted(mapping: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(mapping)
    except TypeError:
        raise TypeError("nest only supports dicts with sortable keys.") from None


def keyed_items(value: Any) -> list[tuple[Any, Any]]:
    """What stands one level below a structure, with the keys: places, names, or a type's name."""
    if isinstance(value, Mapping):
        return [(key, value[key]) for key in _sorted(value)]
    if hasattr(type(value), "__attrs_attrs__"):
        return [(a.name, getattr(value, a.name)) for a in type(value).__attrs_attrs__]
    if is_namedtuple(value):
        return list(zip(value._fields, value, strict=True))
    if is_composite(value):
        return [(value._composite_key(), value._composite_parts())]
    return list(enumerate(value))


def items(value: Any) -> list[Any]:
    """What stands one level below a structure."""
    if isinstance(value, (list, tuple)):
        return list(value)
    return [item for _, item in keyed_items(value)]


def like(structure: Any, parts: list[Any]) -> Any:
    """`parts` in a structure of the type of `structure`, one level deep."""
    if isinstance(structure, Mapping):
        by_key = dict(zip(_sorted(structure), parts, strict=True))
        ordered = {k: by_key[k] for k in structure}
        if isinstance(structure, defaultdict):
            return defaultdict(structure.default_factory, ordered)
        return ordered if type(structure) is dict else type(structure)(ordered)  # type: ignore[call-arg]
    if isinstance(structure, (MappingView, range)):
        return list(parts)
    if is_namedtuple(structure) or hasattr(type(structure), "__attrs_attrs__"):
        return type(structure)(*parts)
    if is_composite(structure):
        return structure._from_parts(parts[0])
    return type(structure)(parts)


# ---------------------------------------------------------------- flat and back
def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The leaves of `structure` in order; composites as their tensors with `expand_composites`.

    Raises:
        TypeError: keys of a dict have no order.
    """
    if not _seen_as(expand_composites)(structure):
        return [structure]
    return [leaf for item in items(structure) for leaf in flatten(item, expand_composites)]


def pack_sequence_as(structure: Any, flat_sequence: Any, expand_composites: bool = False) -> Any:
    """`flat_sequence` in the shape of `structure`; see `flatten` for `expand_composites`.

    Raises:
        TypeError: it is no sequence.
        ValueError: there are more or fewer elements than leaves.
    """
    if not is_sequence_or_composite(flat_sequence):
        raise TypeError("flat_sequence must be a sequence")
    flat, seen = list(flat_sequence), _seen_as(expand_composites)
    if not seen(structure):
        if len(flat) != 1:
            raise ValueError(f"Structure is a scalar but len(flat_sequence) == {len(flat)} > 1")
        return flat[0]
    leaves = flatten(structure, expand_composites)
    if len(leaves) != len(flat):
        raise ValueError(
            f"Could not pack sequence. Structure had {len(leaves)} elements, but flat_sequence had "
            f"{len(flat)} elements.  Structure: {structure}, flat_sequence: {flat}."
        )
    return _packed(structure, iter(flat), seen)


def _packed(structure: Any, flat: Any, seen: Callable[[Any], bool]) -> Any:
    if not seen(structure):
        return next(flat)
    return like(structure, [_packed(item, flat, seen) for item in items(structure)])


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """`func` of the leaves of equal structures, in that structure; of composites' tensors if asked.

    Args:
        func: takes a leaf of each structure.
        *structure: the structures.
        **kwargs: `check_types` (True) and `expand_composites` (False).

    Raises:
        TypeError, ValueError: the structures differ.
    """
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    check_types = kwargs.pop("check_types", True)
    expand = kwargs.pop("expand_composites", False)
    if kwargs:
        raise ValueError(
            "Only valid keyword arguments are `check_types` and `expand_composites`, not: "
            f"`{'`, `'.join(kwargs)}`"
        )
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types, expand)
    flat = [flatten(s, expand) for s in structure]
    found = [func(*leaves) for leaves in zip(*flat, strict=True)]
    return pack_sequence_as(structure[0], found, expand)


# ---------------------------------------------------------------- the same structure
class _Dot:
    """Stands for any leaf where structures are shown."""

    def __repr__(self) -> str:
        return "."


def assert_same_structure(
    nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Raises unless `nest1` and `nest2` are alike down to their leaves.

    With `check_types` sequences have to be of one type; `expand_composites` is as of `flatten`.

    Raises:
        ValueError: they are nested in another way, or composites of no common spec.
        TypeError: a sequence is of another type.
    """
    try:
        compare(nest1, nest2, check_types, _seen_as(expand_composites), expand_composites)
    except (ValueError, TypeError) as e:
        shown = [str(map_structure(lambda _: _Dot(), nest)) for nest in (nest1, nest2)]
        raise type(e)(
            f"{e}\nEntire first structure:\n{shown[0]}\nEntire second structure:\n{shown[1]}"
        ) from None


def compare(
    nest1: Any, nest2: Any, check_types: bool, seen: Callable[[Any], bool], expand: bool = False
) -> None:
    """Raises unless two structures are alike down to their leaves.

    Args:
        nest1, nest2: the structures.
        check_types: whether types of sequences must be equal too.
        seen: what tells structures from leaves.
        expand: whether composites are structures.

    Raises:
        ValueError, TypeError: as `assert_same_structure`.
    """
    try:
        _assert_same(nest1, nest2, check_types, seen, expand)
    except (ValueError, TypeError) as e:
        raise type(e)(
            "The two structures don't have the same nested structure.\n\n"
            f"First structure: {_told(nest1)}\n\nSecond structure: {_told(nest2)}\n\n"
            f"More specifically: {e}"
        ) from None


def _told(value: Any) -> str:
    return f"type={type(value).__name__} str={value}"


def _assert_same(
    a: Any, b: Any, check_types: bool, seen: Callable[[Any], bool], expand: bool
) -> None:
    if seen(a) != seen(b):
        deeper, leaf = (a, b) if seen(a) else (b, a)
        raise ValueError(
            f'Substructure "{_told(deeper)}" is a sequence, while substructure "{_told(leaf)}" is '
            "not"
        )
    if not seen(a):
        return
    if check_types:
        _check_same_kind(a, b, expand)
    if expand and (is_composite(a) or is_composite(b)):
        _check_common_spec(a, b)
    left, right = items(a), items(b)
    for x, y in zip(left, right, strict=False):
        _assert_same(x, y, check_types, seen, expand)
    if len(left) != len(right):
        raise ValueError(
            "The two structures don't have the same number of elements. First structure: "
            f"{_told(a)}. Second structure: {_told(b)}"
        )


def _check_same_kind(a: Any, b: Any, expand: bool) -> None:
    """Raises if two sequences are of types that TF tells apart."""
    if is_namedtuple(a, strict=True) and is_namedtuple(b, strict=True):
        same = _same_namedtuples(a, b)
    else:
        same = (
            type(a) is type(b)
            or (isinstance(a, list) and isinstance(b, list))
            or (isinstance(a, Mapping) and isinstance(b, Mapping))
            or (expand and (_are_value_and_spec(a, b) or _are_arrays(a, b)))
        )
    if not same:
        raise TypeError(
            "The two namedtuples don't have the same sequence type. First structure "
            f"{_told(a)} has type {type(a).__name__}, while second structure {_told(b)} has type "
            f"{type(b).__name__}"
        )
    if isinstance(a, Mapping) and set(a) != set(b):
        raise ValueError(
            "The two dictionaries don't have the same set of keys. First structure has keys "
            f"{list(a)}, while second structure has keys {list(b)}"
        )


def _are_arrays(a: Any, b: Any) -> bool:
    """Whether both are tensor arrays, of which some are lists."""
    return hasattr(a, "_as_list") and hasattr(b, "_as_list")


def _are_value_and_spec(a: Any, b: Any) -> bool:
    """Whether one is a composite and the other a spec of one."""
    return (
        is_composite(a) and is_composite(b) and hasattr(a, "_type_spec") != hasattr(b, "_type_spec")
    )


def _check_common_spec(a: Any, b: Any) -> None:
    """Raises ValueError unless there is a spec that two composites have in common."""
    ours, theirs = (getattr(x, "_type_spec", x) for x in (a, b))
    if not hasattr(ours, "most_specific_compatible_type"):  # a TensorArray is its flow
        return
    try:
        ours.most_specific_compatible_type(theirs)
    except (TypeError, ValueError) as e:
        raise ValueError(
            f"Incompatible CompositeTensor TypeSpecs: {ours} vs. {theirs} -- {e}"
        ) from None


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


# ---------------------------------------------------------------- down to another's leaves
def assert_shallow_structure(
    shallow_tree: Any, input_tree: Any, check_types: bool = True, expand_composites: bool = False,
    check_subtrees_length: bool = True,
) -> None:  # fmt: skip
    """Checks that one structure is another's down to its own leaves.

    Args:
        shallow_tree: the structure that ends first.
        input_tree: the structure that goes on.
        check_types: whether sequences must be of the same types.
        expand_composites: whether composites are structures.
        check_subtrees_length: whether sequences must be of the same lengths.

    Raises:
        TypeError: a leaf or a sequence of another type is in the place of a sequence.
        ValueError: lengths or keys differ.
    """
    seen = _seen_as(expand_composites)
    if not seen(shallow_tree):
        return
    if not seen(input_tree):
        raise TypeError(_IF_SHALLOW_IS_SEQ_INPUT_MUST_BE_SEQ.format(type(input_tree)))
    composite = is_composite(shallow_tree), is_composite(input_tree)
    if composite[0] != composite[1] or (
        check_types and not all(composite) and not _may_stand_for(shallow_tree, input_tree)
    ):
        raise TypeError(
            _STRUCTURES_HAVE_MISMATCHING_TYPES.format(
                input_type=type(input_tree), shallow_type=type(shallow_tree)
            )
        )
    if all(composite):
        _check_common_spec(shallow_tree, input_tree)
    else:
        _check_lengths(shallow_tree, input_tree, check_subtrees_length)
    for a, b in _pairs(shallow_tree, input_tree):
        assert_shallow_structure(a, b, check_types, expand_composites, check_subtrees_length)


def _may_stand_for(shallow: Any, given: Any) -> bool:
    if isinstance(given, type(shallow)):
        return True
    if is_namedtuple(shallow) and is_namedtuple(given):
        return _same_namedtuples(shallow, given)
    return isinstance(shallow, Mapping) and isinstance(given, Mapping)


def _check_lengths(shallow: Any, given: Any, equal: bool) -> None:
    if equal and len(given) != len(shallow):
        raise ValueError(
            _STRUCTURES_HAVE_MISMATCHING_LENGTHS.format(
                input_length=len(given), shallow_length=len(shallow)
            )
        )
    if len(given) < len(shallow):
        raise ValueError(
            _INPUT_TREE_SMALLER_THAN_SHALLOW_TREE.format(
                input_size=len(given), shallow_size=len(shallow)
            )
        )
    if isinstance(shallow, Mapping) and (lost := set(shallow) - set(given)):
        raise ValueError(_SHALLOW_TREE_HAS_INVALID_KEYS.format(sorted(lost)))


def _pairs(shallow: Any, given: Any) -> list[tuple[Any, Any]]:
    """The items of one structure, each with what the other has in its place."""
    if isinstance(shallow, Mapping) and isinstance(given, Mapping):
        return [(shallow[key], given[key]) for key in _sorted(shallow)]
    return list(zip(items(shallow), items(given), strict=False))


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
    return _parts_at_leaves(shallow_tree, input_tree, _seen_as(expand_composites))


def _parts_at_leaves(shallow: Any, given: Any, seen: Callable[[Any], bool]) -> list[Any]:
    if not seen(shallow):
        return [given]
    return [part for a, b in _pairs(shallow, given) for part in _parts_at_leaves(a, b, seen)]


def get_traverse_shallow_structure(
    traverse_fn: Callable[[Any], Any], structure: Any, expand_composites: bool = False
) -> Any:
    """How deep a function goes into a structure: booleans where it ends.

    Args:
        traverse_fn: takes a part of the structure; gives a boolean, whether to go into it, or a
            structure of them one level deep, into which of its parts.
        structure: the structure.
        expand_composites: whether composites are structures.

    Raises:
        TypeError: the function gave something else.
    """
    seen, found = _seen_as(expand_composites), traverse_fn(structure)
    if not seen(structure):
        if not isinstance(found, bool):
            raise TypeError(
                f"traverse_fn returned structure: {found} for non-structure: {structure}"
            )
        return found
    if found is False:
        return False
    if not isinstance(found, bool):
        if not seen(found):
            raise TypeError(
                f"traverse_fn returned a non-bool scalar: {found} for input: {structure}"
            )
        assert_shallow_structure(found, structure, expand_composites=expand_composites)
    into = [found] * len(items(structure)) if isinstance(found, bool) else items(found)
    deeper = []
    for goes_on, part in zip(into, items(structure), strict=True):
        if not isinstance(goes_on, bool):
            raise TypeError(
                f"traverse_fn didn't return a depth=1 structure of bools.  saw: {found}  for "
                f"structure: {structure}"
            )
        deeper.append(
            get_traverse_shallow_structure(traverse_fn, part, expand_composites)
            if goes_on
            else False
        )
    return like(structure, deeper)
