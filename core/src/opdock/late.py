"""Records whose methods are written when they are first called.

`dataclass` writes up to six methods of a class and compiles them when the class is made, a third of
a millisecond each time: of the hundred classes that a session imports it makes a sixth of all that
the first one costs. Most of these methods are never called.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

__all__ = ["record"]

Options = dict[str, bool]

_ASKED: Final[dict[str, Options]] = {
    "__init__": {"init": True}, "__repr__": {"repr": True}, "__eq__": {"eq": True},
    "__hash__": {"eq": True},
}  # fmt: skip
"""What `dataclass` is asked for when a method is called."""
_FEW: Final = 4
"""Instances that are made before it pays to write how."""
_NOTHING: Final[Options] = {"init": False, "repr": False, "eq": False, "match_args": False}


class _Signature:
    """The signature of a class, which is that of the method that makes instances."""

    def __get__(self, instance: Any, owner: Any) -> inspect.Signature:
        """Of the class that is asked."""
        method = owner.__init__
        method = getattr(method, "written", lambda: method)()
        found = inspect.signature(method)
        return found.replace(parameters=list(found.parameters.values())[1:])


def _written(made: type, name: str, frozen: bool) -> Any:
    """A method of a class, from a `dataclass` of the same fields that inherits nothing."""
    fields = {f.name: copy.copy(f) for f in dataclasses.fields(made)}
    body: dict[str, Any] = {
        "__annotations__": {key: f.type for key, f in fields.items()}, **fields,
        "__module__": made.__module__, "__qualname__": made.__qualname__, "__doc__": made.__doc__,
    }  # fmt: skip
    if hasattr(made, "__post_init__"):
        body["__post_init__"] = None  # it is called on the instance, which has its own
    options = {**_NOTHING, **_ASKED[name], "frozen": frozen}
    return vars(dataclasses.dataclass(**options)(type(made.__name__, (), body)))[name]


def _fill(made: type, frozen: bool, self: Any, args: tuple[Any, ...], words: Any) -> bool:
    """Does what the method that makes instances would do; False where that has to raise."""
    fields = dataclasses.fields(made)
    places = [f.name for f in fields if f.init and not f.kw_only]
    given = dict(zip(places, args, strict=False))
    if len(args) > len(places) or given.keys() & words.keys():
        return False
    given |= words
    keep, slots = object.__setattr__ if frozen else setattr, "__slots__" in vars(made)
    for f in fields:
        if f.init and f.name in given:
            keep(self, f.name, given.pop(f.name))
        elif not f.init and f.default is not dataclasses.MISSING and not slots:
            continue  # the class has it
        elif f.default is not dataclasses.MISSING:
            keep(self, f.name, f.default)
        elif f.default_factory is not dataclasses.MISSING:
            keep(self, f.name, f.default_factory())
        elif f.init:
            return False
    if not given and hasattr(made, "__post_init__"):
        self.__post_init__()
    return not given


def _lent(made: type, name: str, frozen: bool) -> Callable[..., Any]:
    """What stands for a method until it is called, and then calls the written one.

    Of many classes there are a few instances: the first are filled field by field.
    """
    few = iter(range(_FEW))

    def written() -> Any:
        if vars(made).get(name) is method:
            setattr(made, name, _written(made, name, frozen))
        return vars(made)[name]

    @functools.wraps(getattr(object, name), assigned=("__doc__", "__name__"), updated=())
    def method(*args: Any, **words: Any) -> Any:
        if name == "__init__" and next(few, None) is not None:
            if _fill(made, frozen, args[0], args[1:], words):
                return None
        return written()(*args, **words)

    del method.__wrapped__
    method.__qualname__ = f"{made.__qualname__}.{name}"
    method.written = written  # type: ignore[attr-defined]
    return method


def _freeze(made: Any, own: frozenset[str]) -> None:
    """Has all fields of a class refuse to change, but for copies that are being made."""
    names = [f.name for f in dataclasses.fields(made)]

    def closed(self: Any, name: str) -> bool:
        return type(self) is made or name in names

    def change(self: Any, name: str, value: Any) -> None:
        if closed(self, name):
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(made, self).__setattr__(name, value)

    def delete(self: Any, name: str) -> None:
        if closed(self, name):
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(made, self).__delattr__(name)

    def state(self: Any) -> list[Any]:
        return [getattr(self, f.name) for f in dataclasses.fields(self)]

    def restore(self: Any, state: list[Any]) -> None:
        for f, value in zip(dataclasses.fields(self), state, strict=True):
            object.__setattr__(self, f.name, value)

    made.__setattr__, made.__delattr__ = change, delete
    if "__slots__" in vars(made) and not own & {"__getstate__", "__setstate__"}:
        made.__getstate__, made.__setstate__ = state, restore


if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:

    def record(
        cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, eq: bool = True,
        repr: bool = True, kw_only: bool = False,
    ) -> Any:  # fmt: skip
        """`dataclasses.dataclass`, whose methods are written late.

        A class whose base is frozen is made by this if, and only if, the base is.

        Args:
            cls: the class.
            frozen, slots, eq, repr, kw_only: as for `dataclass`.
        """
        if cls is None:
            options = {"frozen": frozen, "slots": slots, "eq": eq, "repr": repr}
            return functools.partial(record, kw_only=kw_only, **options)
        own = frozenset(vars(cls))
        # `dataclass` would put the signature there, which takes it milliseconds to find.
        cls.__doc__ = cls.__doc__ or cls.__name__
        made = dataclasses.dataclass(
            **_NOTHING | {"match_args": True}, slots=slots, kw_only=kw_only
        )(cls)
        wanted = {"__init__": True, "__repr__": repr, "__eq__": eq, "__hash__": eq and frozen}
        # Python gives a class that says when its instances are equal None for a hash.
        own -= {"__hash__"} if vars(cls).get("__hash__", 0) is None else set()
        for name, asked in wanted.items():
            if asked and name not in own:
                setattr(made, name, _lent(made, name, frozen))
        if eq and not frozen and "__hash__" not in own:
            made.__hash__ = None
        if frozen:
            _freeze(made, own)
        made.__signature__ = _Signature()
        return made
