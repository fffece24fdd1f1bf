"""The page of `opdock view` in a browser: searched, clicked, compared, printed, by keys too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import opdock as tf
from opdock.view.model import Life, Row, Span, View
from opdock.view.page import write_page
from tools import pictures, view_samples
from tools.chromium import Page, page

pytestmark = pytest.mark.browser
CHOSEN = "opdock.selected && opdock.selected.node && opdock.selected.node.name"
TAB = "document.querySelector('[role=tab][aria-selected=true]').textContent"


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return view_samples.write_samples(tmp_path_factory.mktemp("pages"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with page() as shown:
        yield shown


def opened(browser: Page, file: Path, place: str = "") -> Page:
    browser.open("about:blank")
    browser.resize(1280, 800)
    browser.scheme("light")
    browser.open(f"{file.as_uri()}{place}", pictures.READY)
    return browser


@pytest.fixture
def step(browser: Page, samples: dict[str, Path]) -> Page:
    return opened(browser, samples["step"])


def side(shown: Page) -> str:
    text = shown.ask("document.querySelector('.side').innerText")
    assert isinstance(text, str)
    return text


def place_of(shown: Page, name: str) -> tuple[float, float]:
    """Where the middle of a node's box is in the window."""
    x, y = shown.ask(
        f"""(() => {{ const [pane] = opdock.panes, at = pane.canvas.getBoundingClientRect();
        const box = pane.tree.leaves.get(pane.program.find({json.dumps(name)}));
        return [at.x + pane.left + (box.x + box.width / 3) * pane.scale,
                at.y + pane.top + (box.y + box.height / 2) * pane.scale]; }})()"""
    )
    return x, y


def test_it_loads_and_fetches_nothing(step: Page) -> None:
    assert step.ask("performance.getEntriesByType('resource').length") == 0
    told = side(step)
    for text in ("ops run", "copies", "Not where they were asked to be", "Slowest", "Fused"):
        assert text in told


def test_the_search_finds_and_shows(step: Page) -> None:
    step.press("/")
    step.type("conv1 relu")
    step.press("Enter")
    assert step.ask(CHOSEN) == "conv1/Relu"
    told = side(step)
    for text in ("Why here", "Stands for", "conv1/Conv2D", "Kernel", "Takes", "Gives to"):
        assert text in told


def test_a_search_in_vain_says_so(step: Page) -> None:
    step.press("/")
    step.type("nowhere")
    assert "nothing" in step.ask("document.querySelector('.found').innerText")
    step.press("Escape")
    assert step.ask("document.querySelector('.found').hidden")


def test_a_click_tells_why_an_op_is_not_where_it_was_asked_to_be(step: Page) -> None:
    step.ask("opdock.panes[0].show(opdock.programs[0].find('logits/BiasAdd'))")
    step.picture()
    step.click(*place_of(step, "logits/BiasAdd"))
    assert step.ask(CHOSEN) == "logits/BiasAdd"
    told = side(step)
    assert "Asked for GPU:0, runs on CPU:0." in told
    assert "part of opdock_cpu>MatMulBias" in told


def test_links_of_the_overview_lead_to_nodes(step: Page) -> None:
    step.click_on(".side .link")
    assert step.ask(CHOSEN) == step.ask("document.querySelector('.side .name').textContent")
    step.press("Escape")
    assert step.ask(CHOSEN) is None


def test_a_fused_node_opens_to_what_it_stands_for(step: Page) -> None:
    step.ask("opdock.panes[0].show(opdock.programs[0].find('conv1/Relu'))")
    step.picture()
    before = step.ask("opdock.panes[0].boxes.length")
    step.click(*place_of(step, "conv1/Relu"), times=2)
    assert step.ask("opdock.panes[0].boxes.length") == before + 3
    assert step.ask("opdock.panes[0].boxes.filter((b) => b.kind === 'member').length") == 3


def test_keys_alone_go_everywhere(step: Page) -> None:
    for key, name in (("2", "Ops"), ("3", "Timeline"), ("4", "Memory"), ("1", "Graph")):
        step.press(key)
        assert step.ask(TAB) == name
    step.ask("opdock.panes[0].canvas.focus()")
    step.press("ArrowDown")
    assert step.ask("opdock.panes[0].chosen.label") == "images:0"
    step.press("ArrowDown")
    assert step.ask("opdock.panes[0].chosen.label") == "conv1"
    step.press("Enter")
    assert step.ask("opdock.panes[0].chosen.open")
    step.press("ArrowUp")
    step.press("Escape")
    assert step.ask("opdock.selected") is None


def test_the_wheel_scales_about_the_pointer(step: Page) -> None:
    x, y = place_of(step, "images:0")
    before = step.ask("opdock.panes[0].scale")
    step.wheel(x, y, -200)
    step.wait(f"opdock.panes[0].scale > {before}")
    assert np.allclose(place_of(step, "images:0"), (x, y), atol=2)


def test_the_table_sorts_filters_and_chooses(step: Page) -> None:
    step.press("2")
    step.click_on(".th button:nth-child(5)")
    times = step.ask("opdock.made.get('ops').table.shown.map((n) => n.us || 0)")
    assert times == sorted(times, reverse=True)
    step.ask(
        "(() => { const s = document.querySelector('[aria-label=\"Which ops\"]');"
        "s.value = 'copy'; s.dispatchEvent(new Event('change')); })()"
    )
    assert set(step.ask("opdock.made.get('ops').table.shown.map((n) => n.how)")) == {"copy"}
    step.click_on(".tbody .tr")
    assert "copy_to" in step.ask(CHOSEN)


def test_the_table_goes_to_what_is_found(step: Page) -> None:
    step.press("2")
    step.press("/")
    step.type("Adam/NoOp")
    step.press("Enter")
    assert step.ask("document.querySelector('.tr.chosen').innerText").startswith("Adam/NoOp")


def test_drawings_choose_what_is_clicked(step: Page) -> None:
    step.press("3")
    step.picture()
    where = step.ask("document.querySelector('.sheet canvas').getBoundingClientRect().toJSON()")
    step.click(where["x"] + 40, where["y"] + 20 + 24 + 8)
    assert step.ask(CHOSEN) in step.ask("opdock.programs[0].spans.map((s) => s.node)")
    step.press("4")
    step.picture()
    life = "opdock.programs[0].lives.filter((l) => l.offset !== null)"
    top = step.ask(f"{life}.sort((a, b) => b.nbytes - a.nbytes)[0]")
    x, y = step.ask(
        "(() => { const [d] = opdock.made.get('memory').drawings, l = "
        f"{json.dumps(top)}; const at = d.canvas.getBoundingClientRect();"
        "const x = d.axis.to((l.begin + l.end + 1) / 2, d.sheet.width - 78 - 12);"
        "return [at.x + 78 + x, at.y + d.mapTop + (l.offset + l.nbytes / 2) / d.block * 260]; })()"
    )
    step.click(x, y)
    assert step.ask(CHOSEN) == top["node"]


def test_two_programs_side_by_side(browser: Page, samples: dict[str, Path]) -> None:
    shown = opened(browser, samples["beside"], "#compare")
    pairs = "opdock.made.get('compare').table.shown"
    assert shown.ask(f"{pairs}.every((p) => p.differs.length > 0)")
    fewer = shown.ask(f"{pairs}.length")
    shown.click_on("#only")
    assert shown.ask(f"{pairs}.length") > fewer
    shown.press("1")
    assert shown.ask("document.querySelectorAll('.graph-canvas').length") == 2
    shown.press("/")
    shown.type("conv1/Relu")
    shown.press("Enter")
    assert (
        shown.ask("opdock.panes.map((p) => p.chosen && p.chosen.node.name)") == ["conv1/Relu"] * 2
    )
    assert "In nothing optimized" in side(shown)


def test_it_prints(step: Page) -> None:
    told = step.printed()
    assert told.startswith(b"%PDF")
    assert len(told) > 30_000  # the picture is in it
    assert step.ask("document.querySelector('.report')") is None


def test_light_and_dark(step: Page) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light, pixels = step.ask(ground), step.picture()
    step.scheme("dark")
    assert step.ask(ground) != light
    assert step.picture() != pixels
    step.click_on("#theme")
    assert step.ask(ground) == light


@pytest.mark.parametrize("width", [360, 600, 860])
def test_a_narrow_window_cuts_nothing_off(step: Page, width: int) -> None:
    step.resize(width, 800)
    for key in "1234":
        step.press(key)
        step.picture()
        assert step.ask("document.documentElement.scrollWidth") <= width


def test_a_loop_opens_to_its_body(browser: Page, tmp_path: Path) -> None:
    x = tf.placeholder(tf.float32, [8], name="x")
    y = tf.while_loop(
        lambda i, y: i < 4, lambda i, y: (i + 1, tf.sin(y, name="wave")), [0, x], name="loop"
    )[1]
    total = tf.reduce_sum(y, name="total")
    metadata = tf.RunMetadata()
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session() as session:
        feeds = {x: np.ones(8)}
        session.run(total, feeds, options=options, run_metadata=metadata)
        session.explain(total, feeds, metadata).page(str(tmp_path / "loop.html"))
    shown = opened(browser, tmp_path / "loop.html")
    wave = "opdock.programs[0].find('loop/body/wave')"
    shown.ask(f"opdock.go(opdock.programs[0], {wave})")
    assert shown.ask(CHOSEN) == "loop/body/wave"
    assert "Runs in" in side(shown) and "loop/body" in side(shown)
    assert shown.ask(f"{wave}.level") == 1
    # What the body takes, the loop takes: the step is not counted twice.
    whole, loop = shown.ask("[opdock.programs[0].total, opdock.programs[0].find('loop').us]")
    rest = shown.ask("opdock.programs[0].find('total').us")
    assert whole == pytest.approx(loop + rest)
    assert shown.ask("opdock.panes[0].tree.root.us") == pytest.approx(whole)
    takes = shown.ask("opdock.programs[0].find('loop').outs.map((e) => e.to.name)")
    assert "total" in takes


HOSTILE = [
    "</script><script>window.broken = 1</script>",
    "<img src=x onerror='window.broken = 1'>",
    "@@script@@", "__proto__", "constructor", "<!--<script>", "]]>", "\u2028\u202e", "a" * 5000,
    "'\"`${window.broken = 1}", "/", "//", ":0", "",
]  # fmt: skip


def test_names_do_not_break_out(browser: Page, tmp_path: Path) -> None:
    rows = [
        Row(
            node=t, op=t, requested=t, device=t, how=t, kernel=t, why=t, rejections=(t,), line=t,
            fusion=t, missed=(t,), plugin=t, means=(t,), us=1.0, inputs=(t, HOSTILE[0]),
            outputs=(t,), within=t,
        )
        for t in HOSTILE
    ]  # fmt: skip
    lives = [Life(t, 0, t, 8, 0, 1, "planned", 8 * i) for i, t in enumerate(HOSTILE)]
    spans = [Span(t, t, t, float(i), 1.0, t) for i, t in enumerate(HOSTILE)]
    view = View(
        HOSTILE[0], rows, steps=2, lives=lives, spans=spans, notes=[(HOSTILE[1], HOSTILE[0])]
    )
    write_page(str(tmp_path / "hostile.html"), [view, view])
    shown = opened(browser, tmp_path / "hostile.html")
    for key in "12345":
        shown.press(key)
    for i in range(len(HOSTILE)):
        shown.ask(
            f"opdock.choose({{program: opdock.programs[0], node: opdock.programs[0].nodes[{i}]}})"
        )
        assert HOSTILE[i].strip()[:20] in shown.ask("document.querySelector('.side').textContent")
    shown.press("/")
    shown.type("img")
    assert shown.ask("window.broken") is None
    assert shown.ask("document.querySelectorAll('script').length") == 2
    assert shown.ask("document.querySelectorAll('img').length") == 0
    assert shown.ask("document.title") == f"{HOSTILE[0]} | {HOSTILE[0]}"


def test_what_is_written_into_the_page_does_not_run(step: Page) -> None:
    """The policy in its head holds though something got in."""
    step.ask(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.broken = 1';"
        "document.body.append(s); })()"
    )
    assert step.ask("window.broken") is None


def test_20000_nodes(browser: Page, tmp_path: Path) -> None:
    write_page(str(tmp_path / "large.html"), [view_samples.blocks(20_000)])
    shown = opened(browser, tmp_path / "large.html")
    assert shown.ask("opdock.programs[0].nodes.length") == 20_000
    shown.press("/")
    shown.type("layer_1234/act")
    shown.press("Enter")
    assert shown.ask(CHOSEN).endswith("layer_1234/act")
    assert shown.ask("opdock.panes[0].boxes.length") < 1000
    shown.press("2")
    assert shown.ask("document.querySelectorAll('.tbody .tr').length") < 100
    shown.ask("(() => { document.querySelector('.scroller').scrollTop = 1e9; })()")
    shown.wait("document.querySelector('.tbody .tr:last-child').innerText.includes('part_28')")


@pytest.mark.parametrize("title", pictures.VIEWS)
def test_pictures_are_drawn(
    browser: Page, samples: dict[str, Path], title: str, tmp_path: Path
) -> None:
    pictures.view_picture(browser, samples, title, tmp_path / "page.png")
    with Image.open(tmp_path / "page.png") as image:
        assert image.size == pictures.VIEWS[title][2]
        assert len(np.unique(np.asarray(image.convert("RGB")).reshape(-1, 3), axis=0)) > 50
