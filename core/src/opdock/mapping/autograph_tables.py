"""Where names of TensorFlow's internal modules of AutoGraph are in opdock; see `tables`."""

from __future__ import annotations

from typing import Final

_REWRITING: Final = "opdock.ops.rewriting"


def _in(*modules: str) -> tuple[str, ...]:
    return tuple(f"{_REWRITING}.{name}" for name in modules)


_LISTS: Final = _in("lists")
_VALUES: Final = _in("undefined")

# Internal module -> opdock's modules.
AUTOGRAPH_SOURCES: Final[dict[str, tuple[str, ...]]] = {
    "python.autograph.core.ag_ctx": _in("status"),
    "python.autograph.core.converter": _in("status"),
    "python.autograph.core.function_wrappers": _in("scope"),
    "python.autograph.impl.api": _in("calls"),
    "python.autograph.lang.directives": _in("directives"),
    "python.autograph.lang.special_functions": _LISTS,
    "python.autograph.operators": (*_LISTS, *_VALUES),
    "python.autograph.operators.data_structures": _LISTS,
    "python.autograph.operators.exceptions": _in("branches"),
    "python.autograph.operators.logical": _in("branches"),
    "python.autograph.operators.py_builtins": _in("overloads"),
    "python.autograph.operators.slices": _LISTS,
    "python.autograph.operators.special_values": _VALUES,
    "python.autograph.operators.symbols": _VALUES,
    "python.autograph.utils.ag_logging": _in("verbosity"),
}

# Internal module -> name -> "module:name" of opdock.
AUTOGRAPH_NAMES: Final[dict[str, dict[str, str]]] = {
    "python.autograph.core.converter": {"STANDARD_OPTIONS": f"{_REWRITING}.status:STANDARD"},
    "python.autograph.operators.py_builtins": {
        "eval_in_original_context": f"{_REWRITING}.scope:eval_in_caller",
        "super_in_original_context": f"{_REWRITING}.scope:super_in_caller",
    },
}
