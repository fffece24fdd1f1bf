"""Random programs within bounds that follow from their ops: `tools/random_programs.py`."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.packaging.environment import ROOT


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "random_programs", ROOT / "tools/random_programs.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look there for their types
    spec.loader.exec_module(module)
    return module


def programs(tool: Any, device: str, dtype: str, count: int) -> None:
    for number in range(count):
        for way, (run, rewritten) in tool.WAYS.items():
            made = tool.program(5, number, dtype, rewritten)
            assert tool.off(made, run(made, device)) <= 1, (number, way)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("device", ["/device:CPU:0", "/device:ECHO:0"])
def test_some_in_each_way(tool: Any, device: str, dtype: str) -> None:
    programs(tool, device, dtype, 3)


@pytest.mark.prove
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_two_hundred(tool: Any, dtype: str) -> None:
    for device in ("/device:CPU:0", "/device:OPENCL:0"):
        programs(tool, device, dtype, 50)


@pytest.mark.parametrize(("dtype", "shift"), [("float32", 0.01), ("float16", 1.0)])
def test_what_is_wrong_is_found(tool: Any, dtype: str, shift: float) -> None:
    """One of a program's results is off."""
    made = tool.program(5, 0, dtype, False)
    found = [np.array(v) for v in tool.in_session(made, "/device:CPU:0")]
    assert tool.off(made, found) <= 1
    wrong = found[len(found) // 2]
    wrong += np.dtype(dtype).type(shift)
    assert tool.off(made, found) > 1
    wrong[...] = np.nan
    assert tool.off(made, found) == np.inf
