"""`opdock convert`: between GraphDefs, SavedModels and ONNX models."""

from __future__ import annotations

from opdock.cli._tool import tool

command = tool(
    "convert",
    "convert",
    help="Convert between GraphDefs, SavedModels and ONNX models.\n\nThe kind of each is that of "
    "its name: .onnx, .pb and .pbtxt, or a directory. Inputs and outputs are those of a "
    "SavedModel's signature and of an ONNX model; of a GraphDef they have to be named.",
    example="opdock convert --input=graph.pb --output=graph.onnx --inputs=x --outputs=y",
    keys={
        "input": "what was read",
        "output": "what was written",
        "inputs": "tensors by the names that users know them by",
        "outputs": "the same of results",
        "nodes": "how many nodes the graph has",
    },
)
