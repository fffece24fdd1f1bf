"""The site's plan has every page of the documentation, and its pages every public name."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from opdock.mapping import coverage

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = {"index.md", "contributing.md", "changes.md", "reference/tf/index.md"}


def test_every_page_has_its_place() -> None:
    plan = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    listed = re.findall(r"[\w/-]+\.md", plan)
    assert len(listed) == len(set(listed))
    pages = {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")}
    assert set(listed) == pages | OUTSIDE


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "pages"
    command = [sys.executable, ROOT / "tools/make_site.py", "--lay-out", folder]
    subprocess.run(command, check=True)
    return folder


def test_every_public_name_has_its_section(laid_out: Path) -> None:
    there = {e.path for e in coverage.entries() if e.status == "there"}
    heads = re.compile(r"^## `tf\.([\w.]+)`$", re.MULTILINE)
    pages = (laid_out / "reference/tf").glob("*.md")
    found = [name for p in pages for name in heads.findall(p.read_text(encoding="utf-8"))]
    assert len(found) == len(set(found))
    assert set(found) == {name for name in there if not name.startswith("compat.v")}


def test_a_section_says_how_it_is_called(laid_out: Path) -> None:
    text = (laid_out / "reference/tf/nn.md").read_text(encoding="utf-8")
    section = text.partition("## `tf.nn.bias_add`")[2].partition("\n## ")[0]
    assert "bias_add(value, bias, data_format=None, name=None)" in section
    assert "- `bias`" in section
    assert "Raises:" in section


def test_blocks_of_code_are_named_as_the_site_reads_it(laid_out: Path) -> None:
    pages = (p.read_text(encoding="utf-8") for p in laid_out.rglob("*.md"))
    heads = [h for page in pages for h in re.findall(r"^ *```(\w+ .*)$", page, re.MULTILINE)]
    assert 'python title="train.py"' in heads
    assert [h for h in heads if not re.fullmatch(r'\w+ title="[^"]+"', h)] == []


def test_links_of_moved_pages_lead_somewhere(laid_out: Path) -> None:
    for page in (laid_out / name for name in ("index.md", "contributing.md", "changes.md")):
        targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        assert [t for t in targets if not (laid_out / t).exists()] == []
