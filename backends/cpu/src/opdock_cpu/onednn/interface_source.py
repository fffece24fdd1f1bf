"""Writes `_interface.py`: the declarations as cffi has parsed them.

Parsing takes longer than everything else that a first step needs of oneDNN, so it is done here:
`python -m opdock_cpu.onednn.interface_source` after a change in `declarations`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from opdock_cpu.onednn.declarations import CDEF

__all__ = ["PATH", "render"]

PATH = Path(__file__).with_name("_interface.py")

_HEAD = '''"""Written by `python -m opdock_cpu.onednn.interface_source` from `declarations`."""
# ruff: noqa: E501
# fmt: off
# mypy: ignore-errors

'''


def render() -> str:
    """The module's text."""
    import cffi

    ffi = cffi.FFI()
    ffi.cdef(CDEF)
    ffi.set_source("opdock_cpu.onednn._interface", None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "interface.py")
        ffi.emit_python_code(str(path))
        return _HEAD + path.read_text(encoding="utf-8")


if __name__ == "__main__":
    PATH.write_text(render(), encoding="utf-8")
