"""Writes docs/reference/coverage.md: TensorFlow 1.15's public names, and which of them are there.

Run `make coverage` after a change of the public names; a test fails when the page is stale. Which
devices have kernels for an op comes from the pages of docs/conformance/.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import get_args

from opdock.mapping import coverage, names, removed

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/reference/coverage.md"
HEAD = """<!-- written by tools/make_coverage.py: `make coverage` -->
# Coverage of TensorFlow 1.15's public interface

Every public name of TensorFlow 1.15, as its own interface files list them, and whether opdock has
it: under `import opdock as tf` as under `opdock run`. Names *in a library* are looked up in the
library that part of TensorFlow has become, an [extra](../dependencies.md) of opdock: its version
says which of them it has. *Planned* names are not there yet; *out* says why a name is not meant to
come. Ops are listed under [`tf.raw_ops`](#tfraw_ops), those that are missing with what they are
for. For a function that is named after an op, the last column has the devices that pass the
conformance suite for that op ([their pages](../conformance.md)); an op without a kernel on a device
runs on another one, as `Session.explain` tells.

`opdock check PATH` says which of these names, and of TensorFlow's internal ones, a program uses
that are not there.
"""
STATUSES = get_args(coverage.Status)
# How the names of each kind are announced, in the order of the page.
SAID = {
    "there": "There", "planned": "Planned", "library": "In the library", "out": "Out",
}  # fmt: skip
DEVICES = ("cpu", "cuda", "opencl", "torch", "jax", "echo")


def devices_of_ops() -> dict[str, list[str]]:
    """Op type -> the devices whose pages have a check mark in its row."""
    found: dict[str, list[str]] = defaultdict(list)
    for device in DEVICES:
        page = ROOT / f"docs/conformance/{device}.md"
        if page.exists():
            for op in re.findall(
                r"^\| (\w+) \|.*✓", page.read_text(encoding="utf-8"), re.MULTILINE
            ):
                found[op].append(device)
    return found


def render() -> str:
    """The page."""
    by_module: dict[str, list[coverage.Entry]] = defaultdict(list)
    for entry in coverage.entries():
        by_module[entry.path.rpartition(".")[0]].append(entry)
    lines = [HEAD, "| module | there | in a library | planned | out |", f"| --- |{' --: |' * 4}"]
    for module, entries in sorted(by_module.items()):
        counts = [sum(e.status == s for e in entries) for s in STATUSES]
        lines.append(
            f"| [`{_title(module)}`](#{_anchor(module)}) | {' | '.join(map(str, counts))} |"
        )
    total = [sum(e.status == s for e in coverage.entries()) for s in STATUSES]
    lines += [f"| **all** | {' | '.join(f'**{n}**' for n in total)} |", ""]
    devices = devices_of_ops()
    for module, entries in sorted(by_module.items()):
        lines += _section(module, entries, devices)
    return "\n".join([*lines, *_old_names()]).rstrip() + "\n"


def _title(module: str) -> str:
    return f"tf.{module}" if module else "tf"


def _anchor(module: str) -> str:
    return _title(module).replace(".", "")


def _section(
    module: str, entries: list[coverage.Entry], devices: dict[str, list[str]]
) -> list[str]:
    lines = [f"## {_title(module)}", ""]
    there = [e for e in entries if e.status == "there"]
    if there:
        lines += ["| there | kind | devices |", "| --- | --- | --- |"]
    for entry in there:
        op = coverage.op_of(entry.path) if entry.kind == "function" else None
        has = " ".join(devices.get(op, [])) if op is not None else ""
        lines.append(f"| `{entry.path}` | {entry.kind} | {has} |")
    if there:
        lines.append("")
    noted: dict[str, list[str]] = defaultdict(list)
    for entry in sorted(entries, key=lambda e: list(SAID).index(e.status)):
        if entry.status != "there":
            note = f" ({entry.note})" if entry.note else ""
            noted[f"{SAID[entry.status]}{note}"].append(f"`{entry.path.rpartition('.')[2]}`")
    for note, names_ in noted.items():
        lines += [f"{note}: {', '.join(names_)}.", ""]
    return lines


def _old_names() -> list[str]:
    """The names from before 1.0 that work."""
    lines = ["## Names from before TensorFlow 1.0", "", "| old | now |", "| --- | --- |"]
    for path, now in sorted(removed.renamed().items()):
        if path not in names.table().public.get("", {}):
            lines.append(f"| `tf.{path}` | `{now}` |")
    return lines


def main() -> int:
    """Writes the page; with --check only says whether it is current."""
    text = render()
    stale = not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text
    if "--check" in sys.argv:
        print("docs/reference/coverage.md is stale: run `make coverage`" if stale else "current")
        return int(stale)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
