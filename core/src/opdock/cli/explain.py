"""`opdock explain GRAPH`: where each op of a frozen graph would run here, and why."""

from __future__ import annotations

from pathlib import Path

import click

from opdock import errors
from opdock.cli._graphs import Wish, explain_file
from opdock.cli._report import as_json


@click.command("explain")
@click.argument("graph", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--fetch", "fetches", multiple=True, help="Tensor or op to run (default: the outputs)."
)
@click.option(
    "--feed",
    "feeds",
    multiple=True,
    metavar="NAME=2,3",
    help="Shape of a placeholder (default: 1s).",
)
@click.option("--device", help="Place everything that names no device here.")
@click.option("--no-soft", is_flag=True, help="Do not move ops off the device that they name.")
@click.option("--rejections", is_flag=True, help="Show why each other kernel lost.")
@click.option("--time", "timed", is_flag=True, help="Run it, and show what each node took.")
@click.option("--json", "json_output", is_flag=True, help="Print JSON.")
def command(
    graph: Path,
    fetches: tuple[str, ...],
    feeds: tuple[str, ...],
    device: str | None,
    no_soft: bool,
    rejections: bool,
    timed: bool,
    json_output: bool,
) -> None:
    """Say where each op of a GraphDef or SavedModel would run, with which kernel, and why."""
    try:
        found = explain_file(graph, Wish(fetches, feeds, device, not no_soft, timed))
    except (errors.OpError, ValueError, KeyError, TypeError, OSError, RuntimeError) as e:
        raise click.ClickException(str(e)) from e
    if json_output:
        click.echo(as_json(found.to_dict()))
        return
    click.echo(found.table(rejections=rejections))
    click.echo()
    click.echo(found.summary())
