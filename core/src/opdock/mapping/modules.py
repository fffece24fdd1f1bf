"""The modules that programs see as TensorFlow's: each finds its names when they are used."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, MutableMapping
from types import ModuleType
from typing import Any, Final

from opdock import version
from opdock.mapping import absent, listing, missing, removed, resolve, tables

# What TensorFlow tells of itself.
_VERSIONS: Final = {
    "__version__": version.VERSION,
    "__git_version__": version.GIT_VERSION,
    "__compiler_version__": version.COMPILER_VERSION,
    "__cxx11_abi_flag__": version.CXX11_ABI_FLAG,
    "__monolithic_build__": version.MONOLITHIC_BUILD,
}
# What the import system and pickling ask of every module, and no program of TF's.
_ASKED_OF_ALL: Final = frozenset({"__all__", *_VERSIONS})
# Modules of TensorFlow 2's interface that are named so.
_MODULES: Final = frozenset({"__internal__", "__operators__"})


_DICTIONARY: Final[Any] = vars(ModuleType)["__dict__"]


def _own(module: ModuleType) -> dict[str, Any]:
    """A module's own dictionary: what it was made with, and the names that have been used."""
    found: dict[str, Any] = _DICTIONARY.__get__(module)
    return found


# Typeshed has a dict as a MutableMapping, and so no order for both.
class Names(MutableMapping[str, Any], dict[str, Any]):  # type: ignore[misc,metaclass]
    """The dictionary of a mapped module, in which a name is found when it is asked for.

    `tf.nn.__dict__["relu"]` stands in programs that take names from their settings, and a walk
    through `tf.contrib.rnn.__dict__.values()` in those that look for all classes of a kind. It is a
    dict for those who ask; nothing is in that part of it.
    """

    __slots__ = ("_module",)

    def __init__(self, module: Mapped) -> None:
        self._module = module

    def __getitem__(self, name: str) -> Any:
        own = _own(self._module)
        try:
            return own[name] if name in own else getattr(self._module, name)
        except AttributeError:
            raise KeyError(name) from None

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self._module, name, value)

    def __delitem__(self, name: str) -> None:
        if name not in _own(self._module):
            raise KeyError(name)
        delattr(self._module, name)

    def __iter__(self) -> Iterator[str]:
        return iter(dir(self._module))

    def __len__(self) -> int:
        return len(dir(self._module))

    def __repr__(self) -> str:
        return f"<the names of {self._module.__name__}>"


class Mapped(ModuleType):
    """A module of TensorFlow's whose names are opdock's.

    `root` is the name under which the tree was imported ("tensorflow" or "opdock"), and `path` the
    module's place below it. A name is looked up once; after that it is a plain attribute.
    """

    def __init__(self, name: str, root: str, path: str) -> None:
        super().__init__(name, doc=f"TensorFlow 1.15's `{name}`, on opdock.")
        own = _own(self)
        own["_opdock_place"] = (root, path)
        own["_opdock_replaced"] = {}
        self.__path__: list[str] = []
        self.__file__ = importlib.import_module("opdock").__file__

    @property
    def __dict__(self) -> Names:  # type: ignore[override]
        """What programs see of its names: all of them, not only those that have been used."""
        return Names(self)

    def __getattr__(self, name: str) -> Any:
        root, path = _own(self)["_opdock_place"]
        if name.startswith("__") and name not in _ASKED_OF_ALL | _MODULES:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if name == "__all__":
            return listing.public_names(path)
        if name in _VERSIONS:
            return _VERSIONS[name]
        found = lookup(self, path, name, root)
        if name not in tables.LIVE:
            _own(self)[name] = found
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        """Puts something in the place of a name, for opdock's own module that has it as well."""
        _own(self)[name] = value
        if name.startswith("__") or isinstance(value, ModuleType):
            return
        home = resolve.home(resolve.plain(_own(self)["_opdock_place"][1]), name)
        if home is not None and hasattr(*home):
            _own(self)["_opdock_replaced"].setdefault(name, (*home, getattr(*home)))
            setattr(*home, value)

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        replaced = _own(self)["_opdock_replaced"].pop(name, None)
        if replaced is not None:
            setattr(*replaced)

    def __dir__(self) -> list[str]:
        return sorted({*_own(self), *listing.public_names(_own(self)["_opdock_place"][1])})


def lookup(module: ModuleType | str, path: str, name: str, root: str = "opdock") -> Any:
    """What `name` is in TF's module of this path, which `module` stands for.

    Raises:
        AttributeError: opdock has nothing in its place; the message says what to do.
    """
    found = resolve.lookup(path, name)
    if found is resolve.MISSING:
        placed = absent.stand_in(resolve.plain(path), name)
        if placed is not None:
            return placed
        raise missing.attribute_error(module, path, name)
    removed.tell(f"{resolve.plain(path)}.{name}".lstrip("."))
    if isinstance(found, resolve.ModulePath):
        return importlib.import_module(f"{root}.{found.path}")
    return found
