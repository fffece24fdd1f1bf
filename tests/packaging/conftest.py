"""Wheels that several tests install: each is built once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.packaging.environment import ROOT, build_wheel


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """The wheel of a project in a folder of this tree, built without isolation."""
    out = tmp_path_factory.mktemp("wheels")
    return functools.cache(lambda folder: build_wheel(ROOT / folder, out / (folder.name or "root")))
