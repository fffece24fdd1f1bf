"""Every distribution builds as a wheel, and they install, one by one, where no opdock is.

The environment sees the third-party libraries of the running one (by links), and nothing of opdock
but the wheels under test: so the test needs no network, and finds what a wheel forgot to pack.
"""

from __future__ import annotations

import json
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.packaging.environment import ROOT, empty_environment, install, run

FOLDERS = [
    Path("core"),
    *sorted(p.relative_to(ROOT).parent for p in ROOT.glob("backends/*/pyproject.toml")),
    *sorted(p.relative_to(ROOT).parent for p in ROOT.glob("plugins/*/pyproject.toml")),
    Path(),
]
Wheels = Callable[[Path], Path]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("packaging")]


def project(folder: Path) -> dict:
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment that has the third-party libraries and no opdock."""
    return empty_environment(tmp_path_factory.mktemp("empty"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f.as_posix())
def test_a_wheel_holds_its_package_and_metadata(folder: Path, wheel: Wheels) -> None:
    table = project(folder)
    names = zipfile.ZipFile(wheel(folder)).namelist()
    modules = {n.split("/")[0] for n in names if ".dist-info/" not in n}
    expected = (
        {p.name for p in (ROOT / folder / "src").iterdir() if p.is_dir() and "egg" not in p.name}
        if folder.parts
        else set()
    )
    assert modules == expected
    assert table["requires-python"] == ">=3.11"
    assert not [n for n in names if "test_" in n.rsplit("/", 1)[-1] and "/testing/" not in n]


def test_installs_one_by_one(wheel: Wheels, empty: Path) -> None:
    assert "opdock" not in run(
        empty, "-c", "import pkgutil; print([m.name for m in pkgutil.iter_modules()])"
    ).replace("libraries", "")
    for folder in FOLDERS:
        table = project(folder)
        install(empty, wheel(folder))
        version = f"import importlib.metadata as m; print(m.version({table['name']!r}))"
        assert run(empty, "-c", version).strip() == table["version"]
        if folder.parts:
            (module,) = (p.name for p in (ROOT / folder / "src").iterdir() if p.is_dir())
            where = run(empty, "-c", f"import {module}; print({module}.__file__)").strip()
            assert Path(where).is_relative_to(empty.parent.parent)

    program = """
import opdock as tf
with tf.Session() as sess:
    print(sess.run(tf.constant(20) + tf.constant(22)))
"""
    assert run(empty, "-c", program).split()[-1] == "42"
    table = run(empty.with_name("opdock"), "doctor") if empty.with_name("opdock").exists() else ""
    for folder in FOLDERS:
        for name in project(folder).get("entry-points", {}).get("opdock.backends", {}):
            assert name in table, json.dumps(table)
