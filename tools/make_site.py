"""Builds the documentation's site, which needs no network to be read: `make site`.

    python tools/make_site.py [--serve | --versioned | --lay-out FOLDER]

The pages are those of docs/, README and CONTRIBUTING, and a page for each of TensorFlow's public
modules with the signature and the docstring of every name in it. `mkdocs.yml` orders them. A page
that it leaves out and a link that leads nowhere are errors. The site is in build/site; with
--versioned in build/sites/VERSION, beside those of other versions, among which a menu chooses.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import make_reference

import opdock as tf
from opdock.mapping import coverage

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "build/pages"
# What stands outside of docs/, and what it is called on the site.
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
}
API = "reference/tf"


def lay_out(folder: Path) -> None:
    """Puts all pages into one folder, with their links to each other as they are there."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder)
    for name, called in OUTSIDE.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        (folder / called).write_text(moved(text), encoding="utf-8")
    for path in folder.rglob("*.md"):
        path.write_text(titled(path.read_text(encoding="utf-8")), encoding="utf-8")
    for module, entries in by_module().items():
        path = folder / page_of(module)
        path.parent.mkdir(exist_ok=True)
        path.write_text(module_page(module, entries), encoding="utf-8")


def moved(text: str) -> str:
    """A page of the root, as it is beside the pages of docs/."""
    text = text.replace("](docs/", "](")
    for name, called in OUTSIDE.items():
        text = text.replace(f"]({name})", f"]({called})")
    return text


def titled(text: str) -> str:
    """Blocks of code with what the tests read behind their language as the site shows it."""
    text = re.sub(r"^( *```\w+) file=(\S+)$", r'\1 title="\2"', text, flags=re.MULTILINE)
    return re.sub(r"^( *```\w+) (?:exit=\d+|long)$", r"\1", text, flags=re.MULTILINE)


def unread(site: Path) -> list[Path]:
    """Pages with a block of code, by its first line, that was taken for text."""
    pages = ((p, p.read_text(encoding="utf-8")) for p in site.rglob("*.html"))
    return [p for p, text in pages if re.search(r"<p>```\w", text)]


# ---------------------------------------------------------------- public names
def by_module() -> dict[str, list[coverage.Entry]]:
    """TensorFlow's public names that are there, by module, each object once."""
    found: dict[str, list[coverage.Entry]] = defaultdict(list)
    for entry in sorted(coverage.entries(), key=lambda e: e.path):
        module = entry.path.rpartition(".")[0]
        if entry.status == "there" and not entry.path.startswith("compat.v"):
            found[module].append(entry)
    return found


def page_of(module: str) -> str:
    """The page of a module."""
    return f"{API}/{module or 'index'}.md"


def value_of(path: str) -> Any:
    """What a public name stands for."""
    value: Any = tf
    for part in path.split("."):
        value = getattr(value, part)
    return value


def module_page(module: str, entries: list[coverage.Entry]) -> str:
    """The page of one module."""
    title = f"tf.{module}" if module else "tf"
    parts = [f"# {title}\n"]
    if not module:
        below = sorted(m for m in by_module() if m)
        parts.append(" · ".join(f"[`tf.{m}`]({m}.md)" for m in below) + "\n")
    for entry in entries:
        parts.append(section(title, entry.path.rpartition(".")[2], value_of(entry.path)))
    return "\n".join(parts)


def section(title: str, name: str, value: Any) -> str:
    """The section of one name: its signature, what it is, and the members of a class."""
    lines = [f"## `{title}.{name}`\n"]
    if doc := make_reference.own_doc(value):
        if not inspect.ismodule(value):
            lines.append(f"```python\n{name}{signature(value)}\n```\n")
        lines += make_reference.rendered(doc)
    else:
        lines.append(f"`{value!r}`")
    if inspect.isclass(value):
        lines += ["", *make_reference.members(value)]
    # What looks like a link in a docstring is an index, as in `x[i](y)`.
    return make_reference.tidy(re.sub(r"\]\(", r"]\\(", "\n".join(lines)))


def signature(value: Any) -> str:
    """The parameters with their defaults, one a line where there are many."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    plain = [p.replace(annotation=p.empty) for p in found.parameters.values()]
    text = str(found.replace(parameters=plain, return_annotation=found.empty))
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    return text if len(text) < 70 else "(\n" + "".join(f"    {p},\n" for p in plain) + ")"


def versioned() -> list[str]:
    """What has mkdocs build this version beside others, in whose list it joins."""
    sites = ROOT / "build/sites"
    sites.mkdir(parents=True, exist_ok=True)
    listed = {p.parent.name for p in sites.glob("*/index.html")} | {tf.__version__}
    latest = max(listed, key=lambda v: [int(n) for n in re.findall(r"\d+", v)])
    entries = [
        {"version": v, "title": v, "aliases": ["latest"] if v == latest else []}
        for v in sorted(listed, reverse=True)
    ]
    (sites / "versions.json").write_text(json.dumps(entries, indent=1) + "\n", encoding="utf-8")
    config = ROOT / "build/mkdocs.yml"
    config.write_text(
        "INHERIT: ../mkdocs.yml\ndocs_dir: pages\nextra: {version: {provider: mike}}\n",
        encoding="utf-8",
    )
    return ["-f", str(config), "-d", str(sites / tf.__version__)]


def main() -> None:
    """Builds the site, or shows it while it is worked on."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--serve", action="store_true", help="serve it on localhost")
    parser.add_argument("--lay-out", type=Path, metavar="FOLDER", help="write the pages, and end")
    parser.add_argument("--versioned", action="store_true", help="build it beside other versions")
    given = parser.parse_args()
    lay_out(given.lay_out or PAGES)
    if given.lay_out:
        return
    build = ["build", "--strict", *(versioned() if given.versioned else ["-d", "build/site"])]
    words = ["serve"] if given.serve else build
    status = subprocess.run([sys.executable, "-m", "mkdocs", *words], cwd=ROOT, check=False)
    if found := unread(ROOT / "build/site"):
        sys.exit(f"blocks of code were not read as such: {', '.join(map(str, found))}")
    sys.exit(status.returncode)


if __name__ == "__main__":
    main()
