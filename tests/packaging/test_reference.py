"""The reference pages for authors of plugins have every public name, and no other."""

from __future__ import annotations

import importlib.util
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from opdock import plugin

ROOT = Path(__file__).resolve().parents[2]
HEAD = re.compile(r"^### `(\w+)", re.MULTILINE)


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    source = ROOT / "tools/make_reference.py"
    spec = importlib.util.spec_from_file_location("make_reference", source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page(name: str) -> str:
    return (ROOT / "docs/reference" / name).read_text(encoding="utf-8")


def test_the_page_of_the_plugin_module_name_by_name() -> None:
    listed = HEAD.findall(page("plugin.md"))
    assert len(listed) == len(set(listed))
    assert set(plugin.__all__) - set(listed) == set(), "exported, not on the page"
    assert set(listed) - set(plugin.__all__) == set(), "on the page, not exported"
    assert [n for n in listed if not hasattr(plugin, n)] == []


def test_what_the_module_has_beside_its_names_is_private() -> None:
    """A name that is imported for no use of its own would be one that plugins could rely on."""
    own = {"Any", "TYPE_CHECKING", "annotations", "importlib"}
    public = {n for n in vars(plugin) if n.isidentifier() and not n.startswith("_")}
    assert public - set(plugin.__all__) <= own


def test_the_page_of_the_companions_name_by_name(tool: ModuleType) -> None:
    parts = re.split(r"^## `([\w.]+)`$", page("companions.md"), flags=re.MULTILINE)[1:]
    found = {name: HEAD.findall(text) for name, text in zip(parts[::2], parts[1::2], strict=True)}
    assert list(found) == list(tool.COMPANIONS)
    for name, listed in found.items():
        assert listed == sorted(import_module(name).__all__), name


def test_the_pages_say_what_the_docstrings_say(tool: ModuleType) -> None:
    for path, text in tool.pages().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is stale: make reference"


def test_the_page_of_the_environment_variable_by_variable() -> None:
    """What the sources read, and nothing else: names in quotes, but for an attribute of plugins."""
    read = re.compile(r"[\"'](OPDOCK_[A-Z_]+)[\"']")
    sources = [
        p for f in ("core", "backends", "plugins") for p in (ROOT / f).glob("**/src/**/*.py")
    ]
    found = {name for p in sources for name in read.findall(p.read_text(encoding="utf-8"))}
    listed = re.findall(r"^\| `(OPDOCK_[A-Z_]+)` \|", page("environment.md"), re.MULTILINE)
    assert sorted(listed) == sorted(found - {"OPDOCK_API"})
