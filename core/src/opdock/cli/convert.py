"""`opdock convert`: between GraphDefs, SavedModels and ONNX models."""

from __future__ import annotations

from opdock.cli._tool import tool

command = tool(
    "convert",
    "convert",
    example="opdock convert --input=graph.pb --output=graph.onnx --inputs=x --outputs=y",
)
