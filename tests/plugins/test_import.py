"""`import opdock` is cheap and finds nothing; a plugin's module is light."""

from __future__ import annotations

import statistics

import pytest


def test_import_takes_little_and_discovers_nothing(site):
    program = """
import time
start = time.perf_counter()
import opdock
print(time.perf_counter() - start)
import sys
heavy = {"pluggy", "opdock.plugins.manager", "opdock.plugins.discovery", "tensorboard", "scipy"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
assert not [m for m in sys.modules if m.startswith(("opdock_", "fixture_"))]
"""
    seconds = [float(site.run("-c", program).stdout) for _ in range(5)]
    assert statistics.median(seconds) < 0.15, seconds


def test_building_a_graph_loads_no_plugin(site):
    program = """
import sys
import opdock as tf
x = tf.constant([1.0]) + 2.0
assert not [m for m in sys.modules if m.startswith(("opdock_", "fixture_"))]
assert "opdock.plugins.manager" not in sys.modules
"""
    site.run("-c", program)


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("opdock_cpu", "scipy"),
        ("opdock_cuda", "cupy"),
        ("opdock_opencl", "pyopencl"),
        ("opdock_echo", "array_api_compat"),
        ("opdock_null", "opdock_null.kernels"),
    ],
)
def test_a_plugin_module_is_light(site, module, heavy):
    program = f"""
import time
start = time.perf_counter()
import {module}
assert time.perf_counter() - start < 0.5
import sys
assert {heavy!r} not in sys.modules
"""
    site.run("-c", program)


def test_listing_imports_no_plugin(site):
    program = """
import sys
from opdock.plugins.manager import get_manager
states = {p.state for p in get_manager().status()}
assert states <= {"listed", "quarantined"}, states
assert not [m for m in sys.modules if m.startswith(("opdock_", "fixture_"))]
"""
    site.run("-c", program)
