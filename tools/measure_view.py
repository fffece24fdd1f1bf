"""Times the page of `opdock view` in Chromium: how long it takes to load and to answer.

    python tools/measure_view.py [--write docs/how-to/look-at-programs.md]

Each figure is the median of several pages, from the act to the frame that shows what came of it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

if __name__ == "__main__":  # as a script, it finds its like as tests do
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from opdock.view.page import write_page
from tools.chromium import Page, page
from tools.view_samples import blocks

SIZES = (100, 2_000, 20_000)
ROUNDS = 5
# What is done -> how, in the page; `pane`, `app` and `node` stand for what they say.
ACTS = {
    "search as one types": "app.search.input.value = 'relu'; app.search.look()",
    "choose a node": "app.choose({ program: app.programs[0], node })",
    "move and scale": "pane.zoom(0.8)",
    "open all scopes": "pane.tree.openSome(1e9); pane.arrange(); pane.whole()",
    "scale with all open": "pane.zoom(1.5)",
    "open the table of ops": "app.open('ops')",
    "sort the table": "document.querySelectorAll('.th button')[4].click()",
}
BEGIN, END = "<!-- figures: make view-figures -->", "<!-- end of figures -->"
_RUN = """(async () => {
  const app = window.opdock, [pane] = app.panes;
  const nodes = app.programs[0].running, node = nodes[nodes.length >> 1];
  const begun = performance.now();
  ACT;
  await new Promise((go) => requestAnimationFrame(() => setTimeout(go)));
  return performance.now() - begun;
})()"""


def measure(shown: Page, file: Path) -> dict[str, float]:
    """Milliseconds by what is done, on a page that is loaded anew."""
    shown.open("about:blank")
    shown.open(file.as_uri(), "window.opdock && opdock.ready")
    found = {"load": float(shown.ask("opdock.ready"))}
    for title, act in ACTS.items():
        found[title] = float(shown.ask(_RUN.replace("ACT", act)))
    return found


def table() -> str:
    """The figures as a table in Markdown."""
    found: dict[int, dict[str, float]] = {}
    weights = {}
    with tempfile.TemporaryDirectory() as folder, page() as shown:
        for size in SIZES:
            file = Path(folder) / f"{size}.html"
            write_page(str(file), [blocks(size)])
            weights[size] = file.stat().st_size
            rounds = [measure(shown, file) for _ in range(ROUNDS)]
            found[size] = {k: statistics.median(r[k] for r in rounds) for k in rounds[0]}
    lines = ["| ms | " + " | ".join(f"{size:,} nodes" for size in SIZES) + " |"]
    lines.append("| --- |" + " ---: |" * len(SIZES))
    lines.append("| size of the page | " + " | ".join(
        f"{weights[size] / 1e6:.1f} MB" for size in SIZES) + " |")  # fmt: skip
    for title in ("load", *ACTS):
        lines.append(f"| {title} | " + " | ".join(
            f"{found[size][title]:.0f}" for size in SIZES) + " |")  # fmt: skip
    return "\n".join(lines)


def main(words: list[str]) -> int:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--write", type=Path, help="The page whose figures are replaced.")
    args = p.parse_args(words)
    found = table()
    if args.write is None:
        sys.stdout.write(f"{found}\n")
        return 0
    text = args.write.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    args.write.write_text(f"{before}{BEGIN}\n{found}\n{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
