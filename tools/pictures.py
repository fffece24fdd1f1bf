"""Pictures of TensorBoard, of opdock's own pages and of the documentation's site, for the latter.

    python tools/pictures.py [--write docs/pictures] [--only view]

`make pictures` calls it, after `make site`. It trains the digit classifier, serves what that wrote
with TensorBoard, writes pages of a training step as `opdock view` does, and has Chromium draw these
and pages of the site, without a window.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

if __name__ == "__main__":  # as a script, it finds its like as tests do
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import view_samples
from tools.chromium import Page, browser, page

ROOT = Path(__file__).resolve().parent.parent
# Picture -> the page of TensorBoard.
PAGES = {
    "scalars": "scalars", "graph": "graphs", "distributions": "distributions",
    "projector": "projector",
}  # fmt: skip
# Milliseconds of a page's own clock, which stands still while it waits for the server.
_BUDGET = 30_000


def train(folder: Path, epochs: int = 3) -> None:
    """The demonstration, with its log in a folder."""
    command = [sys.executable, ROOT / "examples/digits.py", "--epochs", str(epochs)]
    subprocess.run([*command, "--logdir", folder], check=True, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def board(folder: Path) -> Iterator[str]:
    """The address of a TensorBoard that shows a folder."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(folder)]
    # Without the second process, it has read everything before it answers.
    command += ["--host", "127.0.0.1", "--port", "0", "--load_fast", "false"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            told = (re.search(r"http://\S+/", line) for line in server.stderr)
            yield next(filter(None, told))[0]
        finally:
            # Asked to end, it raises in whatever its main thread does, where that may be lost.
            server.kill()


def drawn(url: str, *options: str, size: tuple[int, int] = (1280, 800)) -> str:
    """What Chromium prints of a page.

    Args:
        url: the page.
        options: what is to become of it: --dump-dom, --screenshot=FILE.
        size: of the window that there would be.
    """
    with tempfile.TemporaryDirectory() as home:
        # A container's root has no sandbox; the pages are this machine's own.
        command = [browser(), "--headless=new", "--no-sandbox", "--disable-gpu"]
        command += ["--disable-dev-shm-usage"]  # a container has little
        command += [
            "--hide-scrollbars",
            f"--user-data-dir={home}",
            f"--window-size={size[0]},{size[1]}",
        ]
        command += [f"--virtual-time-budget={_BUDGET}", *options, url]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout


def picture(address: str, page: str, file: Path) -> None:
    """Writes the picture of a page of TensorBoard."""
    drawn(f"{address}?darkMode=false#{page}", f"--screenshot={file}")


# Picture -> the sample, what of it, the size, the scheme.
VIEWS = {
    "graph": ("step", "#graph&color=how", (1280, 760), "light"),
    "decisions": ("step", "#graph&select=logits/BiasAdd", (1280, 760), "dark"),
    "ops": ("step", "#ops&select=gradients/dense/MatMul_grad/MatMul", (1280, 620), "light"),
    "timeline": ("beside", "#timeline&color=how", (1280, 460), "light"),
    "memory": ("step", "#memory&color=time", (1280, 720), "light"),
    "compare": ("beside", "#compare", (1280, 700), "light"),
    "narrow": ("step", "#graph&select=conv1/Relu", (430, 860), "dark"),
}
# Picture -> the page of the site, the scheme.
SITE = {
    "index": ("index.html", "light"),
    "tutorial": ("tutorials/first-program.html", "light"),
    "how-to": ("how-to/debug-placement.html", "dark"),
    "reference": ("reference/tf/nn.html", "light"),
    "command-line": ("reference/command-line.html", "light"),
    "explanation": ("explanation/from-scratch.html", "dark"),
}
READY = "window.opdock && opdock.ready"


def view_picture(shown: Page, samples: dict[str, Path], title: str, file: Path) -> None:
    """Writes a picture of a page of `opdock view`."""
    sample, place, size, scheme = VIEWS[title]
    shown.open("about:blank")
    shown.resize(*size)
    shown.scheme(scheme)
    shown.open(f"{samples[sample].as_uri()}{place}", READY)
    shown.picture(file)


def site_page(shown: Page, path: str, scheme: str) -> None:
    """Opens a page of the site that `make site` has built, in a window of a small laptop."""
    file = ROOT / "build/site" / path
    if not file.exists():
        raise FileNotFoundError(f"{file}: make site")
    shown.open("about:blank")
    shown.resize(1280, 800)
    shown.scheme(scheme)
    shown.open(file.as_uri())


def main(words: list[str]) -> int:
    """The command."""
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--write", type=Path, default=ROOT / "docs/pictures")
    p.add_argument("--only", choices=("tensorboard", "view", "site"))
    args = p.parse_args(words)
    args.write.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "digits"
        if args.only in (None, "tensorboard"):
            train(folder)
            with board(folder) as address:
                for title, part in PAGES.items():
                    picture(address, part, args.write / f"tensorboard-{title}.png")
        if args.only in (None, "view"):
            samples = view_samples.write_samples(Path(name))
            with page() as shown:
                for title in VIEWS:
                    view_picture(shown, samples, title, args.write / f"view-{title}.png")
    if args.only in (None, "site"):
        for title, (path, scheme) in SITE.items():
            with page() as shown:  # the site remembers the scheme of its first page
                site_page(shown, path, scheme)
                shown.picture(args.write / f"site-{title}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
