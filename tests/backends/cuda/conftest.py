"""The CUDA backend on a stand-in for CuPy: a session of tests sees one GPU that is not there."""

from __future__ import annotations

import importlib
import shutil
import sys

import pytest

from tests.backends.cuda.with_standin import STANDIN, install

_OURS = ("cupy", "cupy_backends", "cudnn", "opdock_cuda", "array_api_compat.cupy")


def _forget():
    below = tuple(f"{o}." for o in _OURS)
    for name in [n for n in sys.modules if n in _OURS or n.startswith(below)]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def cupy():
    """The stand-in as the installed CuPy, and a driver that finds one GPU; all gone afterwards."""
    if shutil.which("g++") is None and shutil.which("c++") is None:
        pytest.skip("no C++ compiler runs the CUDA text here (apt install g++)")
    from opdock.plugins.manager import reset_manager

    _forget()
    install()
    reset_manager()
    yield importlib.import_module("cupy")
    sys.path.remove(str(STANDIN))
    _forget()
    reset_manager()


@pytest.fixture
def gpu(cupy):
    """The open device."""
    from opdock.plugins.manager import get_manager

    manager = get_manager()
    (found,) = [d for d in manager.devices() if d.spec.name == "cuda"]
    return manager.open(found).device
