"""Which devices this installation of JAX can use: accelerators, then the CPU."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from opdock.plugin import DeviceAttributes, Probe, announced, deterministic

_CPU: Final = SimpleNamespace(platform="cpu", device_kind="cpu", id=0, memory_stats=dict)
"""What JAX says of the only device that it has without plugins and settings."""
_TOLD: Final = ("JAX_PLATFORM", "JAX_NUM_", "JAX_MOCK_", "JAX_BACKEND_", "PJRT_", "TPU_")
"""How the variables begin by which it is told what devices there are."""


def probe() -> Probe:
    """Every device of this process; JAX makes several of a CPU when `jax_num_cpu_devices` says."""
    package = find_spec("jax")
    if package is None or package.origin is None:
        return Probe(reason="JAX is not installed")
    found, version = [_CPU], _for_the_processor_alone(package.origin)
    if not version:
        jax = ready()
        version = jax.__version__
        try:
            found = [*jax.local_devices()]
        except RuntimeError as e:  # JAX_PLATFORMS names what is not there
            return Probe(reason=f"JAX finds no device: {e}", installable=False)
        if all(device.platform != "cpu" for device in found):
            with contextlib.suppress(RuntimeError):  # JAX_PLATFORMS leaves it out
                found += jax.local_devices(backend="cpu")
    return Probe(devices=tuple(_facts(i, device, version) for i, device in enumerate(found)))


def ready() -> Any:
    """JAX, told how to compute before it makes its first device.

    XLA reads its flags once, and the number of a CPU's threads where it makes the device. A step
    waits for its results, so JAX is asked, if it has no device of the CPU yet, to compute there at
    once: its other way hands each program to a thread, which takes longer than a small one runs.
    """
    if deterministic():
        flags = os.environ.get("XLA_FLAGS", "")
        os.environ |= {"XLA_FLAGS": f"{flags} --xla_gpu_deterministic_ops=true", "NPROC": "1"}
    import jax

    jax.config.update("jax_cpu_enable_async_dispatch", False)
    return jax


def _for_the_processor_alone(package: str) -> str:
    """The version of a JAX that has the CPU for its one device; empty where JAX has to be asked.

    It takes a quarter of a second to import, which a session that computes elsewhere need not wait
    for. Accelerators come with plugins of JAX, or with libtpu; until somebody imports it, settings
    come with the environment.
    """
    told = {v for k, v in os.environ.items() if k.startswith(_TOLD)} - {"cpu"}
    several = "device_count" in os.environ.get("XLA_FLAGS", "")
    there = [find_spec(name) is not None for name in ("jaxlib", "jax_plugins", "libtpu")]
    if told or several or "jax" in sys.modules or there != [True, False, False]:
        return ""
    text = Path(package).with_name("version.py").read_text(encoding="utf-8")
    release = re.search(r"^_release_version\b.*'(\d.*)'$", text, re.MULTILINE)
    return "" if release is None or announced("jax_plugins") else release[1]


def _facts(index: int, device: Any, version: str) -> DeviceAttributes:
    return DeviceAttributes(
        index=index, description=f"{device.device_kind} of JAX {version}", kind=device.platform,
        memory_bytes=(device.memory_stats() or {}).get("bytes_limit"),
        features=frozenset({f"jax:{device.platform}:{device.id}"}),
    )  # fmt: skip
