"""The documentation's site in a browser, read from its files: pages are drawn, the search finds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import pictures

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
