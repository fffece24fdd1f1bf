"""The table of public names is current, and every name in it exists."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import opdock as tf
from opdock import _api

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_is_current():
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "make_api.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", sorted(_api.NAMES))
def test_a_listed_name_exists(name):
    assert getattr(tf, name) is not None or name == "newaxis"


@pytest.mark.parametrize("name", sorted(_api.SUBMODULES))
def test_a_listed_submodule_imports(name):
    assert getattr(tf, name).__name__ == tf._api.SUBMODULES[name]


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        tf.no_such_name


@pytest.mark.parametrize("module", ["data", "layers", "train"])
def test_tensors_have_operators_whatever_is_imported_first(module):
    """Programs may import what they use by name, and take no other name of the library."""
    code = f"import opdock.{module}; from opdock.data import Dataset; Dataset.range(3).filter({{}})"
    program = code.format("lambda x: (x + 1 < 2) & (x[...] >= 0)")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_module_takes_the_place_of_a_public_name():
    """An import of a submodule would hide what its package finds by the same name."""
    hidden = []
    for found in pkgutil.walk_packages(tf.__path__, "opdock."):
        package = importlib.import_module(found.name) if found.ispkg else None
        find = vars(package).get("__getattr__") if package else None
        if package is None or find is None:
            continue
        for part in pkgutil.iter_modules(package.__path__):
            try:
                value = find(part.name)
            except AttributeError:
                continue
            if not isinstance(value, ModuleType):
                hidden.append(f"{found.name}.{part.name}")
    assert not hidden
