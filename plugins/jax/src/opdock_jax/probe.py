"""Which devices this installation of JAX can use: accelerators, then the CPU."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Iterator
from typing import Any

from opdock.plugin import DeviceAttributes, Probe, deterministic


def probe() -> Probe:
    """Every device of this process; JAX makes several of a CPU when `jax_num_cpu_devices` says."""
    if importlib.util.find_spec("jax") is None:
        return Probe(reason="JAX is not installed")
    import jax

    with _same_bits() if deterministic() else contextlib.nullcontext():
        try:
            found = jax.local_devices()
        except RuntimeError as e:  # JAX_PLATFORMS names what is not there
            return Probe(reason=f"JAX finds no device: {e}", installable=False)
        if all(device.platform != "cpu" for device in found):
            found = [*found, *_cpus()]
    return Probe(devices=tuple(_facts(i, device) for i, device in enumerate(found)))


@contextlib.contextmanager
def _same_bits() -> Iterator[None]:
    """Devices that are made meanwhile add up in one order: a CPU has one thread.

    XLA reads its flags once, and the number of threads where it makes a device.
    """
    flags, count = (os.environ.get(name) for name in ("XLA_FLAGS", "NPROC"))
    os.environ["XLA_FLAGS"] = f"{flags or ''} --xla_gpu_deterministic_ops=true"
    os.environ["NPROC"] = "1"
    try:
        yield
    finally:
        for name, before in (("XLA_FLAGS", flags), ("NPROC", count)):
            del os.environ[name]
            if before is not None:
                os.environ[name] = before


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
