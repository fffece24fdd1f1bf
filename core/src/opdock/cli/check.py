"""`opdock check PATH_OR_NAME`: which of TensorFlow's names a program uses that opdock lacks."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Final

import click

from opdock.cli._command import Command, Wrong, emit, json_option
from opdock.cli._screen import working

_KEYS: Final = {
    "files": "how many were read",
    "uses": "uses of TensorFlow's names in them",
    "covered": "how many of those opdock has",
    "share": "the same as a share, from 0 to 1",
    "missing": "names that opdock lacks: file, line, name, why",
    "refused": "names that are there but raise where they are called, the same",
    "removed": "names that NumPy, SciPy and others have removed, the same",
    "outdated": "what Python 2 or TensorFlow before 1.0 had, the same",
    "unreadable": "files that are no Python, the same",
}


@click.command(
    "check", cls=Command, example="opdock check train.py", keys=_KEYS,
    found="a name is not covered, or raises, a file cannot be read, or is of Python 2",
)  # fmt: skip
@click.argument("target", metavar="PATH_OR_NAME")
@json_option
def command(target: str, json_output: bool) -> None:
    """Read a program or an installed library, without running it, and report what is not covered.

    It follows imports of `tensorflow` and what is assigned from it, and prints, by file and line,
    the names that opdock does not have, those whose calls raise, such as the one that enables eager
    execution, those that NumPy, SciPy and others have removed, and what is of Python 2 or of
    TensorFlow before 1.0 and has to be changed.
    """
    from opdock import survey

    try:
        with working(f"reading {target}"):
            report = survey.check(target)
    except survey.NotFoundError as e:
        raise Wrong(str(e)) from None
    if json_output:
        emit(report.to_dict())
    else:
        _print(report)
    sys.exit(1 if report.broken else 0)


def _print(report: object) -> None:
    from opdock.survey import Report

    assert isinstance(report, Report)
    for found in report.unreadable:
        click.echo(f"{found.file}:{found.line}: cannot be read: {found.why}")
    for found in (*report.missing, *report.refused, *report.outdated, *report.removed):
        click.echo(f"{found.file}:{found.line}: {found.name}: {found.why}")
    names = Counter(f.name for f in report.missing)
    if report.broken or report.removed:
        click.echo()
    click.echo(
        f"{report.files} files, {report.uses} uses of TensorFlow's names: {report.covered} covered "
        f"({report.share:.1%}), {len(names)} names not covered"
    )
    for name, count in names.most_common(20):
        click.echo(f"  {count:5}  {name}")
