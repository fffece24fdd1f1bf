"""The context of a plain kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opdock.kernels.select.cells import Resources
from opdock.kernels.select.signature import NodeSig

__all__ = ["KernelContext"]


class KernelContext:
    """What a plain kernel `fn(ctx, *inputs)` gets first; made once, when the program is prepared.

    Attributes:
        sig: the node.
        attrs: its attributes.
        device: the open device on which the kernel runs.
        resources: what the session keeps between steps.
    """

    __slots__ = ("attrs", "device", "resources", "sig")

    def __init__(self, sig: NodeSig, resources: Resources) -> None:
        self.sig = sig
        self.attrs: Mapping[str, Any] = sig.attrs
        self.device = sig.device
        self.resources = resources
