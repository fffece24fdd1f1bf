"""Which devices this installation of JAX can use: accelerators, then the CPU."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

from opdock.plugin import DeviceAttributes, Probe, deterministic


def probe() -> Probe:
    """Every device of this process; JAX makes several of a CPU when `jax_num_cpu_devices` says.

    XLA reads its flags once, and the number of a CPU's threads where it makes the device. A step
    waits for its results, so JAX is asked, if it has no device of the CPU yet, to compute there at
    once: its other way hands each program to a thread, which takes longer than a small one runs.
    """
    if importlib.util.find_spec("jax") is None:
        return Probe(reason="JAX is not installed")
    if deterministic():
        flags = os.environ.get("XLA_FLAGS", "")
        os.environ |= {"XLA_FLAGS": f"{flags} --xla_gpu_deterministic_ops=true", "NPROC": "1"}
    import jax

    jax.config.update("jax_cpu_enable_async_dispatch", False)
    try:
        found = jax.local_devices()
    except RuntimeError as e:  # JAX_PLATFORMS names what is not there
        return Probe(reason=f"JAX finds no device: {e}", installable=False)
    if all(device.platform != "cpu" for device in found):
        found = [*found, *_cpus()]
    return Probe(devices=tuple(_facts(i, device) for i, device in enumerate(found)))


def _cpus() -> list[Any]:
    import jax

    try:
        return list(jax.local_devices(backend="cpu"))
    except RuntimeError:  # JAX_PLATFORMS leaves it out
        return []


def _facts(index: int, device: Any) -> DeviceAttributes:
    import jax

    limit = (device.memory_stats() or {}).get("bytes_limit")
    return DeviceAttributes(
        index=index,
        description=f"{device.device_kind} of JAX {jax.__version__}",
        kind=device.platform,
        memory_bytes=limit,
        features=frozenset({f"jax:{device.platform}:{device.id}"}),
    )
