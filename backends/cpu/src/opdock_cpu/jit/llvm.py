"""The compiler: LLVM assembly to a function's address, through llvmlite, with objects on disk.

An object file is kept under the hash of everything that it depends on: its source, the processor
and the versions. It is native code, so the folder belongs to the user alone, a file is written
whole or not at all, and what fails its checksum is compiled again.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["available", "compile_ir", "why_not"]

_lock = threading.Lock()
_addresses: dict[str, int] = {}
_DIGEST = 32


@cache
def why_not() -> str:
    """Why no code is generated; empty when it is."""
    if os.environ.get("OPDOCK_JIT", "").lower() in ("0", "off"):
        return "OPDOCK_JIT switches it off"
    for module in ("llvmlite", "cffi"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed"
    try:
        _machine()
    except (OSError, RuntimeError) as e:
        return f"LLVM does not start: {e}"
    return ""


def available() -> bool:
    """Whether code is generated."""
    return not why_not()


@cache
def _machine() -> tuple[Any, Any, str]:
    """The target machine, the engine that holds what was loaded, and what both depend on."""
    import llvmlite
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    # Another machine may compile; the engine that loads objects owns the one it is given.
    machines = [
        target.create_target_machine(cpu=cpu, features=features, opt=3, jit=True)
        for _ in range(2)
    ]
    empty = llvm.parse_assembly("")
    engine = llvm.create_mcjit_compiler(empty, machines[1])
    identity = f"{llvmlite.__version__} {target.triple} {cpu} {features}"
    return machines[0], engine, identity


def define_symbol(name: str, address: int) -> None:
    """Makes a function of this process known to generated code."""
    import llvmlite.binding as llvm

    llvm.add_symbol(name, address)


def compile_ir(source: str, name: str, *, only_cached: bool = False) -> int | None:
    """The address of the function `name` of a module.

    Args:
        source: LLVM assembly; `name` must be unique to it.
        name: an external function in it.
        only_cached: give up instead of compiling what is not on disk.

    Returns:
        The address, valid for the life of the process; None if it would have to be compiled.
    """
    with _lock:
        found = _addresses.get(name)
        if found is not None:
            return found
        path = _path(source)
        code = _read(path)
        if code is None:
            if only_cached:
                return None
            code = _emit(source)
            _write(path, code)
        _addresses[name] = _load(code, name)
        return _addresses[name]


def _emit(source: str) -> bytes:
    import llvmlite.binding as llvm

    machine = _machine()[0]
    module = llvm.parse_assembly(source)
    module.verify()
    options = llvm.create_pipeline_tuning_options(3)
    options.loop_vectorization = True
    options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    code: bytes = machine.emit_object(module)
    return code


def _load(code: bytes, name: str) -> int:
    import llvmlite.binding as llvm

    engine = _machine()[1]
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address: int = engine.get_function_address(name)
    if not address:
        raise RuntimeError(f"generated code lacks its function {name}")
    return address


# ---------------------------------------------------------------- the cache on disk
def _folder() -> Path | None:
    chosen = os.environ.get("OPDOCK_CACHE")
    if chosen == "":
        return None
    base = chosen or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "opdock"
    )
    return Path(base, "cpu-code")


def _path(source: str) -> Path | None:
    folder = _folder()
    if folder is None:
        return None
    key = hashlib.sha256(f"{_machine()[2]}\n{source}".encode()).hexdigest()
    return folder / f"{key}.o"


def _read(path: Path | None) -> bytes | None:
    """The object file, unless it is absent, damaged or not the user's own."""
    if path is None:
        return None
    try:
        if hasattr(os, "getuid") and path.parent.stat().st_uid != os.getuid():
            return None
        data = path.read_bytes()
    except OSError:
        return None
    digest, code = data[:_DIGEST], data[_DIGEST:]
    return code if code and hashlib.sha256(code).digest() == digest else None


def _write(path: Path | None, code: bytes) -> None:
    """Keeps an object file; a folder that cannot be written only costs time."""
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(code).digest() + code)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except OSError:
        return
