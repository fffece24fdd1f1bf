"""Help texts: hardware that is visible on this machine but that no installed plugin serves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from opdock.late import record


@record(frozen=True)
class Hint:
    """What to look for, which plugin would serve it, and what to tell the user."""

    visible: Callable[[], bool]
    plugin: str
    text: str


def _nvidia_visible() -> bool:
    return Path("/proc/driver/nvidia/version").exists() or Path("/dev/nvidiactl").exists()


def _amd_visible() -> bool:
    return Path("/dev/kfd").exists()


def _opencl_visible() -> bool:
    vendors = Path("/etc/OpenCL/vendors")
    return vendors.is_dir() and any(vendors.glob("*.icd"))


HINTS: Final = (
    Hint(
        _nvidia_visible,
        "cuda",
        "An NVIDIA GPU is visible, but opdock-cuda is not installed: "
        'pip install "opdock-cuda[cuda12]" (or [cuda13], after the driver).',
    ),
    Hint(
        _amd_visible,
        "torch",
        "An AMD GPU is visible, but opdock-torch is not installed, which serves it where PyTorch "
        "is a build for ROCm: pip install opdock-torch.",
    ),
    Hint(
        _opencl_visible,
        "opencl",
        "An OpenCL driver is installed, but opdock-opencl is not: "
        'pip install "opdock-opencl[pyopencl]".',
    ),
)


def missing_plugins(installed: Iterable[str], hints: Iterable[Hint] = HINTS) -> list[str]:
    """The texts that apply, given the names of all listed plugins."""
    names = set(installed)
    return [h.text for h in hints if h.plugin not in names and h.visible()]
