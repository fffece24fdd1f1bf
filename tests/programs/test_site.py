"""The documentation's site in a browser, read from its files: pages are drawn, the search finds."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tools import pictures
from tools.chromium import page as in_browser

pytestmark = pytest.mark.browser
SITE = Path(__file__).resolve().parents[2] / "build/site"


def page(path: str) -> str:
    """The address of a page that `make site` has built."""
    file, _, rest = path.partition("?")
    assert (SITE / file).exists(), "make site"
    return f"{(SITE / file).as_uri()}?{rest}"


@pytest.mark.parametrize("path", ["index.html", "reference/tf/nn.html"])
def test_the_search_finds_without_a_server(path: str) -> None:
    dom = pictures.drawn(page(f"{path}?q=atrous_conv2d"), "--dump-dom")
    assert re.search(r"md-search-result__meta\">\s*\d+ matching", dom)
    assert "nn.html" in dom.partition("md-search-result__list")[2]


def test_nothing_is_fetched() -> None:
    """No page names a script, a style, a font or a picture of another machine."""
    outside = re.compile(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"(https?:)?//")
    pages = list(SITE.rglob("*.html"))
    assert len(pages) > 100
    assert [p.name for p in pages if outside.search(p.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("title", pictures.SITE)
def test_pictures_are_drawn_and_no_program_is_cut(title: str, tmp_path: Path) -> None:
    """In the scheme asked for; lines of Python have up to 100 characters."""
    path, scheme = pictures.SITE[title]
    with in_browser() as shown:
        pictures.site_page(shown, path, scheme)
        shown.picture(tmp_path / "page.png")
        codes = "[...document.querySelectorAll('.md-content .language-python code')]"
        cut = f"{codes}.filter(c => c.scrollWidth > c.clientWidth).map(c => c.innerText)"
        assert shown.ask(cut) == []
        if title in ("index", "tutorial", "reference"):
            assert shown.ask(f"{codes}.length") > 0
        assert shown.ask("document.documentElement.scrollWidth <= innerWidth")
    with Image.open(tmp_path / "page.png") as image:
        assert image.size == (1280, 800)
        pixels = np.asarray(image.convert("L"))
    assert (np.median(pixels) > 128) == (scheme == "light")
    assert len(np.unique(pixels)) > 30


def test_the_first_commands_are_read_whole() -> None:
    with in_browser() as shown:
        pictures.site_page(shown, "index.html", "light")
        sizes = shown.ask(
            "[...document.querySelectorAll('.md-content pre code')]"
            ".map(c => [c.scrollWidth, c.clientWidth])"
        )
    assert sizes and all(wide <= room for wide, room in sizes)
