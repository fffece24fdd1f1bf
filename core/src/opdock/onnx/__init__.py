"""Frozen graphs as ONNX models, and ONNX models as graphs, for the ops that both have.

`exporting.py` and `importing.py` go through nodes in order; what becomes of an op type is a rule,
one function in the files `to_*.py` and `from_*.py`. A node without a rule, or one that its rule
declines, is told with all others of its kind before anything is written.
"""

from __future__ import annotations

from opdock.onnx.exporting import to_onnx
from opdock.onnx.importing import from_onnx
from opdock.onnx.library import read_model, write_model

__all__ = ["from_onnx", "read_model", "to_onnx", "write_model"]
