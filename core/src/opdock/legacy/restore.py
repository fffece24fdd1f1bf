"""Puts the names of `names.py` back: lazily, when they are used, in what is imported or will be."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import gc
import importlib
import sys
import warnings
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, TextIO, cast

from opdock.legacy import arrays, functions, names, protobuf, uses
from opdock.mapping import after_import

_done = False

_own: dict[str, Callable[[str], Any] | None] = {}
"""By the names of modules that are given others: the `__getattr__` that each had by itself."""


def put_back(tell: TextIO | None = None) -> None:
    """Puts removed names back in this process; a second call changes nothing.

    Args:
        tell: where to say at the process's end which were used, and where; None says nothing.
    """
    global _done
    if _done:
        return
    _done = True
    for module, table in names.NAMES.items():
        after_import.do(module, functools.partial(_names, table=table))
    for place, methods in names.METHODS.items():
        module, _, class_name = place.partition(":")
        after_import.do(module, functools.partial(_methods, class_name=class_name, table=methods))
    for parent in {name.rpartition(".")[0] for name in names.MODULES} - {""}:
        after_import.do(parent, _package)
    after_import.do("numpy", arrays.allow)
    after_import.do("opdock.io.protos", arrays.store_booleans)
    after_import.do("yaml", _yaml)
    after_import.do("h5py", _h5py)
    sys.meta_path.append(cast(Any, _Modules()))
    sys.meta_path.insert(0, cast(Any, protobuf.GeneratedModules()))
    if tell is not None:
        atexit.register(uses.tell, tell)


def has_itself(module: ModuleType, name: str) -> bool:
    """Whether a module has a name, what is put back left aside."""
    if name in vars(module):
        return True
    find = _own.get(module.__name__, vars(module).get("__getattr__"))
    if find is None:
        return False
    try:
        find(name)
    except AttributeError:
        return False
    return True


def put_back_for_keras() -> None:
    """Puts back what tf_keras leans on itself, and what layers of TensorFlow 1.15 had; no more."""
    for module, used in names.KERAS_NAMES.items():
        table = {name: names.NAMES[module][name] for name in used}
        after_import.do(module, functools.partial(_names, table=table))
    for place, methods in names.KERAS_METHODS.items():
        module, _, class_name = place.partition(":")
        after_import.do(module, functools.partial(_methods, class_name=class_name, table=methods))
    for place, attributes in names.KERAS_ATTRIBUTES.items():
        module, _, owner = place.partition(":")
        after_import.do(module, functools.partial(_attributes, class_name=owner, table=attributes))


def _names(module: ModuleType, table: dict[str, str]) -> None:
    """Gives a module a `__getattr__` that knows what it has lost."""
    before: Callable[[str], Any] | None = module.__dict__.get("__getattr__")
    _own[module.__name__] = before

    def find(name: str) -> Any:
        if before is not None:
            # A library may warn of a name that it has lost, which is told at the end here.
            with warnings.catch_warnings() if name in table else contextlib.nullcontext():
                if name in table:
                    warnings.simplefilter("ignore")
                try:
                    return before(name)
                except AttributeError:
                    pass
        place = table.get(name) or _of_numpy(module, name)
        found = _MISSING if place is None else _at(place)
        if found is _MISSING:
            if before is not None:
                return before(name)  # its own error again
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}", name=name)
        uses.record(f"{module.__name__}.{name}", _readable(place))
        return found

    module.__dict__["__getattr__"] = find


_MISSING = object()


def _of_numpy(module: ModuleType, name: str) -> str | None:
    """SciPy once had NumPy's functions too."""
    if module.__name__ != "scipy" or name.startswith("_"):
        return None
    import numpy as np

    if name in ("rand", "randn"):
        return f"numpy.random:{name}"
    return f"numpy:{name}" if hasattr(np, name) else None


def _at(place: str) -> Any:
    """What stands at "module:name.name", or the module; _MISSING if it is not installed."""
    module, _, path = place.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError:
        return _MISSING
    for part in path.split(".") if path else ():
        found = getattr(found, part, _MISSING)
    return found


def _readable(place: str | None) -> str:
    """A replacement's place as the line at the end names it."""
    if place is None or place.startswith("opdock.legacy"):
        return "opdock's own"
    return place.replace("builtins:", "").replace(":", ".")


def _methods(module: ModuleType, class_name: str, table: dict[str, str]) -> None:
    """Gives a class the methods that it has lost."""
    owner = getattr(module, class_name, None)
    if owner is None:
        return
    for name, place in table.items():
        if not hasattr(owner, name):
            _add(owner, name, _method(f"{owner.__name__}.{name}", place))


class _Renamed:
    """An attribute that has another name today; who sets it in an object has one of its own."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else getattr(instance, self._name)


def _attributes(module: ModuleType, class_name: str, table: dict[str, str]) -> None:
    """Gives the objects of a class attributes by the names that they had."""
    owner = getattr(module, class_name)
    for name, today in table.items():
        if not hasattr(owner, name):
            setattr(owner, name, _Renamed(today))


def _add(owner: type, name: str, method: Callable[..., Any]) -> None:
    """Gives a class a method, also one that is written in C, which Python itself refuses to.

    `array.tostring()` stands in most programs that write records, and NumPy has dropped it. The
    dictionary behind the class's read-only view takes the name; the type is then told to forget
    what it has cached. An interpreter that hides the dictionary leaves the class as it is.
    """
    try:
        setattr(owner, name, method)
    except TypeError:
        for found in gc.get_referents(owner.__dict__):
            if isinstance(found, dict):
                found[name] = method
                ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))
                return


def _method(name: str, place: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        uses.record(name, _readable(place))
        if ":" in place:
            return _at(place)(self, *args, **kwargs)
        return getattr(self, place)(*args, **kwargs)

    method.__name__ = name.rpartition(".")[2]
    return method


def _package(module: ModuleType) -> None:
    """Lets finders be asked for modules in what was a package and is a module by now."""
    module.__dict__.setdefault("__path__", [])


def _yaml(module: ModuleType) -> None:
    """Lets `yaml.load(stream)` go without a loader."""
    before = functions.yaml_loader(module.load)

    @functools.wraps(before)
    def load(stream: Any, Loader: Any = None) -> Any:
        if Loader is None:
            uses.record("yaml.load without a loader", "yaml.safe_load")
        return before(stream, Loader)

    module.__dict__["load"] = load


def _h5py(module: ModuleType) -> None:
    """Lets texts in attributes be decoded, as code does that was written when they were bytes."""
    attributes = module.AttributeManager
    before = attributes.__getitem__

    @functools.wraps(before)
    def get(self: Any, name: Any) -> Any:
        return functions.decodable(before(self, name))

    attributes.__getitem__ = get


class _Modules:
    """Finder and loader of modules that are gone; asked when no other finds one."""

    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        """A spec where something that is installed stands for the module."""
        place = names.MODULES.get(name)
        if place is None or _at(place) is _MISSING:
            return None
        return ModuleSpec(name, cast(Any, self), origin=place)

    def create_module(self, spec: ModuleSpec) -> None:
        """The module exists under another name."""

    def exec_module(self, module: ModuleType) -> None:
        """Puts the other module in its place."""
        place = names.MODULES[module.__name__]
        uses.record(f"module {module.__name__}", _readable(place))
        sys.modules[module.__name__] = importlib.import_module(place)
