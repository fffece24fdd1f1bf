"""Options as objects whose fields have types and defaults, and can be merged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["OptionsBase", "create_option", "merge_options"]


class OptionsBase:
    """An object with the options that its class declares, and no other attributes."""

    def __init__(self) -> None:
        object.__setattr__(self, "_options", {})
        object.__setattr__(self, "_mutable", True)

    _options: dict[str, Any]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        names = self._options.keys() | other._options.keys()
        return all(getattr(self, n) == getattr(other, n) for n in names)

    __hash__ = None  # type: ignore[assignment]

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(type(self), name):
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        object.__setattr__(self, name, value)


def create_option(
    name: str, ty: Any, docstring: str, default_factory: Callable[[], Any] = lambda: None
) -> Any:
    """A property that holds an option.

    Args:
        name: the option.
        ty: the type of its values, or a tuple of types.
        docstring: what it means.
        default_factory: makes its value where none was set.

    Raises:
        TypeError: from the setter, where a value has another type.
    """

    def get(self: OptionsBase) -> Any:
        # A default that is an object is kept, so that its own options can be set.
        return self._options.setdefault(name, default_factory())

    def set_(self: OptionsBase, value: Any) -> None:
        if not isinstance(value, ty):
            raise TypeError(
                f'Property "{name}" must be of type {ty}, got: {value!r} (type: {type(value)!r})'
            )
        self._options[name] = value

    return property(get, set_, None, docstring)


def merge_options(*options_list: Any) -> Any:
    """Options of one class as one object; what is set in several must be equal.

    Raises:
        TypeError: they are of several classes.
        ValueError: there are none, or an option is set to different values.
    """
    if not options_list:
        raise ValueError("At least one options should be provided")
    cls = type(options_list[0])
    if any(not isinstance(options, cls) for options in options_list):
        raise TypeError("All options must be of the same type.")
    if not issubclass(cls, OptionsBase):
        raise TypeError("The inferred result type must be a subclass of OptionsBase.")
    result = cls()
    for options in options_list:
        for name, value in options._options.items():
            _merge_one(result, name, value)
    return result


def _merge_one(result: OptionsBase, name: str, value: Any) -> None:
    known = result._options.get(name)
    if isinstance(value, OptionsBase) and known is not None:
        result._options[name] = merge_options(known, value)
    elif name in result._options and known != value and value is not None and known is not None:
        raise ValueError(f"Cannot merge incompatible values of option: {name}")
    elif value is not None or name not in result._options:
        result._options[name] = value
