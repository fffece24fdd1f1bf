"""Versions: opdock's own, and the TensorFlow version whose behaviour it follows."""

from __future__ import annotations

from typing import Final

VERSION: Final = "1.15.0"
GIT_VERSION: Final = "opdock-0.2.0"
COMPILER_VERSION: Final = ""
CXX11_ABI_FLAG: Final = 1
MONOLITHIC_BUILD: Final = 0
GRAPH_DEF_VERSION: Final = 134
GRAPH_DEF_VERSION_MIN_CONSUMER: Final = 0
GRAPH_DEF_VERSION_MIN_PRODUCER: Final = 0
