"""Builds what a release consists of: `make wheels`, `make release`.

    python tools/make_release.py [--into FOLDER] [--sbom]

For each distribution its sdist, and the wheel that is built from that; an index of them as package
installers read it (`simple/`), and their sums (SHA256SUMS). With --sbom, opdock is installed into
an environment of its own, and all that came with it is listed: as CycloneDX (`sbom.json`), and with
its licences for people (`LICENCES.md`). Two builds of one commit are the same files.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def members() -> list[Path]:
    """The folders of all distributions, core first."""
    others = sorted([*ROOT.glob("backends/*"), *ROOT.glob("plugins/*")])
    found = [ROOT / "core", *others, ROOT]
    return [folder for folder in found if (folder / "pyproject.toml").is_file()]


def epoch() -> str:
    """The time that all files in the archives have: that of the commit, or a fixed one."""
    asked = os.environ.get("SOURCE_DATE_EPOCH")
    if asked:
        return asked
    line = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "1577836800"


def build(out: Path, folders: list[Path]) -> None:
    """Sdists and wheels of some distributions, in an empty folder."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    env = {**os.environ, "SOURCE_DATE_EPOCH": epoch()}
    for folder in folders:
        line = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(folder)]
        done = subprocess.run(line, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{folder.name}: {done.stdout}{done.stderr}")
        print(done.stdout.strip().splitlines()[-1])
    index(out)
    sums = [f"{_sum(path)}  {path.name}\n" for path in _archives(out)]
    (out / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")


def _archives(out: Path) -> list[Path]:
    return sorted([*out.glob("*.whl"), *out.glob("*.tar.gz")])


def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def index(out: Path) -> None:
    """Pages of links as `pip --index-url` reads them, with a sum for each file."""
    found: dict[str, list[Path]] = defaultdict(list)
    for path in _archives(out):
        name = re.sub(r"[-_.]+", "-", path.name.split("-")[0]).lower()
        found[name].append(path)
    for name, paths in found.items():
        links = [(f"../../{p.name}#sha256={_sum(p)}", p.name) for p in paths]
        _page(out / "simple" / name / "index.html", links)
    _page(out / "simple" / "index.html", [(f"{name}/", name) for name in sorted(found)])


def _page(path: Path, links: list[tuple[str, str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [f'<a href="{html.escape(to)}">{html.escape(text)}</a><br>' for to, text in links]
    path.write_text("\n".join(["<!DOCTYPE html>", *rows, ""]), encoding="utf-8")


# ---------------------------------------------------------------- what comes with it
def list_parts(out: Path) -> None:
    """Writes `sbom.json` and `LICENCES.md` of an environment that has opdock and no more."""
    with tempfile.TemporaryDirectory() as scratch:
        venv.create(scratch, with_pip=False, symlinks=True)
        python = str(Path(scratch) / "bin/python")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
        # Ours first, and from here alone: an index may have others of these names.
        ours = ["--no-index", "--no-deps", "--find-links", str(out), "opdock-core", "opdock-cpu"]
        subprocess.run([*pip, "install", "-q", *ours, "opdock"], check=True)
        bounds = ["-c", str(ROOT / "constraints.txt")]
        wanted = ["opdock", "opdock-core[jpeg]", "opdock-cpu[jit,onednn,regex]"]
        subprocess.run([*pip, "install", "-q", *bounds, *wanted], check=True)
        tool = [str(Path(sys.executable).with_name("cyclonedx-py")), "environment", python]
        more = ["--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "library"]
        env = {**os.environ, "SOURCE_DATE_EPOCH": epoch()}
        to = ["--output-reproducible", "-o", str(out / "sbom.json")]
        subprocess.run([*tool, *more, *to], env=env, check=True)
    parts = json.loads((out / "sbom.json").read_text(encoding="utf-8"))["components"]
    (out / "LICENCES.md").write_text("\n".join([*licences(parts), ""]), encoding="utf-8")


def licences(parts: list[dict[str, Any]]) -> Iterator[str]:
    """A table of the parts of an SBOM with their licences."""
    yield "# What opdock brings, and under which licences\n"
    yield "| package | version | licence |\n| --- | --- | --- |"
    for part in sorted(parts, key=lambda p: str(p["name"]).lower()):
        names = {n for entry in part.get("licenses", []) if (n := licence_of(entry))}
        named = ", ".join(sorted(names)) or "see its own page"
        yield f"| {part['name']} | {part.get('version', '')} | {named} |"


def licence_of(entry: dict[str, Any]) -> str:
    """The name of a licence of an SBOM: an expression, an identifier, or a name."""
    told = entry.get("license", {})
    name = str(entry.get("expression") or told.get("id") or told.get("name") or "")
    # Trove classifiers, and licences whose whole text is in the place of the name.
    return name.rpartition(" :: ")[2].partition("\n")[0].strip()


def main() -> None:
    """Builds it all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=ROOT / "build/dist", help="the folder")
    parser.add_argument("--sbom", action="store_true", help="list what is installed with opdock")
    args = parser.parse_args()
    build(args.into.resolve(), members())
    if args.sbom:
        list_parts(args.into.resolve())
    print(f"{args.into}: {len(_archives(args.into))} archives")


if __name__ == "__main__":
    main()
