"""Hyperparameters: named values with types, read from text and JSON."""

from __future__ import annotations

import json
import numbers
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from opdock.graph.serial.proto_functions import register_proto_function
from opdock.io import protos
from opdock.io.parsing import parsed_json

__all__ = ["HParams", "parse_values"]

_ASSIGNMENT = re.compile(
    r"""
    (?P<name>[a-zA-Z][\w\.]*)           # a name
    (\[\s*(?P<index>\d+)\s*\])?\s*      # of which element
    =\s*
    ((?P<val>[^,\[]*)                   # one value
     |
     \[(?P<vals>[^\]]*)\])              # or a list
    ($|,\s*)
    """,
    re.VERBOSE,
)


def _bad(name: str, kind: type, value: str, values: str) -> NoReturn:
    raise ValueError(
        f"Could not parse hparam '{name}' of type '{kind.__name__}' with value '{value}' in "
        f"{values}"
    )


def _twice(name: str, values: str) -> NoReturn:
    raise ValueError(f"Multiple assignments to variable '{name}' in {values}")


def _as_bool(value: str) -> bool:
    if value in ("true", "True"):
        return True
    if value in ("false", "False"):
        return False
    return bool(int(value))


def parse_values(
    values: str, type_map: Mapping[str, type], ignore_unknown: bool = False
) -> dict[str, Any]:
    """Reads `name=value,name=[value,value],name[1]=value`.

    Args:
        values: the text.
        type_map: the type of each name, of its elements if it is a list.
        ignore_unknown: whether other names are left out; else they are errors.

    Returns:
        The values by name; those with an index as a dict by index.

    Raises:
        ValueError: the text or a value cannot be read, a name is unknown or set twice.
    """
    found: dict[str, Any] = {}
    at = 0
    while at < len(values):
        match = _ASSIGNMENT.match(values, at)
        if match is None:
            raise ValueError(f"Malformed hyperparameter value: {values[at:]}")
        at = match.end()
        name, index, value, several = match.group("name", "index", "val", "vals")
        if name not in type_map:
            if ignore_unknown:
                continue
            raise ValueError(f"Unknown hyperparameter type for {name}")
        kind = type_map[name]
        parse: Callable[[str], Any] = _as_bool if kind is bool else kind
        if several is not None:
            if index is not None:
                raise ValueError("Assignment of a list to a list index.")
            if name in found:
                _twice(name, values)
            parts = [part for part in re.split("[ ,]", several) if part]
            try:
                found[name] = [parse(part) for part in parts]
            except ValueError:
                _bad(name, kind, several, values)
            continue
        try:
            one = parse(value)
        except ValueError:
            _bad(name, kind, value, values)
        if index is None:
            if name in found:
                _twice(name, values)
            found[name] = one
            continue
        elements = found.setdefault(name, {})
        if not isinstance(elements, dict):
            _twice(name, values)
        if int(index) in elements:
            _twice(f"{name}[{int(index)}]", values)
        elements[int(index)] = one
    return found


def _cast(name: str, kind: type, value: Any) -> Any:
    """The value as this type, where nothing is lost.

    Raises:
        ValueError: it is of another kind.
    """
    if type(value) is kind or kind is type(None):
        return value
    text = (str, bytes)
    fits = (
        not (issubclass(kind, text) and not isinstance(value, text))
        and issubclass(kind, bool) == isinstance(value, bool)
        and not (issubclass(kind, numbers.Integral) and not isinstance(value, numbers.Integral))
        and not (issubclass(kind, numbers.Number) and not isinstance(value, numbers.Number))
    )
    if not fits:
        raise ValueError(f"Could not cast hparam '{name}' of type '{kind}' from value {value!r}")
    return kind(value)


# A bool is an int, so it is asked for first.
_KINDS: Final = {bool: "bool", int: "int64", str: "bytes", bytes: "bytes", float: "float"}


def _plain(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def _from_message(kept: Any) -> Any:
    """The value, or list of values, that an `HParamType` has."""
    found = getattr(kept, kept.WhichOneof("kind"))
    values = list(found.value) if hasattr(found, "value") else [found]
    values = [v.decode() if isinstance(v, bytes) else v for v in values]
    return values if hasattr(found, "value") else values[0]


class HParams:
    """A set of hyperparameters, as attributes.

    The type of each is that of its first value, and stays.

    Args:
        hparam_def: an `HParamDef` with the values, in the place of all others.
        model_structure: any object to carry along.
        **kwargs: the values: numbers, texts, bools, or lists of them.

    Raises:
        ValueError: a name is reserved, or a list is empty.
        AssertionError: `hparam_def` is no `HParamDef`.
    """

    _HAS_DYNAMIC_ATTRIBUTES = True  # for checkers of types

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **kwargs: Any) -> None:
        self._hparam_types: dict[str, tuple[type, bool]] = {}
        self._model_structure = model_structure
        if hparam_def is not None:
            if not isinstance(hparam_def, protos.HParamDef):
                raise AssertionError(f"hparam_def must be an HParamDef, got {hparam_def!r}")
            kwargs = {name: _from_message(kept) for name, kept in hparam_def.hparam.items()}
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    @staticmethod
    def from_proto(hparam_def: Any, import_scope: str | None = None) -> HParams:
        """The values of an `HParamDef`."""
        del import_scope  # values are no nodes, which scopes are for
        return HParams(hparam_def=hparam_def)

    def to_proto(self, export_scope: str | None = None) -> Any:
        """An `HParamDef` of the values.

        Raises:
            ValueError: a value is no bool, int, float or text.
        """
        message = protos.HParamDef()
        for name, (kind, is_list) in self._hparam_types.items():
            word = next((word for base, word in _KINDS.items() if issubclass(kind, base)), None)
            if word is None:
                raise ValueError(f"Unsupported parameter type: {kind}")
            value, kept = getattr(self, name), message.hparam[name]
            values = [_plain(v) for v in (value if is_list else [value])]
            if is_list:
                getattr(kept, f"{word}_list").value.extend(values)
            else:
                setattr(kept, f"{word}_value", values[0])
        return message

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds one; its type is that of the value.

        Raises:
            ValueError: there is an attribute of this name, or a list is empty.
        """
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        is_list = isinstance(value, (list, tuple))
        if is_list and not value:
            raise ValueError(f"Multi-valued hyperparameters cannot be empty: {name}")
        self._hparam_types[name] = (type(value[0]) if is_list else type(value), is_list)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Sets one that is there.

        Raises:
            KeyError: there is none of this name.
            ValueError: the value is of another type, or a list where there was none.
        """
        if name not in self._hparam_types:
            raise KeyError(
                f"There is no hparam '{name}'; there are {', '.join(self._hparam_types)}"
            )
        kind, is_list = self._hparam_types[name]
        if isinstance(value, list) != is_list:
            raise ValueError(
                f"Must pass a list for multi-valued parameter: {name}."
                if is_list
                else f"Must not pass a list for single-valued parameter: {name}"
            )
        if is_list:
            setattr(self, name, [_cast(name, kind, v) for v in value])
        else:
            setattr(self, name, _cast(name, kind, value))

    def del_hparam(self, name: str) -> None:
        """Removes one, if it is there."""
        if hasattr(self, name):
            delattr(self, name)
            del self._hparam_types[name]

    def parse(self, values: str) -> HParams:
        """Sets values from text; see `parse_values`.

        Raises:
            ValueError: the text cannot be read, or a value does not fit.
        """
        kinds = {name: kind for name, (kind, _) in self._hparam_types.items()}
        return self.override_from_dict(parse_values(values, kinds))

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> HParams:
        """Sets values by name.

        Raises:
            KeyError: there is none of a name.
            ValueError: a value does not fit.
        """
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def set_from_map(self, values_map: Mapping[str, Any]) -> HParams:
        """The deprecated name of `override_from_dict`."""
        return self.override_from_dict(values_map)

    def set_model_structure(self, model_structure: Any) -> None:
        """Sets the object that is carried along."""
        self._model_structure = model_structure

    def get_model_structure(self) -> Any:
        """The object that is carried along."""
        return self._model_structure

    def to_json(self, indent: Any = None, separators: Any = None, sort_keys: bool = False) -> str:
        """The values as JSON."""
        return json.dumps(self.values(), indent=indent, separators=separators, sort_keys=sort_keys)

    def parse_json(self, values_json: str) -> HParams:
        """Sets values from JSON.

        Raises:
            KeyError: there is none of a name.
            ValueError: a value does not fit, or the text is no JSON.
        """
        values = parsed_json(values_json, "values_json")
        if not isinstance(values, dict):
            raise ValueError(f"values_json must be an object of values by name, got {values!r}")
        return self.override_from_dict(values)

    def values(self) -> dict[str, Any]:
        """All values by name."""
        return {name: getattr(self, name) for name in self._hparam_types}

    def get(self, key: str, default: Any = None) -> Any:
        """A value, or `default`, which must be of its type.

        Raises:
            ValueError: `default` does not fit the value.
        """
        if key not in self._hparam_types:
            return default
        if default is not None:
            self._check_default(key, default)
        return getattr(self, key)

    def _check_default(self, key: str, default: Any) -> None:
        kind, is_list = self._hparam_types[key]
        called = f"list<{kind}>" if is_list else str(kind)
        message = f"Hparam '{key}' of type '{called}' is incompatible with default={default}"
        if is_list != isinstance(default, list):
            raise ValueError(message)
        try:
            for value in default if is_list else [default]:
                _cast(key, kind, value)
        except ValueError as error:
            raise ValueError(f"{message}. {error}") from error

    def __contains__(self, key: str) -> bool:
        return key in self._hparam_types

    def __str__(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self.values().items())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({sorted(self.values().items())})"


register_proto_function("hparams", protos.HParamDef, HParams.to_proto, HParams.from_proto)
