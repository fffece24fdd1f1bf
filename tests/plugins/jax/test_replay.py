"""What real TensorFlow answered, asked of the kernels over JAX."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from tests.oracle import reference, scope

pytestmark = reference.needs_reference
FAMILIES = scope.FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family):
    strings = reference.load(f"ops/{family}.json").get("strings", {})
    with np.load(reference.FOLDER / "ops" / f"{family}.npz", allow_pickle=False) as file:
        arrays = reference.replay().Arrays(dict(file), strings)
    problems, count = {}, 0
    for record in reference.records(f"ops/{family}.json"):
        if scope.reason(record["id"]) is None:
            status, detail, _ = reference.replay().check_case(tf, record, arrays, "/device:JAX:0")
            count += 1
            if status != "pass":
                problems[record["id"]] = f"{status}: {detail}"
    assert count
    assert not problems
