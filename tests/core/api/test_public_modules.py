"""Public modules find all of TF's names, whoever imports them first."""

from __future__ import annotations

import subprocess
import sys

FIRST = """
import importlib
import types
from opdock import _api
own = [where for name, where in _api.SUBMODULES.items() if where == f"opdock.{name}"]
assert len(own) > 5, own
for where in own:
    importlib.import_module(where)
import opdock
for where in own:
    found = getattr(opdock, where.removeprefix("opdock."))
    assert type(found) is not types.ModuleType, where
# A name that tf.train does not have written down itself.
assert opdock.train.sdca_fprint.__name__ == "SdcaFprint"
"""


def test_a_module_that_is_imported_by_its_own_name_is_public_too() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
