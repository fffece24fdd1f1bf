"""TensorBoard's pages in a browser: what the demonstration wrote is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tools import pictures

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("digits")
    pictures.train(folder, epochs=2)
    with pictures.board(folder) as found:
        yield found


def test_every_summary_has_its_card(address: str) -> None:
    wanted = ("test/loss", "test/accuracy", "digits/image/0")  # other groups are folded at first
    page, missing = "", wanted
    while missing:  # TensorBoard may still be reading
        page = pictures.drawn(f"{address}#timeseries", "--dump-dom", size=(1280, 6000))
        missing = tuple(tag for tag in wanted if f'title="{tag}"' not in page)


def colors(address: str, page: str, file: Path) -> int:
    """How many colors a page has below its head."""
    pictures.picture(address, page, file)
    with Image.open(file) as image:
        pixels = np.asarray(image.convert("RGB"))[100:]
    return len(np.unique(pixels.reshape(-1, 3), axis=0))


@pytest.fixture(scope="module")
def empty(address: str, tmp_path_factory: pytest.TempPathFactory) -> int:
    """The colors of a page about what the demonstration does not write: texts."""
    return colors(address, "text", tmp_path_factory.mktemp("empty") / "page.png")


@pytest.mark.parametrize("title", pictures.PAGES)
def test_pages_are_drawn(address: str, empty: int, title: str, tmp_path: Path) -> None:
    assert colors(address, pictures.PAGES[title], tmp_path / "page.png") > empty + 20
