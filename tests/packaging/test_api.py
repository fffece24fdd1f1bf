"""The table of public names is current, and every name in it exists."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
