"""The modules that programs see as TensorFlow's: each finds its names when they are used."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any, Final

from opdock import version
from opdock.mapping import absent, libraries, missing, names, removed, resolve, tables

# What the import system and pickling ask of every module, and no program of TF's.
_ASKED_OF_ALL: Final = frozenset({"__all__", "__version__", "__git_version__"})


class Mapped(ModuleType):
    """A module of TensorFlow's whose names are opdock's.

    `root` is the name under which the tree was imported ("tensorflow" or "opdock"), and `path` the
    module's place below it. A name is looked up once; after that it is a plain attribute.
    """

    def __init__(self, name: str, root: str, path: str) -> None:
        super().__init__(name, doc=f"TensorFlow 1.15's `{name}`, on opdock.")
        self.__dict__["_opdock_place"] = (root, path)
        self.__dict__["_opdock_replaced"] = {}
        self.__path__: list[str] = []
        self.__file__ = importlib.import_module("opdock").__file__

    def __getattr__(self, name: str) -> Any:
        root, path = self.__dict__["_opdock_place"]
        if name.startswith("__") and name not in _ASKED_OF_ALL:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if name == "__all__":
            return public_names(path)
        if name in ("__version__", "__git_version__"):
            return version.VERSION if name == "__version__" else version.GIT_VERSION
        found = lookup(self, path, name, root)
        if name not in tables.LIVE:
            self.__dict__[name] = found
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        """Puts something in the place of a name, for opdock's own module that has it as well."""
        self.__dict__[name] = value
        if name.startswith("__") or isinstance(value, ModuleType):
            return
        home = resolve.home(resolve.plain(self.__dict__["_opdock_place"][1]), name)
        if home is not None and hasattr(*home):
            self.__dict__["_opdock_replaced"].setdefault(name, (*home, getattr(*home)))
            setattr(*home, value)

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        replaced = self.__dict__["_opdock_replaced"].pop(name, None)
        if replaced is not None:
            setattr(*replaced)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *public_names(self.__dict__["_opdock_place"][1])})


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


def public_names(path: str) -> list[str]:
    """The public names of TF's module that opdock has; all that a star import gives."""
    path = resolve.plain(path)
    known = names.table()
    if path.startswith("compat.v2"):
        prefix = path.removeprefix("compat.v2").lstrip(".")
        below = [n for n in known.v2 if n.rpartition(".")[0] == prefix]
        found = [n.rpartition(".")[2] for n in below]
    elif known.public.get(path):
        found = list(known.public[path])
    else:
        found = _internal_names(path)
    return sorted(n for n in found if resolve.lookup(path, n) is not resolve.MISSING)


def _internal_names(path: str) -> list[str]:
    record = names.table().internal(path)
    found = {*libraries.public_names(path)} if path.startswith("contrib.") else set()
    found |= {*record.exports, *record.aliases, *record.imports, *tables.NAMES.get(path, {})}
    for star in record.stars:
        found.update(_internal_names(star))
    for source in resolve.sources(path):
        module = importlib.import_module(source)
        listed = getattr(module, "__all__", None) or dir(module)
        found.update(n for n in listed if not n.startswith("_"))
    return sorted(n for n in found if not n.startswith("_"))
