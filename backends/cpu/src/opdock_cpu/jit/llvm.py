"""The compiler: LLVM assembly to a function's address, through llvmlite, with objects on disk.

An object file is kept under the hash of everything that it depends on: its source, the processor
and the versions (`opdock.plugin.kept`).
"""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import logging
import os
import platform
import re
import sys
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from opdock.plugin import finalizer, kept, sheltered

__all__ = [
    "Code", "available", "compile_ir", "load_cached", "optimized", "started", "vector_bytes",
    "why_not", "why_not_started",
]  # fmt: skip

_lock = threading.Lock()
_FOLDER: Final = "cpu-code"
_WORDS: Final = {"": "", "1": "", "on": "", "0": "off", "off": "off", "sync": "sync"}
_log: Final = logging.getLogger("opdock.cpu")
if hasattr(os, "register_at_fork"):  # a child must not find LLVM in the middle of something
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )
_MOST = 256
"""Objects of one loader."""
_loader: _Loader | None = None


@cache
def why_not() -> str:
    """Why no code is generated; empty when it is.

    LLVM is not loaded for the answer: it takes 90 MB and some tens of milliseconds, which a
    program without generated code need not spend.
    """
    if asked() == "off":
        return "OPDOCK_JIT switches it off"
    for module in ("llvmlite", "cffi"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed"
    return ""


def asked() -> str:
    """What `OPDOCK_JIT` asks for: "off", "sync", or nothing."""
    word = os.environ.get("OPDOCK_JIT", "").strip().lower()
    if word not in _WORDS:
        _tell(word)
    return _WORDS.get(word, "")


@cache
def _tell(word: str) -> None:
    _log.warning("OPDOCK_JIT=%s is neither off nor sync: code is generated as without it", word)


def available() -> bool:
    """Whether code is generated."""
    return not why_not()


def started() -> bool:
    """Whether this process has loaded code already."""
    return _loader is not None


def why_not_started() -> str:
    """Why no code is generated, after an attempt to load LLVM; empty when it is."""
    reason = why_not()
    if not reason:
        try:
            _machine()
        except (ImportError, OSError, RuntimeError) as e:
            return f"LLVM does not start: {e}"
    return reason


def _wanted() -> str:
    """The processor that code is generated for, by LLVM's name; empty for the one that it runs on.

    A process has one: LLVM is started for it.
    """
    return os.environ.get("OPDOCK_JIT_CPU", "")


class Code:
    """Loaded code; its memory goes with the object.

    Attributes:
        address: where its function is.
    """

    __slots__ = ("__weakref__", "_library", "_loader", "address")

    def __init__(self, loader: _Loader, library: Any, name: str) -> None:
        # The loader has to go last.
        self._loader = loader
        self._library = library
        self.address: int = library[name]

    @finalizer
    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        # An interrupt may have come before the library was there. When a program ends, this
        # module's names may be gone before the last code is, so the question is bound here.
        library = getattr(self, "_library", None)
        if library is not None and not ending():
            library.close()


@cache
def _machine() -> tuple[Any, str]:
    """The target machine, and the processor's name."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    cpu, features = _wanted(), ""
    if not cpu:
        cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    machine = target.create_target_machine(cpu=cpu, features=features, opt=3, jit=True)
    return machine, f"{target.triple} {cpu} {features}"


class _Loader:
    """Loads objects. It never forgets a name, so another one takes its place now and then."""

    def __init__(self) -> None:
        import llvmlite.binding as llvm

        _machine()
        self.jit = llvm.create_lljit_compiler(suppress_errors=True)
        self.loaded = 0

    def load(self, code: bytes, name: str) -> Code:
        """One object file, with the function `name` in it."""
        import llvmlite.binding as llvm

        library = llvm.JITLibraryBuilder().add_object_img(code).export_symbol(name)
        self.loaded += 1
        return Code(self, library.add_current_process().link(self.jit, str(self.loaded)), name)


_CPU_LINES = frozenset({
    "vendor_id", "cpu family", "model", "stepping", "flags",
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features",
})  # fmt: skip


@cache
def _identity() -> str:
    """What code depends on besides its source: the compiler and the processor."""
    import llvmlite

    processor = _wanted() or _processor() or _machine()[1]
    return f"{llvmlite.__version__} {platform.machine()} {processor}"


_ADDITION = """
define <16 x float> @add(<16 x float> %x, <16 x float> %y) {
  %z = fadd <16 x float> %x, %y
  ret <16 x float> %z
}
"""


@cache
def vector_bytes() -> int:
    """The bytes of the processor's vectors: 16, 32 or 64."""
    if not _wanted():
        flags = (("avx512f", 64), ("avx", 32))
        said = re.findall(r"(?<![-\w])\w+", _identity())
        return next((size for flag, size in flags if flag in said), 16)
    import llvmlite.binding as llvm

    # What a named processor has, LLVM alone knows.
    code = _machine()[0].emit_assembly(llvm.parse_assembly(_ADDITION))
    return next((size for name, size in (("%zmm", 64), ("%ymm", 32)) if name in code), 16)


def _processor() -> str:
    """The kernel's description of the first processor, less what changes; empty if there is none.

    From the same facts as LLVM's name and features, which LLVM would have to be loaded for.
    """
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            lines = itertools.takewhile(str.strip, file)
            return "".join(s for s in lines if s.partition(":")[0].strip() in _CPU_LINES)
    except OSError:
        return ""


@sheltered
def compile_ir(source: str, name: str) -> Code:
    """The code of the function `name` of a module.

    Args:
        source: LLVM assembly.
        name: an external function in it.

    Raises:
        ImportError, OSError, RuntimeError: LLVM does not load, or refuses the module.
    """
    with _lock:
        key = _key(source)
        code = kept.read(_FOLDER, f"{key}.o")
        if code is None:
            code = _emit(source)
            kept.write(_FOLDER, f"{key}.o", code)
        return _load(code, name)


@sheltered
def load_cached(source: str, name: str) -> Code | None:
    """What `compile_ir` gives, if it can be had at once: on disk, while nothing is compiled."""
    if not _lock.acquire(blocking=False):
        return None
    try:
        code = kept.read(_FOLDER, f"{_key(source)}.o")
        return None if code is None else _load(code, name)
    finally:
        _lock.release()


_HALF = re.compile(rb"__(?:extendhf[sdx]f2|trunc[sdx]fhf2)")
"""Functions of a compiler's run time, which is not here, that LLVM calls where F16C is not."""


def _emit(source: str) -> bytes:
    machine = _machine()[0]
    code: bytes = machine.emit_object(optimized(source, machine))
    absent = _HALF.search(code)
    if absent:
        raise RuntimeError(
            f"the processor does not convert half precision ({absent[0].decode()} would have to)"
        )
    return code


def optimized(source: str, machine: Any) -> Any:
    """LLVM's module of a source, as it is when a machine's code is made of it."""
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(source)
    module.verify()
    options = llvm.create_pipeline_tuning_options(3)
    options.loop_vectorization = True
    options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    passes = builder.getModulePassManager()
    passes.run(module, builder)
    _dispose(passes)
    return module


def _dispose(passes: Any) -> None:
    """Frees a pass manager: llvmlite's class leaves that out, at a hundred kilobytes a module."""
    import llvmlite.binding as llvm

    if "_dispose" in vars(type(passes)):
        passes.close()
    elif free := getattr(llvm.ffi.lib, "LLVMPY_DisposeNewModulePassManger", None):
        free(passes)
        passes.detach()


def _load(code: bytes, name: str) -> Code:
    global _loader
    if _loader is None or _loader.loaded == _MOST:
        _loader = _Loader()
    return _loader.load(code, name)


def _key(source: str) -> str:
    return hashlib.sha256(f"{_identity()}\n{source}".encode()).hexdigest()
