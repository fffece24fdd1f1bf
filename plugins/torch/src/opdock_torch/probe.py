"""Which devices this build of PyTorch can use: accelerators, then the CPU."""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys
from pathlib import Path
from typing import Any

from opdock.plugin import DeviceAttributes, Probe


def probe() -> Probe:
    """Every device; `OPDOCK_TORCH_CPUS` says how often the CPU counts (1 if unset)."""
    found = importlib.util.find_spec("torch")
    if found is None:
        return Probe(reason="PyTorch is not installed")
    text = os.environ.get("OPDOCK_TORCH_CPUS", "1")
    if not text.isdecimal():
        return Probe(reason=f"OPDOCK_TORCH_CPUS takes a number, got {text!r}", installable=False)
    version = _for_the_processor_alone(found.origin)
    places: list[tuple[str, str, dict[str, Any]]] = []
    if not version:
        import torch

        version, places = torch.__version__, _accelerators(torch)
    places += [("cpu", "cpu", {})] * int(text)
    devices = [
        DeviceAttributes(
            index=i, description=f"{name} of PyTorch {version}", kind=kind,
            features=frozenset({f"torch:{name}"}), **facts,
        )
        for i, (name, kind, facts) in enumerate(places)
    ]  # fmt: skip
    return Probe(devices=tuple(devices), reason="" if devices else "there is no accelerator")


def _for_the_processor_alone(package: str | None) -> str:
    """The version of a build that can use no accelerator; empty for others and where none says.

    The library takes a second to import, which a session that computes elsewhere need not wait
    for; the build says in a small file of its own what it was made for. macOS has MPS in any build.
    Older builds know of no `xpu`; one that says nothing of CUDA is not understood here.
    """
    if sys.platform == "darwin" or package is None:
        return ""
    try:
        told = runpy.run_path(str(Path(package).with_name("version.py")))
    except (OSError, SyntaxError, ImportError, NameError):
        return ""
    if "cuda" not in told or any(told.get(name) is not None for name in ("cuda", "hip", "xpu")):
        return ""
    return str(told.get("__version__", ""))


def _accelerators(torch: Any) -> list[tuple[str, str, dict[str, Any]]]:
    """Each with its name, kind and facts; ROCm's are called cuda as well."""
    modules = {name: getattr(torch, name, None) for name in ("cuda", "xpu", "mps")}
    return [
        (f"{name}:{i}", "gpu", _facts(module, i))
        for name, module in modules.items() if module is not None and module.is_available()
        for i in range(module.device_count())
    ]  # fmt: skip


def _facts(module: Any, index: int) -> dict[str, Any]:
    if not hasattr(module, "get_device_properties"):
        return {}
    known = module.get_device_properties(index)
    facts = {"memory_bytes": int(known.total_memory)}
    if not hasattr(known, "pci_bus_id"):
        return facts
    place = f"{known.pci_domain_id:04x}:{known.pci_bus_id:02x}:{known.pci_device_id:02x}.0"
    return facts | {"physical_id": place}
