"""Times every op that a program can name, forward and backward, beside other libraries.

    python benchmarks/ops.py --peer tensorflow=PYTHON                  # all, some minutes
    python benchmarks/ops.py 'Conv2D*' '*.grad.large' --peer ...       # some of it
    python benchmarks/ops.py --device jax:0 --peer jax=PYTHON --peer cpu=PYTHON
    python benchmarks/ops.py --peer ... --markdown ops.md              # a page of all rows
    python benchmarks/ops.py '*.usual' --peer ... --write docs/benchmarks.md
    python benchmarks/ops.py --data a.json b.json --json a.json --write docs/benchmarks.md
    python benchmarks/ops.py '*.usual' --cpu haswell --cpu nehalem     # with narrower vectors
    python benchmarks/ops.py --peer ... --floor benchmarks/ops.json    # is any much slower now?
    python benchmarks/ops.py --write-choices                           # what are the rows of?

A row is an op at a size: "MatMul.usual", "MatMul.grad.large"; "MatMul.usual.float64" is one of
another element type. Its arguments are a conformance sample's, grown (`registry/enlarge.py`); which
sample is grown how is kept in `registry/choices.json`. Both libraries run the same GraphDef in
turns, and a row on whose result they differ has no ratio.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import datetime as dt
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import compare
import floors
import narrower
import options
import report
from compare import Effort, Setting, Side, Worker
from registry import programs, reasons
from registry.programs import Row
from twins import op_names
from workloads.agree import apart

EFFORT = Effort(rounds=5, seconds=0.04, least=2, warm=0.04, pause=0.0, patience=240.0)
TOLERANCE = 1e-3
HALF = 2e-2
"""The same where numbers have ten bits, some of whose sums do as well."""


class Pair:
    """A process of each library, started again after one of them ended."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.workers: dict[str, Worker] = {}

    def measure(self, folder: Path, tolerance: float) -> dict[str, Any]:
        """Seconds of a step in each library, or what was wrong."""
        for side in self.setting.sides:
            if side.library not in self.workers:
                self.workers[side.library] = Worker(side, self.setting)
        heads: dict[str, Any] = {}
        wrong: dict[str, Any] = {}
        for library, worker in self.workers.items():
            heard = worker.ask("load", folder=str(folder))
            if "missing" not in heard:
                (wrong if "error" in heard else heads)[library] = heard
        if "opdock" in heads:
            ours = heads["opdock"]["values"]
            for library in heads.keys() - {"opdock"}:
                gap = apart(ours, heads[library]["values"])
                if not gap <= tolerance:
                    wrong[library] = {"error": f"results are {gap:.1e} apart"}
        found: dict[str, Any] = {}
        if "opdock" in heads and heads.keys() - wrong.keys() - {"opdock"}:
            times, ratios = compare.turns(self.setting.effort, self.workers, heads, wrong)
            found = {
                "steps": {n: rounded(statistics.median(t)) for n, t in times.items() if t},
                "ratios": {name: rounded(r["median"]) for name, r in ratios.items()},
            }
        if how := heads.get("opdock", {}).get("how"):
            found["how"] = how
        if wrong:
            self.close([name for name, worker in self.workers.items() if worker.ended])
            found["wrong"] = {
                n: why(heard.get("error") or heard["wrong"]) for n, heard in wrong.items()
            }
        return found

    def close(self, libraries: Sequence[str]) -> None:
        """Ends the processes of these libraries."""
        for library in libraries:
            self.workers.pop(library).close()


def why(text: str) -> str:
    """What was wrong, without the name of the machine."""
    return text.partition(" in binary running on ")[0]


def table(name: str) -> str:
    """Which table a row is in."""
    last = name.rsplit(".", 1)[-1]
    return last if last in programs.SIZES else "types"


def usual(row: Row) -> bool:
    """Whether it is what most programs compute."""
    return row.size == "usual" and not row.backward and not row.also


def rounded(value: float) -> float:
    """As much of a figure as means something."""
    return float(f"{value:.4g}")


def measured(setting: Setting, chosen: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """The rows, as they come."""
    pair, choices = Pair(setting), programs.choices()
    for row in chosen:
        with tempfile.TemporaryDirectory() as place:
            about = programs.write(row, Path(place), choices.get(row.name))
            if about is None:
                continue
            tolerance = HALF if row.also == "float16" else TOLERANCE
            times = pair.measure(Path(place), tolerance)
            found = {"name": row.name, "about": about["about"], **times}
        print(told(found), file=sys.stderr, flush=True)
        yield found
    pair.close(list(pair.workers))


def told(found: dict[str, Any]) -> str:
    """One row in a line."""
    if not found.get("ratios"):
        return f"{found['name']}: {found.get('wrong', 'no peer computes it')}"
    times = ", ".join(f"{k} {report.milliseconds(v)} ms" for k, v in found["steps"].items())
    ratios = ", ".join(f"{v:.2f} of {k}" for k, v in found["ratios"].items())
    wrong = "".join(f"; {name}: {text}" for name, text in found.get("wrong", {}).items())
    return f"{found['name']}: {times}; {ratios} ({found['about']}){wrong}"


def page(about: dict[str, Any], rows: Sequence[dict[str, Any]], peer: str) -> str:
    """All rows, the slowest beside the peer first, and what was not compared."""
    compared = [r for r in rows if peer in r.get("ratios", ())]
    compared.sort(key=lambda r: r["ratios"][peer])
    body = [
        (
            r["name"], r["about"], report.milliseconds(r["steps"]["opdock"]),
            report.milliseconds(r["steps"][peer]), report.number(r["ratios"][peer]),
        )
        for r in compared
    ]  # fmt: skip
    wrong = [
        (r["name"], "; ".join(f"{name}: {text}" for name, text in r["wrong"].items()))
        for r in rows
        if "wrong" in r and peer not in r.get("ratios", ())
    ]
    head = ", ".join(f"{key} {value}" for key, value in about.items())
    table = report.rows_of(("row", "arguments", "opdock ms", f"{peer} ms", "ratio"), body, words=2)
    parts = [f"# Every op beside {peer}", head, summary(compared, peer), table]
    if wrong:
        parts += ["Not compared:", report.rows_of(("row", "why"), wrong, words=2)]
    return "\n\n".join(parts) + "\n"


def section(about: dict[str, Any], rows: Sequence[dict[str, Any]], peer: str) -> str:
    """What a page says of them: how many, and those that are slower, each with its reason."""
    compared = [r for r in rows if peer in r.get("ratios", ())]
    slower = sorted((r for r in compared if r["ratios"][peer] < 1), key=lambda r: r["ratios"][peer])
    body = [
        (
            r["name"], report.milliseconds(r["steps"]["opdock"]),
            report.milliseconds(r["steps"][peer]), f"{r['ratios'][peer]:.2f}",
            f"{r['about']}: {reasons.reason(r['name'], r['ratios'][peer])}",
        )
        for r in slower
    ]  # fmt: skip
    heads = ("row", "opdock, ms", f"{peer}, ms", f"{peer} / opdock", "arguments, and why")
    table = [report.rows_of(heads, body)] if body else []
    wrong = sum("wrong" in r for r in rows if peer not in r.get("ratios", ()))
    told = f"{summary(compared, peer)}; {wrong} more that one of both does not run, or otherwise."
    return "\n\n".join([report.line(about, {}), told, *table])


def lowest_section(about: dict[str, Any], rows: Sequence[dict[str, Any]], peer: str) -> str:
    """How many rows there are, on a device how its ops are computed, and the lowest ten."""
    compared = [r for r in rows if peer in r.get("ratios", ())]
    lowest = sorted(compared, key=lambda r: r["ratios"][peer])[:10]
    ways = collections.Counter(way for r in compared for way in r.get("how", ()))
    body = [
        (
            r["name"], *([", ".join(r.get("how", ()))] if ways else []), r["about"],
            report.milliseconds(r["steps"]["opdock"]), report.milliseconds(r["steps"][peer]),
            f"{r['ratios'][peer]:.2f}",
        )
        for r in lowest
    ]  # fmt: skip
    by = ("by",) if ways else ()
    heads = ("row", *by, "arguments", "opdock, ms", f"{peer}, ms", f"{peer} / opdock")
    told = ", ".join(f"{count} {way}" for way, count in ways.most_common())
    table = [report.rows_of(heads, body, words=2 + len(by))] if body else []
    head = summary(compared, peer) + (f" ({told})" if told else "")
    return "\n\n".join((report.line(about, {}), f"{head}. The lowest:", *table))


def summary(compared: Sequence[dict[str, Any]], peer: str) -> str:
    """How many rows there are, how many are slower than the peer, and the mean."""
    ratios = [r["ratios"][peer] for r in compared]
    if not ratios:
        return "no rows"
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    below = sum(r < 1 for r in ratios)
    return f"{len(ratios)} rows, {below} below 1.0 of {peer}, geometric mean {mean:.2f}"


def main(words: Sequence[str]) -> int:
    """Does what the words of the command line say."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="name",
        help="rows, or patterns; all without one, on a device those of common ops of usual size",
    )
    parser.add_argument("--peer", action="append", default=[], type=options.op_peer)
    parser.add_argument("--threads", type=options.positive, default=options.cores())
    parser.add_argument(
        "--processor", action="store_true",
        help="count the processors' time, with --threads 1 on a machine with other work",
    )  # fmt: skip
    parser.add_argument("--device", help="where opdock computes, for instance opencl:0")
    parser.add_argument(
        "--cpu", action="append", default=[], choices=sorted(narrower.PROCESSORS),
        help="beside opdock itself as on a processor with narrower vectors; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--rounds", type=options.positive, default=EFFORT.rounds, help="turns of each side"
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write a page of all rows")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures")
    parser.add_argument(
        "--resume", action="store_true", help="leave out the rows that the file of --json has"
    )
    parser.add_argument(
        "--data", type=Path, nargs="+", metavar="FILE",
        help="take figures that --json kept, the last ones of each row, and measure nothing; "
        "--json keeps all of them",
    )  # fmt: skip
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="put the rows that are slower into a page"
    )
    parser.add_argument(
        "--floor", type=Path, metavar="FILE",
        help="measure the rows that this file has ratios of, and fail if some are below",
    )  # fmt: skip
    parser.add_argument("--write-floor", type=Path, metavar="FILE", help="write that file")
    parser.add_argument(
        "--write-choices", action="store_true",
        help="look for the calls of these rows anew, and keep which they are",
    )  # fmt: skip
    args = parser.parse_args(words)
    if (args.floor or (args.write_floor and not args.data)) and len(args.peer) != 1:
        parser.error("floors are ratios to one peer")
    if args.resume and not (args.json and args.json.exists()):
        parser.error("--resume goes on with a file of --json, and there is none")
    if args.data:
        about, found = kept(args.data)
        if args.json:
            keep(args.json, about, found)
        finish(args, about, found, [side.library for side in args.peer] or ["tensorflow"])
        return 0
    known = {row.name: row for row in programs.rows()}
    least = floors.read(args.floor) if args.floor else {}
    names = [name for name in known if name in least] if args.floor else list(known)
    if args.device and not args.names:
        names = [n for n, row in known.items() if row.op in op_names.COMMON and usual(row)]
    chosen = [known[name] for name in options.chosen(args.names, names)]
    if args.write_choices:
        programs.choose(chosen)
        return 0
    sides = [Side("opdock"), *args.peer]
    sides += [Side(cpu, variables=narrower.PROCESSORS[cpu].variables) for cpu in args.cpu]
    setting = Setting(
        sides, args.threads, args.device, effort=dataclasses.replace(EFFORT, rounds=args.rounds),
        processor=args.processor, settled=True,
    )  # fmt: skip
    if args.device:  # which is asked for without a device, or a worker would start on it
        plain = dataclasses.replace(setting, device=None)
        setting = dataclasses.replace(setting, device=compare.placed(args.device, plain))
    if args.floor and (asked := tuple(told_of(setting).values())) != floors.how(args.floor):
        parser.error(f"these floors were measured with {floors.how(args.floor)}, not {asked}")
    about = {
        **report.machine(),
        **told_of(setting),
        **({"device": args.device} if args.device else {}),
        "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
        "command": options.quoted(words, "ops.py"),
    }
    found = kept([args.json])[1] if args.resume else []
    have = {row["name"] for row in found}
    for row in measured(setting, [row for row in chosen if row.name not in have]):
        found.append(row)
        if args.json:  # after each row: all of them take long
            keep(args.json, about, found)
    finish(args, about, found, [side.library for side in args.peer])
    return guarded(setting, known, least, found) if args.floor else 0


def kept(files: Sequence[Path]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What was measured, by the first file, and the rows of all.

    What a later file says of a row beside a library takes the place of what was said.
    """
    data = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    rows: dict[str, dict[str, Any]] = {}
    for row in (row for one in data for row in one["rows"]):
        old = rows.get(row["name"], {})
        both = {key: {**old.get(key, {}), **row[key]} for key in ("steps", "ratios") if key in row}
        rows[row["name"]] = {**old, **row, **both}
    return data[0]["about"], [rows[name] for name in sorted(rows)]


def keep(file: Path, about: dict[str, Any], rows: Sequence[dict[str, Any]]) -> None:
    """Keeps the figures, a line for each row, so that two files can be compared by lines."""
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    file.write_text(f'{{"about": {json.dumps(about)}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")


def finish(
    args: argparse.Namespace, about: dict[str, Any], found: Sequence[dict[str, Any]],
    peers: Sequence[str],
) -> None:  # fmt: skip
    """Writes what was asked for beside each peer that rows have ratios to, and each processor."""
    have = {name for row in found for name in row.get("ratios", ())}
    for peer in peers:
        if peer in have:
            written(args, about, found, peer)
    if args.write and have & narrower.PROCESSORS.keys():
        report.replace(args.write, {"benchmarks: narrower": narrower.section(about, found)})


def written(
    args: argparse.Namespace, about: dict[str, Any], found: Sequence[dict[str, Any]], peer: str
) -> None:
    """Prints how many rows are slower than a peer, and writes what was asked for."""
    print(summary([r for r in found if peer in r.get("ratios", ())], peer))
    if args.markdown:
        args.markdown.write_text(page(about, found, peer), encoding="utf-8")
    if args.write:
        if "device" in about:
            name = f"benchmarks: ops on {about['device']} beside {peer}"
            report.replace(args.write, {name: lowest_section(about, found, peer)})
        else:
            write_tables(args.write, about, found, peer)
    if args.write_floor:
        floors.write(args.write_floor, about, found, peer)


def write_tables(
    page: Path, about: dict[str, Any], found: Sequence[dict[str, Any]], peer: str
) -> None:
    """Puts each table that has rows into a page; beside TensorFlow all that are slower count."""
    tables: dict[str, list[dict[str, Any]]] = collections.defaultdict(list)
    for row in found:
        tables[table(row["name"])].append(row)
    for name, rows in tables.items():
        title = "benchmarks: ops" + ("" if name == "usual" else f", {name}")
        if peer == "tensorflow":
            report.replace(page, {title: section(about, rows, peer)})
        else:
            report.replace(page, {f"{title}, beside {peer}": lowest_section(about, rows, peer)})


def told_of(setting: Setting) -> dict[str, Any]:
    """How it was measured."""
    clock = "the processors'" if setting.processor else "the wall's"
    return {"threads": setting.threads, "clock": clock}


def guarded(
    setting: Setting, known: dict[str, Row], least: dict[str, float], found: list[dict[str, Any]]
) -> int:
    """Names the rows that are below their floors twice; the exit status."""
    peer = setting.sides[1].library
    suspects = [known[name] for name in floors.below(least, found, peer)]
    again = floors.below(least, measured(setting, suspects), peer)
    for name in again:
        print(f"{name} is below {least[name]} of {peer}")
    return int(bool(again))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
