"""`opdock benchmark-model`: how long a graph takes, and which ops take it."""

from __future__ import annotations

from opdock.cli._tool import tool

command = tool("benchmark-model", "benchmark_model")
