"""CUDA text on the host: a shim gives its words a meaning, and the C++ compiler does the rest.

Work items of a group run as coroutines, one after the other up to the next barrier.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from cupy import cuda

SHIM = Path(__file__).with_name("shim.h")
COMPILER = shutil.which("g++") or shutil.which("c++") or shutil.which("clang++")
_CACHE = Path(os.environ.get("OPDOCK_STANDIN_CACHE") or Path(tempfile.gettempdir()) / (
    f"opdock-standin-{os.getuid()}"
))  # fmt: skip

recorded = None
"""A list that takes (text, options) of every module, whose kernels then do nothing."""


class RawModule:
    def __init__(self, code, options=(), backend="nvrtc"):
        assert backend == "nvrtc"
        self.code, self.options = code, tuple(options)
        self._library = None
        if recorded is not None:
            recorded.append((self.code, self.options))

    def get_function(self, name):
        if recorded is not None:
            return RawKernel(name, None)
        if self._library is None:
            self._library = _compiled(self.code, self.options)
        return RawKernel(name, getattr(self._library, f"od_launch_{name}"))


def _compiled(code, options):
    if COMPILER is None:
        raise RuntimeError("no C++ compiler runs the CUDA text here (apt install g++)")
    barriers = "true" if re.search(r"\bBARRIER(;|$)", code, re.MULTILINE) else "false"
    text = f'#define OD_BARRIERS {barriers}\n#include "{SHIM}"\n{code}\n'
    for name in dict.fromkeys(re.findall(r"(?:KERNEL|__global__)\s+void\s+(\w+)\s*\(", code)):
        text += f"OD_ENTRY({name})\n"
    key = hashlib.sha256(f"{text}{SHIM.read_text()}".encode()).hexdigest()[:32]
    _CACHE.mkdir(parents=True, exist_ok=True)
    library = _CACHE / f"{key}.so"
    if not library.exists():
        with tempfile.TemporaryDirectory(dir=_CACHE) as folder:
            source, made = Path(folder) / "k.cpp", Path(folder) / "k.so"
            source.write_text(text)
            command = [
                COMPILER, "-std=c++14", "-O1", "-w", "-shared", "-fPIC", "-fwrapv",
                "-ffp-contract=off", "-fno-math-errno", "-fno-gnu-unique", "-Wl,-Bsymbolic",
                "-o", made, source,
            ]  # fmt: skip
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"the CUDA text does not compile:\n{done.stderr[:3000]}\n{code}")
            made.rename(library)
    return ctypes.PyDLL(str(library))  # one kernel at a time, in whatever thread


class RawKernel:
    def __init__(self, name, launch):
        self.name, self._launch = name, launch

    def __call__(self, grid, block, args):
        held = [_argument(a) for a in args]
        pointers = (ctypes.c_void_p * len(held))(*(h.ctypes.data for h, _ in held))
        sizes = (ctypes.c_uint * 6)(*(tuple(grid) + (1, 1))[:3], *(tuple(block) + (1, 1))[:3])

        def work():
            if self._launch is None:
                return
            self._launch(pointers, sizes)
            for i, (_, array) in enumerate(held):
                if array is not None and not cuda.memory.intact(array):
                    raise AssertionError(f"kernel {self.name} writes beyond argument {i}")

        cuda.enqueue(work)


def _argument(value):
    """Bytes that hold an argument as cuLaunchKernel wants it, and what must stay alive."""
    import cupy

    if isinstance(value, cupy.ndarray):
        if not value.flags.c_contiguous:
            raise AssertionError("a kernel that reads rows got an array that has none")
        return np.array([value.__array_interface__["data"][0]], np.uint64), value
    if not isinstance(value, (np.generic, int, float)):
        raise TypeError(f"Unsupported type {type(value)}")
    return np.array([value]), None
