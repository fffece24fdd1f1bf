"""Whole segments through `torch.compile`: their kernels are traced into one graph of PyTorch.

Only where `OPDOCK_TORCH_COMPILE=1` asks for it: Inductor takes seconds for a program that runs op
by op at once, and pays for itself over thousands of steps.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from opdock.plugin import Executable, Refusal, Segment, SegmentNode


def compile_segment(segment: Segment) -> Executable | Refusal:
    """A compiled graph, where all shapes are known and nothing is random."""
    if os.environ.get("OPDOCK_TORCH_COMPILE", "") in ("", "0"):
        return Refusal("OPDOCK_TORCH_COMPILE=1 would compile it")
    if not segment.is_static or segment.streams:
        return Refusal("shapes that come later, or random numbers")
    place = segment.device.place

    def example(value: Any) -> torch.Tensor:
        return torch.empty(value.shape, dtype=getattr(torch, value.dtype.name), device=place)

    refused: dict[SegmentNode, str] = {}

    def call(node: SegmentNode, inputs: list[Any]) -> Any:
        try:
            if node.call is None:
                raise NotImplementedError("control flow")
            return node.call(*inputs)
        except Exception as e:
            refused[node] = f"{type(e).__name__}: {e}".partition("\n")[0]
            raise

    reads = [i for i, v in enumerate(segment.variables) if v.read]

    def flat(*values: Any) -> Any:
        count = len(segment.inputs)
        state: list[Any] = [None] * len(segment.variables)
        for i, value in zip(reads, values[count:], strict=True):
            state[i] = value
        return segment.run(values[:count], state, (), call)

    args = [example(v) for v in (*segment.inputs, *(segment.variables[i] for i in reads))]
    try:
        graph = make_fx(flat, tracing_mode="fake", _allow_non_fake_inputs=True)(*args)
        run = torch.compile(graph)
        run(*args)
    except Exception as e:
        return Refusal(nodes=refused) if refused else Refusal(f"{type(e).__name__}: {e}"[:200])

    def execute(inputs: Any, state: Any, places: Any) -> Any:
        with torch.no_grad():
            return run(*inputs, *(state[i] for i in reads))

    return execute
