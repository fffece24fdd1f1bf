"""What a backend that compiles its own kernels takes from core; also as `opdock.plugin.codegen`.

The renderer of scalar expressions, the lines of ops, and core's own kernels over a backend's
functions.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from opdock.kernels.expr.cluster import Reduce, evaluate_cluster
    from opdock.kernels.expr.evaluation import evaluator as evaluate
    from opdock.kernels.expr.lowering import CAST, INPUT, NUMBER, Line, lower
    from opdock.kernels.expr.render_c import (
        ERRORS,
        RENDERED,
        Dialect,
        Rendered,
        can_render,
        elementwise_source,
        helpers,
        render,
    )
    from opdock.kernels.expr.render_c_ops import (
        elementwise_claims,
        input_names,
        node_line,
        update_line,
        update_of,
        updates,
    )
    from opdock.kernels.expr.tree import parse
    from opdock.kernels.expr.turns import (
        CLEARED,
        READ,
        WRITTEN,
        Item,
        MakeTurns,
        Part,
        Product,
        Rows,
        Turns,
        View,
    )
    from opdock.kernels.portable import family as portable_family
    from opdock.kernels.portable.special import SERIES
    from opdock.kernels.portable.training import update_on
    from opdock.syntax import tree_of

__all__ = [
    "CAST", "CLEARED", "ERRORS", "INPUT", "NUMBER", "READ", "RENDERED", "SERIES", "WRITTEN",
    "Dialect", "Item", "Line", "MakeTurns", "Part", "Product", "Reduce", "Rendered", "Rows",
    "Turns", "View", "can_render", "elementwise_claims", "elementwise_source", "evaluate",
    "evaluate_cluster",
    "helpers", "input_names", "lower", "node_line", "parse", "portable_family", "render", "tree_of",
    "update_line", "update_of", "update_on", "updates",
]  # fmt: skip

_HOMES: Final = {
    "opdock.kernels.expr.cluster": "Reduce evaluate_cluster",
    "opdock.kernels.expr.evaluation": "evaluator",
    "opdock.kernels.expr.lowering": "CAST INPUT NUMBER Line lower",
    "opdock.kernels.expr.render_c": (
        "ERRORS RENDERED Dialect Rendered can_render elementwise_source helpers render"
    ),
    "opdock.kernels.expr.render_c_ops": (
        "elementwise_claims input_names node_line update_line update_of updates"
    ),
    "opdock.kernels.expr.tree": "parse",
    "opdock.kernels.expr.turns": "CLEARED READ WRITTEN Item MakeTurns Part Product Rows Turns View",
    "opdock.kernels.portable": "family",
    "opdock.kernels.portable.special": "SERIES",
    "opdock.kernels.portable.training": "update_on",
    "opdock.syntax": "tree_of",
}
"""Imported when a name is asked for: nobody needs all of it, and a first step would wait for it."""
_HOME: Final = {name: module for module, names in _HOMES.items() for name in names.split()}
_RENAMED: Final = {"evaluate": "evaluator", "portable_family": "family"}


def __getattr__(name: str) -> Any:
    own = _RENAMED.get(name, name)
    if name not in __all__ or own not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(_HOME[own]), own)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
