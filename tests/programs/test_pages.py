"""TensorBoard's pages in a browser: driven as a user would, they show what a program wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tools import pictures
from tools.chromium import Page, page

pytestmark = pytest.mark.browser
# The elements that a selector finds, in what other elements keep to themselves and in frames, too.
FIND = """((selector) => {
  const found = [];
  const walk = (root) => {
    found.push(...root.querySelectorAll(selector));
    for (const e of root.querySelectorAll("*")) {
      const inside = e.shadowRoot || e.contentDocument;
      if (inside) walk(inside);
    }
  };
  walk(document);
  return found;
})"""


class Board:
    """TensorBoard, on what the demonstration wrote.

    Args:
        address: where it is served.
        shown: the browser's page.
    """

    def __init__(self, address: str, shown: Page) -> None:
        self.address, self.shown = address, shown

    def open(self, place: str) -> None:
        """Goes to one of its pages, which is loaded anew."""
        self.shown.open("about:blank")
        self.shown.open(f"{self.address}#{place}")

    def all(self, selector: str, of: str) -> list[str]:
        """What is to be known of all elements that a selector finds."""
        found = self.shown.ask(f"{FIND}({json.dumps(selector)}).map((e) => {of})")
        assert isinstance(found, list)
        return found

    def wait(self, selector: str, true: str = "true") -> None:
        """Waits until there is an element of which something is true."""
        self.shown.wait(f"{FIND}({json.dumps(selector)}).some((e) => {true})")

    def click(self, selector: str, true: str, times: int = 1) -> None:
        """Clicks on an element of which something is true, once it stands still."""
        element = f"{FIND}({json.dumps(selector)}).find((e) => {true})"
        middle = "[b.x + b.width / 2, b.y + b.height / 2]"
        look = (
            "new Promise((go) => requestAnimationFrame(() => {"
            f"const b = {element}.getBoundingClientRect(); go({middle}); }}))"
        )
        before, where = None, self.shown.ask(look)
        while where != before:
            before, where = where, self.shown.ask(look)
        self.shown.click(*where, times)


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    folder = tmp_path_factory.mktemp("digits")
    pictures.train(folder, epochs=1)
    with pictures.board(folder) as address, page(1280, 2400) as shown:
        yield Board(address, shown)


def titled(tag: str) -> str:
    return f"e.title === {json.dumps(tag)}"


def test_every_summary_has_its_card(board: Board) -> None:
    board.open("timeseries")  # groups beyond the first two are folded at first
    for tag in ("test/accuracy", "test/loss", "digits/image/0"):
        board.wait("card-view [title]", titled(tag))
    board.wait("card-view img", "e.naturalWidth === 8 && e.naturalHeight === 8")
    board.wait("card-view line-chart")


def test_a_search_brings_up_the_cards_that_it_names(board: Board) -> None:
    board.open("timeseries")
    board.wait("card-view [title]", titled("test/loss"))
    board.shown.click_on("input[placeholder^='Filter tags']")
    board.shown.type("accuracy")
    cards = f"{FIND}('card-view [title]')"  # above all others
    board.shown.wait(f"{cards}.filter((e) => {titled('test/accuracy')}).length === 2")
    assert len(board.all("card-view [title='test/loss']", "true")) == 1


def test_the_graph_opens_its_scopes(board: Board) -> None:
    board.open("graphs")
    name = "e.getAttribute('data-name')"
    board.wait("g.node", f"{name} === 'hidden1'")
    names = board.all("g.node", name)
    assert {"hidden1", "hidden2", "logits", "loss", "accuracy"} <= set(names)
    assert not [n for n in names if n.startswith("hidden1/")]
    board.click("g.node > g.nodeshape", "e.parentNode.dataset.name === 'hidden1'", times=2)
    board.wait("g.node", f"{name}.startsWith('hidden1/')")


DRAWN = "[...e.shadowRoot.querySelectorAll('path')].some((p) => /[AL]/.test(p.getAttribute('d')))"


@pytest.mark.parametrize(
    ("tab", "host", "true"),
    [
        ("scalars", "vz-line-chart2", DRAWN),
        ("distributions", "vz-distribution-chart", DRAWN),
        ("histograms", "vz-histogram-timeseries", DRAWN),
        ("images", "tf-image-loader", "e.shadowRoot.querySelector('img')?.naturalWidth === 8"),
        ("projector", ".numDataPoints", "Number(e.textContent) > 300"),
    ],
    ids=["scalars", "distributions", "histograms", "images", "projector"],
)
def test_a_tab_shows_its_page(board: Board, tab: str, host: str, true: str) -> None:
    board.open("timeseries")
    board.wait("[role=tab]")
    board.click("[role=tab]", f"e.textContent.trim() === {json.dumps(tab)}")
    board.wait(host, true)
