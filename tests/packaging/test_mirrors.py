"""An op's samples and its oracle are in files named as the family that defines the op."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# (family, file that serves it): why it has no file of its own.
SHARED: dict[tuple[str, str], str] = {
    ("conv3d", "conv"): "one formula for any number of dimensions",
    ("pool3d", "pool"): "one formula for any number of dimensions",
    ("random_dist", "random"): "the same stream of bits, checked in the same way",
    ("random_stateless", "random"): "the same stream of bits, checked in the same way",
    ("sparse_segment", "segment"): "the same folds over the same segments",
    ("unsorted_segment", "segment"): "the same folds over the same segments",
    ("trig", "elementary"): "one table of functions of one number",
    ("trig", "arithmetic"): "one table of functions of two numbers",
    ("special", "arithmetic"): "one table of functions of two numbers",
    ("matrix_functions", "decompositions"): "the same well-conditioned matrices",
}

# Where an op is defined is where its module was running, whichever helper made it; seen from the
# registry before any family is loaded, hence in an interpreter of its own.
FILES = """
import json, sys
from opdock.graph.nodes import registry

homes = {}

class Watched(dict):
    def __setitem__(self, op, spec):
        frame = sys._getframe()
        while frame.f_code.co_name != "<module>":
            frame = frame.f_back
        homes[op] = frame.f_globals["__name__"]
        super().__setitem__(op, spec)

registry._REGISTRY = Watched(registry._REGISTRY)
registry.load_all()
from opdock.testing.harness import sample
from opdock.testing.reference import _registry as oracle

sample.load_families()
oracle.load_families()
print(json.dumps({
    "homes": homes,
    "samples": [
        (op, found.fn.__module__) for op in sample.sample_ops()
        for found in sample.sample_sets_for(op)
    ],
    "reference": [(op, oracle.reference_for(op).__module__) for op in oracle.reference_ops()],
}))
"""


@pytest.fixture(scope="module")
def pairs() -> dict[str, set[tuple[str, str]]]:
    """Mirror -> the (family, file) pairs whose names differ."""
    out = subprocess.run([sys.executable, "-c", FILES], capture_output=True, text=True, check=True)
    found = json.loads(out.stdout)
    homes: dict[str, str] = found.pop("homes")
    assert len(homes) > 500
    differ: dict[str, set[tuple[str, str]]] = {}
    for mirror, served in found.items():
        assert len(served) > 300, f"{mirror} serves {len(served)} ops"
        names = {
            (homes[op].rpartition(".")[2], module.rpartition(".")[2])
            for op, module in served
            if op in homes
        }
        differ[mirror] = {(family, file) for family, file in names if family != file}
    return differ


@pytest.mark.parametrize("mirror", ["samples", "reference"])
def test_a_mirror_has_the_family_in_a_file_of_its_name(
    mirror: str, pairs: dict[str, set[tuple[str, str]]]
) -> None:
    wrong = sorted(pairs[mirror] - SHARED.keys())
    assert not wrong, f"testing/{mirror}: (family, file that serves it) {wrong}"


def test_no_exception_is_stale(pairs: dict[str, set[tuple[str, str]]]) -> None:
    stale = sorted(SHARED.keys() - set().union(*pairs.values()))
    assert not stale, f"allowed to share a file, but do not: {stale}"
