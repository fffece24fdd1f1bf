"""`opdock strip-unused`: cuts a graph down to what leads from inputs to outputs."""

from __future__ import annotations

from opdock.cli._tool import tool

command = tool("strip-unused", "strip_unused_lib")
