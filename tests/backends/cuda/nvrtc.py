"""NVRTC through ctypes: CUDA C to machine code, without a GPU, a driver or the toolkit."""

from __future__ import annotations

import ctypes
import importlib.util
import re
from pathlib import Path

from opdock_cuda.dialect import CUDA_C, OPTIONS


def library() -> ctypes.CDLL:
    """The library of the wheel `nvidia-cuda-nvrtc`, which `make setup` installs."""
    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations) if spec is not None else []
    found = [p for f in folders for p in sorted(Path(f).rglob("libnvrtc.so.*"))]
    if not found:
        raise RuntimeError("libnvrtc is not there: pip install nvidia-cuda-nvrtc (make setup)")
    return ctypes.CDLL(str(found[-1]))


def compile_text(nvrtc: ctypes.CDLL, text: str, options: list[str]) -> tuple[bytes, str]:
    """The machine code, empty where it does not compile, and what the compiler says."""
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    words = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
    status = nvrtc.nvrtcCompileProgram(program, len(options), words)
    log = _read(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).decode()
    code = _read(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program) if status == 0 else b""
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return code, log


def _read(size_of, get, program) -> bytes:
    size = ctypes.c_size_t()
    size_of(program, ctypes.byref(size))
    out = ctypes.create_string_buffer(size.value)
    get(program, out)
    return out.raw.rstrip(b"\0")


def merged(sources: list[tuple[str, list[str]]]) -> str:
    """Many sources as one text: each in a namespace, with its macros defined before and not after.

    Starting the compiler costs more than most kernels do. Kernels lose their C linkage, without
    which the same name may stand in several namespaces; nothing else of the text changes.
    """
    parts = [CUDA_C.prelude.replace('KERNEL extern "C" __global__', "KERNEL __global__")]
    for i, (text, options) in enumerate(sources):
        assert text.startswith(CUDA_C.prelude)
        body = text[len(CUDA_C.prelude) :].replace(CUDA_C.kernel, "__global__ void")
        assert tuple(options) == OPTIONS
        defined = dict.fromkeys(re.findall(r"#define\s+(\w+)", body))
        parts += [f"namespace source_{i} {{", body, "}", *(f"#undef {k}" for k in defined)]
    return "\n".join(parts)
