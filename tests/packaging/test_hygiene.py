"""What must not stand in the repository: registry hosts, a machine's paths, large or lock files."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Put together here, so that this file does not find itself.
HOSTS = re.compile(
    "|".join([r"py(pi|thonhosted)\." + "org", r"\.npmjs\.", r"(deb|security)\." + r"debian\."])
)
MACHINE = re.compile(r"(?<![\w.])/(?:home|root|Users|work|mnt)/\w")


def files() -> list[Path]:
    """What a commit of this tree would hold."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: there is no list of what belongs to the repository")
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]


def texts() -> dict[str, str]:
    found = {}
    for path in files():
        data = path.read_bytes()
        if b"\0" not in data[:8192]:
            found[path.relative_to(ROOT).as_posix()] = data.decode("utf-8", "replace")
    return found


def test_no_registry_is_named() -> None:
    wrong = {name: hit.group() for name, text in texts().items() if (hit := HOSTS.search(text))}
    assert not wrong


def test_no_path_of_one_machine() -> None:
    wrong = {name: hit.group() for name, text in texts().items() if (hit := MACHINE.search(text))}
    places = [f"{place}/" for place in (ROOT.parent, Path.home()) if len(place.parts) > 1]
    wrong |= {name: p for name, text in texts().items() for p in places if p in text}
    assert not wrong


def test_nothing_large_and_no_lock_file() -> None:
    large = [p.name for p in files() if p.stat().st_size > 1 << 20]
    assert not large
    assert (ROOT / "uv.lock") not in files()


def test_what_a_visitor_expects_is_there() -> None:
    for name in ("README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", ".ci/run"):
        assert (ROOT / name).is_file(), name
    assert (ROOT / ".ci/run").stat().st_mode & 0o111, ".ci/run is not executable"
    assert (ROOT / "core/src/opdock/py.typed").is_file()
    assert (ROOT / "backends/cpu/src/opdock_cpu/py.typed").is_file()


def test_every_dependency_is_explained() -> None:
    """docs/dependencies.md gives a reason for each library that any distribution requires."""
    import tomllib

    said = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8").lower()
    missing = set()
    for path in [
        ROOT / "pyproject.toml",
        *ROOT.glob("core/pyproject.toml"),
        *ROOT.glob("[bp]*/*/pyproject.toml"),
    ]:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        project = table.get("project", {})
        wanted = [
            *project.get("dependencies", []),
            *table.get("build-system", {}).get("requires", []),
        ]
        for group in [
            *project.get("optional-dependencies", {}).values(),
            *table.get("dependency-groups", {}).values(),
        ]:
            wanted += group
        for requirement in wanted:
            name = re.match(r"[\w.-]+", requirement).group().lower()
            if not name.startswith("opdock"):
                assert re.search(r"[<>=~]=", requirement), (
                    f"{path}: {requirement} has no lower bound"
                )
                if f"`{name}`" not in said:
                    missing.add(name)
    assert not missing
