"""Placement by cost: ops go where traces say that a step takes the least time.

`measure` runs a step on each device and makes a `CostModel` of the traces; `placed_by` places by
it what no device scope pins down. A model is a JSON file, and `OPDOCK_COST_MODEL=FILE` uses it in
any program, unchanged.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opdock_placer.measuring import measure
    from opdock_placer.model import CostModel, Work
    from opdock_placer.placement import Placement, pinned_to, placed_by

__all__ = ["CostModel", "Placement", "Work", "measure", "pinned_to", "placed_by"]

# Found when they are used: programs that load the plugin need none of them.
_HOMES = {
    "CostModel": "model", "Placement": "placement", "Work": "model", "measure": "measuring",
    "pinned_to": "placement", "placed_by": "placement",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """A name of this module, imported now."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
