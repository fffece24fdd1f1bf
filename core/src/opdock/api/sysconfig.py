"""`tf.sysconfig`: where opdock is, and what compiling against TF's C++ interface would need."""

from __future__ import annotations

from pathlib import Path

from opdock.version import CXX11_ABI_FLAG, MONOLITHIC_BUILD

__all__ = [
    "CXX11_ABI_FLAG", "MONOLITHIC_BUILD", "get_compile_flags", "get_include", "get_lib",
    "get_link_flags",
]  # fmt: skip


def get_lib() -> str:
    """The folder of the package; there is no library in it."""
    return str(Path(__file__).resolve().parent.parent)


def get_include() -> str:
    """The folder where headers would be; there are none, as ops come to opdock as plugins."""
    return str(Path(get_lib()) / "include")


def get_compile_flags() -> list[str]:
    """The flags that name it."""
    return [f"-I{get_include()}", f"-D_GLIBCXX_USE_CXX11_ABI={CXX11_ABI_FLAG}"]


def get_link_flags() -> list[str]:
    """None: there is nothing to link with."""
    return []
