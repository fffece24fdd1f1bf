"""`opdock check PATH_OR_NAME`: which of TensorFlow's names a program uses that opdock lacks."""

from __future__ import annotations

import sys
from collections import Counter

import click

from opdock.cli._report import as_json


@click.command("check")
@click.argument("target", metavar="PATH_OR_NAME")
@click.option("--json", "json_output", is_flag=True, help="Print JSON.")
def command(target: str, json_output: bool) -> None:
    """Read a program or an installed library, without running it, and report what is not covered.

    It follows imports of `tensorflow` and what is assigned from it, and prints, by file and line,
    the names that opdock does not have, and those that NumPy, SciPy and others have removed.

    Exit status: 0 if all of TensorFlow's names are covered, 1 if some are not or a file cannot be
    read, 2 if there is no such path, module or distribution.
    """
    from opdock import survey

    try:
        report = survey.check(target)
    except survey.NotFoundError as e:
        click.echo(f"opdock check: {e}", err=True)
        sys.exit(2)
    if json_output:
        click.echo(as_json(report.to_dict()))
    else:
        _print(report)
    sys.exit(1 if report.missing or report.unreadable else 0)


def _print(report: object) -> None:
    from opdock.survey import Report

    assert isinstance(report, Report)
    for found in report.unreadable:
        click.echo(f"{found.file}:{found.line}: cannot be read: {found.why}")
    for found in (*report.missing, *report.removed):
        click.echo(f"{found.file}:{found.line}: {found.name}: {found.why}")
    names = Counter(f.name for f in report.missing)
    if report.missing or report.removed or report.unreadable:
        click.echo()
    click.echo(
        f"{report.files} files, {report.uses} uses of TensorFlow's names: {report.covered} covered "
        f"({report.share:.1%}), {len(names)} names not covered"
    )
    for name, count in names.most_common(20):
        click.echo(f"  {count:5}  {name}")
