"""Which devices this build of PyTorch can use: accelerators, then the CPU."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

from opdock.plugin import DeviceAttributes, Probe


def probe() -> Probe:
    """Every device; `OPDOCK_TORCH_CPUS` says how often the CPU counts (1 if unset)."""
    if importlib.util.find_spec("torch") is None:
        return Probe(reason="PyTorch is not installed")
    text = os.environ.get("OPDOCK_TORCH_CPUS", "1")
    if not text.isdecimal():
        return Probe(reason=f"OPDOCK_TORCH_CPUS takes a number, got {text!r}", installable=False)
    import torch

    # ROCm's devices are called cuda as well.
    modules = {name: getattr(torch, name, None) for name in ("cuda", "xpu", "mps")}
    found = [
        (f"{name}:{i}", "gpu", _facts(module, i))
        for name, module in modules.items() if module is not None and module.is_available()
        for i in range(module.device_count())
    ] + [("cpu", "cpu", {})] * int(text)  # fmt: skip
    devices = [
        DeviceAttributes(
            index=i, description=f"{name} of PyTorch {torch.__version__}", kind=kind,
            features=frozenset({f"torch:{name}"}), **facts,
        )
        for i, (name, kind, facts) in enumerate(found)
    ]  # fmt: skip
    return Probe(devices=tuple(devices), reason="" if devices else "there is no accelerator")


def _facts(module: Any, index: int) -> dict[str, Any]:
    if not hasattr(module, "get_device_properties"):
        return {}
    known = module.get_device_properties(index)
    facts = {"memory_bytes": int(known.total_memory)}
    if not hasattr(known, "pci_bus_id"):
        return facts
    place = f"{known.pci_domain_id:04x}:{known.pci_bus_id:02x}:{known.pci_device_id:02x}.0"
    return facts | {"physical_id": place}
