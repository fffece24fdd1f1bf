"""Says which share of the uses of TensorFlow's names opdock covers, overall and by group.

    python tools/census.py FILE.csv [--missing]
    python tools/census.py FOLDER... [--missing]

The file has the columns `name` (as `tf.nn.conv2d`) and `occurrences`; names that do not begin with
`tf.` are methods of objects and are left out. A group is a module below `tf`, or below
`tf.contrib` and `tf.python`. Of folders each is a group: a repository, which is read as `opdock
check` reads it.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from opdock import survey
from opdock.mapping import coverage


@dataclass
class Group:
    """The uses of one module's names."""

    uses: int = 0
    covered: int = 0
    missing: dict[str, int] = field(default_factory=dict)


def read(path: Path) -> dict[str, Group]:
    """The groups of a census, by name.

    Raises:
        ValueError: a column is missing, or a count is no number.
    """
    groups: dict[str, Group] = defaultdict(Group)
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        if not {"name", "occurrences"} <= set(rows.fieldnames or ()):
            raise ValueError(f"{path} has no columns name and occurrences")
        for row in rows:
            name = row["name"].removeprefix("tf.")
            if name == row["name"]:
                continue
            uses = int(row["occurrences"])
            group = groups[group_of(name)]
            group.uses += uses
            if coverage.covers(name):
                group.covered += uses
            else:
                group.missing[name] = uses
    return groups


def read_folder(path: Path) -> Group:
    """What the programs of a folder use.

    Raises:
        survey.NotFoundError: there is no such folder.
    """
    report = survey.check(str(path))
    missing: dict[str, int] = defaultdict(int)
    for found in report.missing:
        missing[found.name.removeprefix("tf.")] += 1
    return Group(report.uses, report.covered, dict(missing))


def group_of(name: str) -> str:
    """The group of a name without `tf.`: "nn", "contrib.layers", or "tf" for the root's own."""
    parts = name.split(".")
    depth = 2 if parts[0] in ("contrib", "python") else 1
    return ".".join(parts[:depth]) if len(parts) > depth else "tf"


def main() -> None:
    """Prints the shares."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", type=Path, nargs="+", metavar="FILE.csv|FOLDER")
    parser.add_argument("--missing", action="store_true", help="name what is not covered")
    given = parser.parse_args()
    groups: dict[str, Group] = {}
    for path in given.paths:
        groups |= {path.name: read_folder(path)} if path.is_dir() else read(path)
    uses, covered = (sum(getattr(g, n) for g in groups.values()) for n in ("uses", "covered"))
    print(f"{covered} of {uses} uses covered ({covered / max(uses, 1):.1%})")
    for name, group in sorted(groups.items(), key=lambda item: item[1].covered - item[1].uses):
        share = group.covered / max(group.uses, 1)
        print(f"{share:7.1%}  {group.covered:6} of {group.uses:6}  {name}")
        if given.missing:
            for path, count in sorted(group.missing.items(), key=lambda item: -item[1]):
                print(f"{count:28}  tf.{path}")


if __name__ == "__main__":
    main()
