"""What opdock loads where the package is installed: the pass, if the environment names a model.

Without one there is no pass, and nothing else of the package is imported.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from opdock.plugin import GraphPass, GraphView, hookimpl

if TYPE_CHECKING:
    from opdock_placer.placement import Placement


@functools.cache
def _placement(file: str) -> Placement:
    # Read when a program is compiled: its caller is told of a file that is none.
    from opdock_placer.model import CostModel
    from opdock_placer.placement import Placement

    return Placement(CostModel.load(file))


@hookimpl
def opdock_graph_passes() -> Iterator[GraphPass]:
    """The pass that plans by the model of the environment, if it names one."""
    file = os.environ.get("OPDOCK_COST_MODEL", "")
    if not file:
        return

    def plan(graph: GraphView) -> None:
        _placement(file).plan(graph)

    yield GraphPass(name="placer_plan", stage="before_place", run=plan)
