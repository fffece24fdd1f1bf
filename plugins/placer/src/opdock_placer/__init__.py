"""Placement by cost: ops go where traces say that a step takes the least time.

`measure` runs a step on each device and makes a `CostModel` of the traces; `placed_by` places by
it what no device scope pins down. A model is a JSON file, and `OPDOCK_COST_MODEL=FILE` uses it in
any program, unchanged.
"""

from opdock_placer.measure import measure
from opdock_placer.model import CostModel, Work
from opdock_placer.plugin import Placement, pinned_to, placed_by

__all__ = ["CostModel", "Placement", "Work", "measure", "pinned_to", "placed_by"]
