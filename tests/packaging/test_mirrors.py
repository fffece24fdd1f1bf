"""An op's samples, oracle, kernels and tests are in files named as the family that defines it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.backends.cuda.with_standin import STANDIN

ROOT = Path(__file__).resolve().parents[2]
# (family, file that serves it): why it has no file of its own.
SHARED: dict[tuple[str, str], str] = {
    ("conv3d", "conv"): "one formula for any number of dimensions",
    ("pool3d", "pool"): "one formula for any number of dimensions",
    ("random_dist", "random"): "the same stream of bits, checked in the same way",
    ("random_stateless", "random"): "the same stream of bits, checked in the same way",
    ("random_stateful", "random"): "the same fills of the same streams",
    ("sparse_segment", "segment"): "the same folds over the same segments",
    ("unsorted_segment", "segment"): "the same folds over the same segments",
    ("trig", "elementary"): "one table of functions of one number",
    ("trig", "arithmetic"): "one table of functions of two numbers",
    ("special", "arithmetic"): "one table of functions of two numbers",
    ("matrix_functions", "decompositions"): "the same well-conditioned matrices",
    ("random_stateless", "random_dist"): "the same stream of bits, drawn in the same way",
    ("random_dist", "special"): "the derivative of a special function",
    ("sums", "variants"): "a sum of lists and optionals walks through what is in them",
    ("fill", "variants"): "a list of zeros has as many as the list",
    ("depthwise", "conv"): "one primitive for any number of groups",
    ("quantized_nn", "quantized"): "the same sums of integers",
}
# A file of kernels that no family wrote: what they are.
GENERAL = {
    "elementwise": "rendered from the scalar expressions beside the ops' definitions",
    "mounted": "core's own kernels of several families over one set of functions",
    "widened": "the kernels of float32 of several families, for numbers of 16 bits",
}
# A file of tests that is about no family: what it is about.
ABOUT = {
    "control_structures": "what `cond`, `case` and `while_loop` take and return",
    "decomposed": "the decompositions of all families",
    "signal": "the files whose names begin with signal, and cosine transforms",
}

# In an interpreter of its own, where no test has defined ops.
FILES = """
import importlib, json, pkgutil
from opdock.graph.nodes import registry

homes = {spec.name: spec.home["__name__"] for spec in registry.all_ops(probes=True)}
from opdock.kernels import portable
from opdock.testing.harness import sample
from opdock.testing.reference import _registry as oracle

sample.load_families()
oracle.load_families()
portable.load_families()

def tables(package):
    root = importlib.import_module(package)
    names = [f"{package}.{module.name}" for module in pkgutil.iter_modules(root.__path__)]
    found = [(name, getattr(importlib.import_module(name), "table", ())) for name in names]
    return [(kernel.op, name) for name, table in found for kernel in table]

print(json.dumps({
    "homes": homes,
    "samples": [
        (op, found.fn.__module__) for op in sample.sample_ops()
        for found in sample.sample_sets_for(op)
    ],
    "reference": [(op, oracle.reference_for(op).__module__) for op in oracle.reference_ops()],
    "portable": [
        (op, use.bind.__module__) for op, uses in portable._registry.items() for use in uses
    ],
    "ckernels": tables("opdock_ckernels.families"),
    "cpu": tables("opdock_cpu.kernels"),
    "onednn": tables("opdock_cpu.onednn.kernels"),
    "cuda": tables("opdock_cuda.kernels"),
}))
"""


@pytest.fixture(scope="module")
def pairs() -> dict[str, set[tuple[str, str]]]:
    """Mirror -> the (family, file) pairs whose names differ."""
    # The stand-in for CuPy: the CUDA backend's kernels load without a GPU.
    path = os.pathsep.join([str(STANDIN), *filter(None, [os.environ.get("PYTHONPATH")])])
    out = subprocess.run(
        [sys.executable, "-c", FILES],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(out.stdout)
    homes: dict[str, str] = found.pop("homes")
    assert len(homes) > 500
    differ: dict[str, set[tuple[str, str]]] = {}
    for mirror, served in found.items():
        least = {"samples": 300, "reference": 300, "portable": 200, "ckernels": 300, "cpu": 200}
        assert len(served) > least.get(mirror, 5), f"{mirror} serves {len(served)} ops"
        names = {
            (homes[op].rpartition(".")[2], module.rpartition(".")[2])
            for op, module in served
            if op in homes
        }
        differ[mirror] = {
            (family, file) for family, file in names if file not in {family, *GENERAL}
        }
    return differ


@pytest.mark.parametrize(
    "mirror", ["samples", "reference", "portable", "ckernels", "cpu", "onednn", "cuda"]
)
def test_a_mirror_has_the_family_in_a_file_of_its_name(
    mirror: str, pairs: dict[str, set[tuple[str, str]]]
) -> None:
    wrong = sorted(pairs[mirror] - SHARED.keys())
    assert not wrong, f"{mirror}: (family, file that serves it) {wrong}"


def test_tests_of_ops_are_named_as_what_they_test() -> None:
    """`tests/core/ops/test_x.py` is about `x.py`, wherever in `ops` that is."""
    ops = {path.stem for path in (ROOT / "core/src/opdock/ops").rglob("*.py")}
    tests = {path.stem.removeprefix("test_") for path in (ROOT / "tests/core/ops").glob("test_*")}
    assert tests - ops == ABOUT.keys()


def test_no_exception_is_stale(pairs: dict[str, set[tuple[str, str]]]) -> None:
    stale = sorted(SHARED.keys() - set().union(*pairs.values()))
    assert not stale, f"allowed to share a file, but do not: {stale}"
