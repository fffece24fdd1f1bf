"""Portable kernel of assertions, on values in host memory: the same beside every device."""

from __future__ import annotations

from typing import Any

from opdock.kernels.array_api import invalid
from opdock.kernels.portable import portable
from opdock.kernels.select.signature import NodeSig
from opdock.kernels.select.summarize import summarize


@portable("Assert", host_inputs=("condition", "data"), keeps=())
def check(xp: Any, sig: NodeSig) -> Any:
    """Fails with the data if the condition does not hold."""
    limit = sig.attrs["summarize"]

    def run(condition: Any, *data: Any) -> None:
        if not bool(condition):
            raise invalid("assertion failed: " + " ".join(f"[{summarize(d, limit)}]" for d in data))

    return run
