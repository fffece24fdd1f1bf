"""`import opdock` is cheap and finds nothing; a plugin's module is light."""

from __future__ import annotations

import pytest

# What a module brings along besides itself and the standard library.
HEAD = """
import sys
before = set(sys.modules)
def loaded():
    names = {m.partition(".")[0] for m in set(sys.modules) - before}
    return names - set(sys.stdlib_module_names)
"""


def test_import_loads_little_and_discovers_nothing(site):
    """`make bench` tells the milliseconds."""
    program = f"""{HEAD}
import opdock
assert loaded() <= {{"opdock", "numpy", "ml_dtypes"}}, loaded()
assert not [m for m in sys.modules if m.startswith("opdock.plugins")]
ops = [m for m in sys.modules if m.startswith("opdock.ops.")]
assert not ops, ops
"""
    site.run("-c", program)


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
    program = f"""{HEAD}
import opdock.plugin
before = set(sys.modules)
import {module}
assert loaded() == {{"{module}"}}, loaded()
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
