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
    refused: dict[SegmentNode, str] = {}

    def call(node: SegmentNode, inputs: list[Any]) -> Any:
        try:
            if node.call is None:
                raise NotImplementedError("control flow")
            return node.call(*inputs)
        except Exception as e:
            refused[node] = f"{type(e).__name__}: {e}".partition("\n")[0]
            raise

    empty = segment.device.empty
    inputs = [empty(v.shape, v.dtype) for v in segment.inputs]
    state = [empty(v.shape, v.dtype) if v.read else None for v in segment.variables]
    fake: dict[str, Any] = {"tracing_mode": "fake", "_allow_non_fake_inputs": True}
    try:
        trace = make_fx(lambda x, s: segment.run(x, s, (), call), **fake)
        run = torch.compile(trace(inputs, state))
        run(inputs, state)
    except Exception as e:
        return Refusal(f"{type(e).__name__}: {e}".partition("\n")[0], refused)
    return lambda inputs, state, places: run(list(inputs), list(state))
