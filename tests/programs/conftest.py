"""Runs the programs of `real/`."""

from __future__ import annotations

import contextlib
import io
import runpy
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import opdock as tf

REAL = Path(__file__).with_name("real")


@pytest.fixture
def ran(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs a program: its globals, and `printed`."""
    name = request.param
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name])
    np.random.seed(0)
    tf.reset_default_graph()
    printed = io.StringIO()
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(printed), warnings.catch_warnings(), fresh_flags():
        # TF warns too where the gradient of a gather has no static size.
        warnings.filterwarnings("ignore", message="Converting sparse IndexedSlices")
        try:
            names = runpy.run_path(str(REAL / f"{name}.py"), run_name="__main__")
        except SystemExit as end:  # how tf.app.run ends
            assert not end.code
    yield SimpleNamespace(**{**names, "printed": printed.getvalue()})
    tf.reset_default_graph()


@contextlib.contextmanager
def fresh_flags() -> Iterator[None]:
    """Every program defines flags as if it were the only one."""
    before = set(tf.flags.FLAGS)
    yield
    for name in set(tf.flags.FLAGS) - before:
        delattr(tf.flags.FLAGS, name)
    tf.flags.FLAGS.unparse_flags()
