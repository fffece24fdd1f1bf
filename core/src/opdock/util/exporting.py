"""What TF's `tf_export`, `all_util` and `module_wrapper` do with the names of symbols.

Libraries export their own functions and classes under TensorFlow's names with these. What they note
is kept on the symbol, where documentation tools look for it; opdock's table of names is its own.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from opdock._api import NAMES, SUBMODULES
from opdock.graph.nodes.registry import OpSpec, find
from opdock.util.decorators import make_decorator, unwrap
from opdock.util.inspecting import getargspec

__all__ = [
    "API_ATTRS",
    "API_ATTRS_V1",
    "ESTIMATOR_API_NAME",
    "KERAS_API_NAME",
    "TENSORFLOW_API_NAME",
    "InvalidSymbolNameError",
    "SymbolAlreadyExposedError",
    "TFModuleWrapper",
    "api_export",
    "do_not_doc_inheritable",
    "do_not_generate_docs",
    "estimator_export",
    "get_canonical_name",
    "get_canonical_name_for_symbol",
    "get_symbol_from_name",
    "get_v1_constants",
    "get_v1_names",
    "get_v2_constants",
    "get_v2_names",
    "keras_export",
    "kwarg_only",
    "make_all",
    "remove_undocumented",
    "tf_export",
]  # fmt: skip

_T = TypeVar("_T")
TENSORFLOW_API_NAME: Final = "tensorflow"
ESTIMATOR_API_NAME: Final = "estimator"
KERAS_API_NAME: Final = "keras"


_symbols: dict[str, Any] = {}
_RAW: Final = "raw_ops."


class _Attributes(NamedTuple):
    """The attributes in which a symbol has its names, and a module its constants."""

    names: str
    constants: str


def _attributes(ending: str) -> dict[str, _Attributes]:
    prefixes = {TENSORFLOW_API_NAME: "tf", ESTIMATOR_API_NAME: "estimator", KERAS_API_NAME: "keras"}
    return {
        api: _Attributes(f"_{prefix}_api_names{ending}", f"_{prefix}_api_constants{ending}")
        for api, prefix in prefixes.items()
    }


API_ATTRS: Final = _attributes("")
API_ATTRS_V1: Final = _attributes("_v1")


class SymbolAlreadyExposedError(Exception):
    """A symbol that has names was given names."""


class InvalidSymbolNameError(Exception):
    """A name is outside of the package that the exporting library has."""


class api_export:
    """A decorator that notes under which names a symbol is exported.

    Args:
        *args: the names, with dots; the first is the canonical one.
        **kwargs: `v1`, the names in version 1, by default the same; `overrides`, symbols whose
            names these become; `api_name`, whose package it is ("tensorflow", "estimator" or
            "keras"); `allow_multiple_exports`, whether a symbol may have names already.

    Raises:
        InvalidSymbolNameError: a name is another library's.
        SymbolAlreadyExposedError: when a symbol is decorated that has names.
    """

    def __init__(self, *args: str, **kwargs: Any) -> None:
        if "v2" in kwargs:
            raise ValueError(
                'You passed a "v2" argument to tf_export. This is not what you want. Pass v2 '
                "names directly as positional arguments instead."
            )
        self._names = args
        self._names_v1 = kwargs.get("v1", args)
        self._api_name = kwargs.get("api_name", TENSORFLOW_API_NAME)
        self._overrides = kwargs.get("overrides", ())
        self._many = kwargs.get("allow_multiple_exports", False)
        self._check_names()

    def _check_names(self) -> None:
        given = {*self._names, *self._names_v1}
        if self._api_name != TENSORFLOW_API_NAME:
            if not all(name.startswith(self._api_name) for name in given):
                raise InvalidSymbolNameError(
                    "Can only export symbols under package name of component. e.g. "
                    "tensorflow_estimator must export all symbols under tf.estimator"
                )
        elif any(name.startswith(ESTIMATOR_API_NAME) for name in given):
            raise InvalidSymbolNameError(
                f"@tf_export is not allowed to export symbols under {ESTIMATOR_API_NAME}.*"
            )

    def __call__(self, func: _T) -> _T:
        """Notes the names on what is inside of all decorators, and returns what it was given."""
        noted = (
            (API_ATTRS[self._api_name].names, self._names),
            (API_ATTRS_V1[self._api_name].names, self._names_v1),
        )
        for overridden in self._overrides:
            for attribute, _ in noted:
                vars(unwrap(overridden)[1]).pop(attribute, None)
        target = unwrap(func)[1]
        _symbols.update(dict.fromkeys((*self._names, *self._names_v1), func))
        if isinstance(target, property):  # which holds nothing
            return func
        for attribute, names in noted:
            if attribute in vars(target) and not self._many:
                raise SymbolAlreadyExposedError(
                    f"Symbol {target.__name__} is already exposed as {getattr(target, attribute)}."
                )
            setattr(target, attribute, names)
        return func

    def export_constant(self, module_name: str, name: str) -> None:
        """Notes in a module under which names one of its constants is exported."""
        module = sys.modules[module_name]
        for attributes, names in (
            (API_ATTRS[self._api_name], self._names),
            (API_ATTRS_V1[self._api_name], self._names_v1),
        ):
            vars(module).setdefault(attributes.constants, []).append((names, name))


tf_export = functools.partial(api_export, api_name=TENSORFLOW_API_NAME)
estimator_export = functools.partial(api_export, api_name=ESTIMATOR_API_NAME)
keras_export = functools.partial(api_export, api_name=KERAS_API_NAME)


def _noted(holder: Any, attributes: Iterable[str]) -> list[Any]:
    own = getattr(holder, "__dict__", {})
    return [entry for attribute in attributes for entry in own.get(attribute, ())]


def get_v1_names(symbol: Any) -> list[str]:
    """The names of a symbol in version 1, of all packages."""
    return _noted(symbol, (a.names for a in API_ATTRS_V1.values()))


def get_v2_names(symbol: Any) -> list[str]:
    """The names of a symbol in version 2, of all packages."""
    return _noted(symbol, (a.names for a in API_ATTRS.values()))


def get_v1_constants(module: Any) -> list[tuple[Sequence[str], str]]:
    """The constants that a module exports in version 1: pairs of names and the constant's own."""
    return _noted(module, (a.constants for a in API_ATTRS_V1.values()))


def get_v2_constants(module: Any) -> list[tuple[Sequence[str], str]]:
    """The constants that a module exports in version 2: pairs of names and the constant's own."""
    return _noted(module, (a.constants for a in API_ATTRS.values()))


def get_canonical_name(api_names: Sequence[str], deprecated_api_names: Iterable[str]) -> str | None:
    """The first name that is not deprecated, or the first one."""
    given = [*api_names]
    return next((name for name in given if name not in {*deprecated_api_names}), None) or next(
        iter(given), None
    )


def get_canonical_name_for_symbol(
    symbol: Any, api_name: str = TENSORFLOW_API_NAME, add_prefix_to_v1_names: bool = False
) -> str | None:
    """The name under which a symbol is known; None if it has none.

    Args:
        symbol: a function or class.
        api_name: the package.
        add_prefix_to_v1_names: whether a name that version 1 alone has begins with "compat.v1.".
    """
    noted = getattr(unwrap(symbol)[1], "__dict__", {})
    if API_ATTRS[api_name].names not in noted:
        return _own_name(symbol) if api_name == TENSORFLOW_API_NAME else None
    old = noted.get("_tf_deprecated_api_names", ())
    found = get_canonical_name(noted[API_ATTRS[api_name].names], old)
    if found:
        return found
    found = get_canonical_name(noted[API_ATTRS_V1[api_name].names], old)
    return f"compat.v1.{found}" if found and add_prefix_to_v1_names else found


def get_symbol_from_name(name: str) -> Any:
    """What a library exported under a name, or opdock has; or None."""
    return _symbols.get(name) or _own_symbol(name)


# Where functions of tensors are, besides the top.
_OF_TENSORS: Final = (
    "audio", "bitwise", "debugging", "image", "io", "linalg", "losses", "math", "nn",
    "quantization", "random", "sets", "signal", "sparse", "strings",
)  # fmt: skip


@functools.cache
def _own_names() -> dict[Any, str]:
    """Opdock's public functions -> their names."""
    found = {
        function: f"{part}.{name}"
        for part in _OF_TENSORS
        for name, function in vars(importlib.import_module(SUBMODULES[part])).items()
        if inspect.isfunction(function) and not name.startswith("_")
    }
    for name, (module, attribute) in NAMES.items():
        if module in sys.modules:
            function = getattr(sys.modules[module], attribute, None)
            if inspect.isfunction(function):
                found.setdefault(function, name)
    return found


def _own_name(symbol: Any) -> str | None:
    """The public name of a function or op of opdock's; None if it has none."""
    if isinstance(symbol, OpSpec):
        return f"{_RAW}{symbol.name}"
    return _own_names().get(symbol) if inspect.isfunction(symbol) else None


def _own_symbol(name: str) -> Any:
    if name.startswith(_RAW):
        return find(name.removeprefix(_RAW))
    part, _, rest = name.rpartition(".")
    if part:
        within = part in _OF_TENSORS and importlib.import_module(SUBMODULES[part])
        return getattr(within, rest, None) if within else None
    module, attribute = NAMES.get(name, (None, ""))
    return None if module is None else getattr(importlib.import_module(module), attribute, None)


def kwarg_only(f: Any) -> Any:
    """A decorator: the function takes no argument by position.

    Raises:
        TypeError: when it is called with one.
    """
    spec = getargspec(f)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if args:
            raise TypeError(
                f"{f.__name__} only takes keyword args (possible keys: {spec.args}). "
                "Please pass these args as kwargs instead."
            )
        return f(**kwargs)

    return make_decorator(f, wrapper, decorator_argspec=spec)


def do_not_generate_docs(target: _T) -> _T:
    """Leaves its function alone."""
    return target


do_not_doc_inheritable = doc_in_current_and_subclasses = do_not_generate_docs
for_subclass_implementers = do_not_generate_docs


class TFModuleWrapper:
    """Is no wrapper: the module is left alone, and tells of deprecated names by itself."""

    def __new__(cls, wrapped: Any, *_: Any, **__: Any) -> Any:
        """The module itself."""
        return wrapped


def remove_undocumented(module_name: str, allowed_exception_list: Any = None, *unused: Any) -> None:
    """Does nothing: what a module does not document is no one's harm."""


def make_all(module_name: str, doc_string_modules: Any = None) -> list[str]:
    """The public names of a module."""
    return sorted(n for n in dir(sys.modules[module_name]) if not n.startswith("_"))
