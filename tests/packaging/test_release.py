"""What `make wheels` builds: archives that install from their own index, the same each time."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

import opdock
from tests.packaging.environment import ROOT, empty_environment, run

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def versions(root: Path) -> set[str]:
    """What all places say that have the version."""
    found = {
        tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
        for folder in (root / m.relative_to(ROOT) for m in loaded("make_release").members())
    }
    for name, pattern in (
        ("CHANGELOG.md", r"^## (\S+)"),
        ("core/src/opdock/__init__.py", r'^__version__ = "(\S+)"'),
        ("core/src/opdock/version.py", r'GIT_VERSION: Final = "opdock-(\S+)"'),
    ):
        head = re.search(pattern, (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        assert head is not None, name
        found.add(head[1])
    return found


def test_there_is_one_version() -> None:
    assert versions(ROOT) == {opdock.__version__}


def test_one_command_gives_another(tmp_path: Path) -> None:
    tool = loaded("set_version")
    for path in tool.files(ROOT):
        (tmp_path / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, tmp_path / path.relative_to(ROOT))
    tool.set_version(tmp_path, "7.8.9")
    assert versions(tmp_path) == {"7.8.9"}
    root = (tmp_path / "pyproject.toml").read_text(encoding="utf-8")
    assert "opdock-cpu[jit,onednn,regex]>=7.8.9" in root and "numpy>=7" not in root
    assert "opdock-core[testing]>=7.8.9" in (tmp_path / tool.TEMPLATE).read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="no version such as"):
        tool.set_version(tmp_path, "new")


def test_licences_are_told_as_they_are_written() -> None:
    tool = loaded("make_release")
    parts = [
        {"name": "b", "version": "2", "licenses": [{"license": {"name": "OSI :: MIT License"}}]},
        {"name": "A", "version": "1", "licenses": [{"expression": "MIT AND Zlib"}]},
        {"name": "c"},
    ]
    assert list(tool.licences(parts))[2:] == [
        "| A | 1 | MIT AND Zlib |", "| b | 2 | MIT License |", "| c |  | see its own page |",
    ]  # fmt: skip


def test_an_index_has_every_archive_with_its_sum(tmp_path: Path) -> None:
    (tmp_path / "my_plugin-1.0-py3-none-any.whl").write_bytes(b"wheel")
    (tmp_path / "my_plugin-1.0.tar.gz").write_bytes(b"sdist")
    loaded("make_release").index(tmp_path)
    page = (tmp_path / "simple/my-plugin/index.html").read_text(encoding="utf-8")
    assert re.findall(r'href="\.\./\.\./([^#"]+)#sha256=[0-9a-f]{64}"', page) == [
        "my_plugin-1.0-py3-none-any.whl", "my_plugin-1.0.tar.gz",
    ]  # fmt: skip


def test_probability_comes_with_keras() -> None:
    """Its bijectors derive from layers of Keras when the package is imported."""
    text = (ROOT / "core/pyproject.toml").read_text(encoding="utf-8")
    asked = tomllib.loads(text)["project"]["optional-dependencies"]["probability"]
    own = [r for r in map(Requirement, asked) if r.name == "opdock-core"]
    assert any("keras" in r.extras for r in own)


def requires(name: str, dist: Path) -> list[str]:
    """What a package requires: of ours those in the wheel, else as it is installed."""
    for wheel in dist.glob(f"{name.replace('-', '_')}-*.whl"):
        archive = zipfile.ZipFile(wheel)
        (path,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(path)).get_all("Requires-Dist") or []
    return importlib.metadata.requires(name) or []


def missing(name: str, extras: set[str], dist: Path) -> set[str]:
    """What a package with extras needs and the running environment lacks."""
    found: set[str] = set()
    for text in requires(name, dist):
        asked = Requirement(text)
        if asked.marker and not any(asked.marker.evaluate({"extra": e}) for e in extras | {""}):
            continue
        if asked.name.startswith("opdock"):
            found |= missing(asked.name, asked.extras, dist)
            continue
        try:
            version = importlib.metadata.version(asked.name)
        except importlib.metadata.PackageNotFoundError:
            found.add(asked.name)
            continue
        if version not in asked.specifier:
            found.add(str(asked))
        elif asked.extras:
            found |= missing(asked.name, asked.extras, dist)
    return found


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    tool = loaded("make_release")
    tool.build(out, tool.members())
    return out


@pytest.mark.prove
def test_two_builds_are_the_same_bytes(dist: Path, tmp_path: Path) -> None:
    tool = loaded("make_release")
    tool.build(tmp_path / "again", [ROOT / "core", ROOT / "plugins/echo"])
    sums = (dist / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    again = (tmp_path / "again/SHA256SUMS").read_text(encoding="utf-8").splitlines()
    assert len(again) == 4 and set(again) <= set(sums)


@pytest.mark.prove
@pytest.mark.parametrize("extra", ["", *PROJECT["optional-dependencies"]])
def test_it_installs_from_its_own_index(extra: str, dist: Path, tmp_path: Path) -> None:
    lacks = missing("opdock", {extra}, dist)
    if lacks:
        pytest.skip(f"needs what is not installed here, and a network: {', '.join(sorted(lacks))}")
    python = empty_environment(tmp_path)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
    index = (dist / "simple").as_uri()
    wanted = f"opdock[{extra}]" if extra else "opdock"
    env = {k: v for k, v in os.environ.items() if not k.startswith("PIP_")}
    env["PIP_CONFIG_FILE"] = os.devnull
    subprocess.run([*pip, "install", "-q", "--index-url", index, wanted], check=True, env=env)
    program = "import opdock as tf; print(tf.Session().run(tf.constant(20) + tf.constant(22)))"
    assert run(python, "-c", program).split()[-1] == "42"
    assert "opdock, version" in run(python, "-m", "opdock.cli.main", "--version")
