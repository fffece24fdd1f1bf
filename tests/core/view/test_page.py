"""The page's data and HTML: what is written is what is read, whatever names there are."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from opdock import errors
from opdock.view import page
from opdock.view.model import VERSION, Life, Row, Span, View, as_json

HOSTILE = ["</script><script>alert(1)</script>", "<!--<script>", "@@script@@", "a&amp;b", "\u2028"]


def view(*names: str, title: str = "program") -> View:
    rows = [Row(node=n, op=n, requested="", device=n, how="native", kernel=n, why=n) for n in names]
    lives = [Life(n, 0, n, 4, 0, 0, "made") for n in names]
    return View(title, rows, steps=1, lives=lives, spans=[Span(n, n, n, 0.0, 1.5) for n in names])


class Blocks(HTMLParser):
    """What a browser would find: the tags, and what stands in blocks of code and data."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, str] = {}
        self._key = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._key = dict(attrs).get("id") or tag

    def handle_endtag(self, tag: str) -> None:
        self._key = ""

    def handle_data(self, data: str) -> None:
        self.inside[self._key] = self.inside.get(self._key, "") + data


def data_of(text: str) -> Any:
    return json.loads(Blocks(text).inside["data"])


def test_what_says_nothing_is_left_out() -> None:
    told = json.loads(as_json([view("a")]))
    assert told["version"] == VERSION
    (made,) = told["views"]
    assert made["rows"] == [
        {"node": "a", "op": "a", "device": "a", "how": "native", "kernel": "a", "why": "a"}
    ]
    assert made["lives"][0] == {
        "node": "a", "output": 0, "device": "a", "nbytes": 4, "begin": 0, "end": 0, "kind": "made",
    }  # fmt: skip
    assert made["spans"][0]["us"] == 1.5


def test_names_stay_data() -> None:
    text = page.page_of(view(*HOSTILE, title=HOSTILE[0]))
    found = Blocks(text)
    assert [tag for tag, _ in found.tags].count("script") == 2
    assert [row["node"] for row in data_of(text)["views"][0]["rows"]] == HOSTILE
    assert found.inside["title"].strip() == HOSTILE[0]
    assert html.escape(HOSTILE[0]) in text


def test_nothing_runs_but_what_the_policy_names() -> None:
    found = Blocks(page.page_of(view("a")))
    metas = [attrs for tag, attrs in found.tags if tag == "meta" and "http-equiv" in attrs]
    policy = metas[0]["content"] or ""
    for kind, block in (("script-src", "script"), ("style-src", "style")):
        digest = base64.b64encode(hashlib.sha256(found.inside[block].encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_nothing_is_fetched() -> None:
    text = page.page_of(view("a"))
    assert not re.search(r"https?://|@import|url\(|<link|src=", text)


def test_every_file_of_code_is_in_the_page() -> None:
    folder = Path(page.__file__).parent / "assets"
    assert sorted(p.stem for p in folder.glob("*.js")) == sorted(page.SCRIPTS)


def test_code_makes_no_markup_of_data() -> None:
    folder = Path(page.__file__).parent / "assets"
    ways = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function")
    assert [p.name for p in folder.glob("*.js") if ways.search(p.read_text(encoding="utf-8"))] == []


def test_one_or_two_programs(tmp_path: Path) -> None:
    both = page.page_of(view("a", title="x"), view("b", title="y"))
    assert [v["title"] for v in data_of(both)["views"]] == ["x", "y"]
    for many in (0, 3):
        with pytest.raises(ValueError, match=f"one or two programs, not {many}"):
            page.page_of(*[view("a")] * many)
    with pytest.raises(errors.NotFoundError):
        page.write_page(str(tmp_path / "nowhere" / "page.html"), [view("a")])
