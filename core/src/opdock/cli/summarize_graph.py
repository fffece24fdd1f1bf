"""`opdock summarize-graph`: inputs, outputs, parameters and ops of a GraphDef."""

from __future__ import annotations

from opdock.cli._tool import tool

command = tool(
    "summarize-graph",
    "summarize_graph",
    help="Say what a GraphDef holds: inputs, outputs, parameters, ops.",
    example="opdock summarize-graph --in_graph=graph.pb",
    keys={
        "inputs": "name, type and shape of what can be fed",
        "variables": "the same of variables",
        "outputs": "name and op of what nothing uses",
        "const_parameters": "how many numbers constants hold",
        "variable_parameters": "how many variables hold",
        "control_edges": "how many there are",
        "devices": "how many nodes each device was given",
        "ops": "how often each op is used",
    },
)
