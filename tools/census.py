"""Says which share of the uses of TensorFlow's names opdock covers, overall and by group.

    python tools/census.py FILE.csv [--missing] [--without contrib keras estimator tpu]
    python tools/census.py FOLDER... [--missing] [--without contrib keras] [--least 99.5]

The file has the columns `name` (as `tf.nn.conv2d`) and `occurrences`; names that do not begin with
`tf.` are methods of objects and are left out. A group is a module below `tf`, or below
`tf.contrib` and `tf.python`. Of folders each is a group: a repository, which is read as `opdock
check` reads it. `--without` leaves out modules wherever they are reached: `tf.keras` is also
`tf.compat.v1.keras` and `tf.python.keras`; with a star or a dot it is a pattern of whole names, as
`*TPU*` and `python.debug.*`. Uses of names that TensorFlow 1.15 does not have either,
of TensorFlow 2 and misspelt ones, are counted by themselves: the share is that of all others. With
`--least` the exit status is 1 where a group, or all together, have a smaller one.
"""

from __future__ import annotations

import argparse
import csv
import fnmatch
import sys
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from opdock import survey
from opdock.mapping import coverage, names


@dataclass
class Group:
    """The uses of one module's names."""

    uses: int = 0
    covered: int = 0
    others: int = 0  # of names that TensorFlow 1.15 does not have
    missing: dict[str, int] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """The share of the uses of TensorFlow 1.15's names that is covered; 1 without any."""
        own = self.uses - self.others
        return self.covered / own if own else 1.0

    def add(self, name: str, uses: int, covered: bool) -> None:
        """Counts the uses of a name."""
        self.uses += uses
        self.covered += uses * covered
        if not covered:
            self.missing[name] = self.missing.get(name, 0) + uses
            self.others += uses * (not names.table().has(name))


def read(path: Path, without: Collection[str] = ()) -> dict[str, Group]:
    """The groups of a census, by name.

    Args:
        path: the file.
        without: modules that do not count.

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
            if name == row["name"] or left_out(name, without):
                continue
            uses = int(row["occurrences"])
            groups[group_of(name)].add(name, uses, coverage.covers(name))
    return groups


def read_folder(path: Path, without: Collection[str] = ()) -> Group:
    """What the programs of a folder use; see `read`.

    Raises:
        survey.NotFoundError: there is no such folder.
    """
    report = survey.check(str(path))
    lost = {found.name for found in report.missing}
    group = Group()
    for name, uses in report.names.items():
        plain = name.removeprefix("tf.")
        if not left_out(plain, without):
            group.add(plain, uses, name not in lost)
    return group


def left_out(name: str, without: Collection[str]) -> bool:
    """Whether a name does not count: by the module in which it is, or by a pattern."""
    return top_of(name) in without or any(fnmatch.fnmatchcase(name, p) for p in without)


def top_of(name: str) -> str:
    """The module below `tf` in which a name is, whichever way leads there."""
    for way in ("compat.v1.", "compat.v2.", "python."):
        name = name.removeprefix(way)
    return name.partition(".")[0]


def group_of(name: str) -> str:
    """The group of a name without `tf.`: "nn", "contrib.layers", or "tf" for the root's own."""
    parts = name.split(".")
    depth = 2 if parts[0] in ("contrib", "python") else 1
    return ".".join(parts[:depth]) if len(parts) > depth else "tf"


def line(name: str, group: Group) -> str:
    """A row of the table."""
    return f"{group.share:8.2%}  {group.covered:7} of {group.uses:7} {group.others:7}  {name}"


def main() -> int:
    """Prints the shares."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", type=Path, nargs="+", metavar="FILE.csv|FOLDER")
    parser.add_argument("--missing", action="store_true", help="name what is not covered")
    parser.add_argument("--without", nargs="+", default=[], metavar="MODULE", help="do not count")
    parser.add_argument(
        "--least", type=float, default=0.0, metavar="PERCENT", help="or exit with 1"
    )
    given = parser.parse_args()
    groups: dict[str, Group] = {}
    for path in given.paths:
        if path.is_dir():
            groups[path.name] = read_folder(path, given.without)
        else:
            groups |= read(path, given.without)
    counts = ("uses", "covered", "others")
    whole = Group(*(sum(getattr(g, n) for g in groups.values()) for n in counts))
    print("   share  covered of    uses  others")
    for name, group in sorted(groups.items(), key=lambda item: item[1].share):
        print(line(name, group))
        if given.missing:
            for path, count in sorted(group.missing.items(), key=lambda item: -item[1]):
                print(f"{count:28}  tf.{path}: {survey.why(path)}")
    print(line(f"all {len(groups)}", whole))
    return int(min(g.share for g in (whole, *groups.values())) < given.least / 100)


if __name__ == "__main__":
    sys.exit(main())
