"""The command line of the suite: what it takes, what it refuses, and how it is quoted."""

from __future__ import annotations

import argparse
import fnmatch
import os
import shlex
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import plots
from busy import WAYS
from cases import CASES
from compare import OWN, PEERS, Side
from workloads.table import ALL

CURVES = ("graph_curve", "batch_curve")
NAMES = (*CASES, *ALL, *CURVES)
FILES = ("--write", "--markdown", "--json", "--data")


def parser(description: str) -> argparse.ArgumentParser:
    """All options."""
    p = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument(
        "names", nargs="*", metavar="name", help="what to measure, or patterns; all without one"
    )
    p.add_argument("--list", action="store_true", help="print the names and what they measure")
    p.add_argument("--smoke", action="store_true", help="check each workload's answer, time none")
    p.add_argument("--full", action="store_true", help="long turns and whole curves")
    p.add_argument(
        "--peer",
        action="append",
        default=[],
        type=peer,
        metavar="LIBRARY=PYTHON",
        help=f"compare with {', '.join(PEERS)} of that interpreter; repeatable",
    )
    p.add_argument("--peer-gpu", action="store_true", help="let the peers use a GPU")
    p.add_argument("--device", metavar="NAME", help="where opdock computes, for instance opencl:0")
    p.add_argument(
        "--threads", type=positive, default=cores(), help="of each library (default: all cores)"
    )
    p.add_argument(
        "--busy",
        choices=WAYS,
        help="ratios on a busy machine: beside processes, on one processor's time, beside tests",
    )
    p.add_argument(
        "--processor",
        action="store_true",
        help="measure the time of processors, all threads together, not the time that passes",
    )
    p.add_argument("--write", type=Path, metavar="PAGE", help="replace the tables in this page")
    p.add_argument("--markdown", type=Path, metavar="FILE", help="write a page of its own")
    p.add_argument("--json", type=Path, metavar="FILE", help="keep the figures as JSON")
    p.add_argument(
        "--data", type=Path, metavar="FILE", help="take the figures that --json kept; measure none"
    )
    p.add_argument(
        "--plot",
        action="store_true",
        help="draw SVGs into a folder called like the page, beside it",
    )
    p.add_argument("--strict", action="store_true", help="exit 1 when a target is missed")
    p.add_argument("--case", choices=sorted(CASES), help=argparse.SUPPRESS)
    return p


def cores() -> int:
    """Those that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def positive(text: str) -> int:
    """A count."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no count from 1 on")
    return int(text)


def peer(text: str, known: Sequence[str] = PEERS) -> Side:
    """LIBRARY=PYTHON, where both are known."""
    library, _, python = text.partition("=")
    if library not in known or not python:
        raise argparse.ArgumentTypeError(
            f"{text!r}: write LIBRARY=PYTHON with a library of {', '.join(known)}"
        )
    found = shutil.which(os.path.expanduser(python))
    if found is None:
        raise argparse.ArgumentTypeError(f"{library}: {python!r} is no program")
    return Side(library, os.path.abspath(found))  # not resolved: a venv's python is a link


def op_peer(text: str) -> Side:
    """The same for ops: NumPy, and beside a device opdock's own CPU and PyOpenCL's arrays."""
    return peer(text, (*PEERS, "numpy", "pyopencl", OWN))


def check(p: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Refuses what does not go together, before anything is measured."""
    for name in args.names:
        if not fnmatch.filter(NAMES, name):
            p.error(f"nothing is called {name}; there are {', '.join(NAMES)}")
    about_devices = [n for n in (*ALL, *CURVES) if n in CURVES or not ALL[n].host]
    if args.device and not args.smoke and not chosen(args.names, about_devices):
        p.error(f"--device is about workloads and curves: {', '.join(about_devices)}")
    libraries = [side.library for side in args.peer]
    if len(set(libraries)) < len(libraries):
        p.error("each peer once: its name is its column")
    if args.peer_gpu and not args.peer:
        p.error("--peer-gpu is about peers, and there is none")
    if args.busy and not args.peer:
        p.error("--busy is about ratios to peers, and there is none")
    if args.busy and (args.write or args.markdown or args.data or args.smoke):
        p.error("--busy prints ratios, which go into no page")
    if args.write and args.names:
        p.error("--write replaces whole tables, so it takes no names")
    if args.write and not args.write.is_file():
        p.error(f"--write: there is no page {args.write}")
    if args.data and not args.data.is_file():
        p.error(f"--data: there is no file {args.data}")
    if args.smoke and (args.markdown or args.json or args.data or args.plot):
        p.error("--smoke has no figures to keep or to draw")
    if args.plot and not (args.write or args.markdown):
        p.error("--plot draws beside a page: name one by --write or --markdown")
    if args.plot and find_spec("matplotlib") is None:
        p.error(plots.MISSING)


def chosen(names: Sequence[str], among: Sequence[str]) -> list[str]:
    """Those of `among` that any of the patterns names, in their order; all without a pattern."""
    return [one for one in among if not names or any(fnmatch.fnmatch(one, n) for n in names)]


def quoted(words: Sequence[str], program: str = "run.py") -> str:
    """The command as a page may hold it: without the paths of one machine."""
    split = [part for word in words for part in assigned(word)]
    kept = []
    for before, word in zip(["", *split], split):
        if before == "--peer":
            kept.append(f"{word.partition('=')[0]}=PYTHON")
        elif before in FILES and os.path.isabs(word):
            kept.append(Path(word).name)
        else:
            kept.append(word)
    if program == "run.py" and kept[:2] == ["--write", "docs/benchmarks.md"]:
        rest = shlex.join(kept[2:])
        return f'make bench ARGS="{rest}"' if rest else "make bench"
    return f"python benchmarks/{program} {shlex.join(kept)}".rstrip()


def assigned(word: str) -> list[str]:
    """--option=value as two words."""
    option, equals, value = word.partition("=")
    return [option, value] if equals and option.startswith("--") else [word]
