"""`opdock freeze-graph`: makes one GraphDef of a graph and a checkpoint."""

from __future__ import annotations

from opdock.cli._tool import tool

command = tool("freeze-graph", "freeze_graph")
