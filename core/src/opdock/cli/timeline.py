"""`opdock timeline`: turn recorded run metadata into a Chrome trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from opdock.cli._command import Command, Wrong
from opdock.cli._screen import working


@click.command("timeline", cls=Command, example="opdock timeline run.pb -o trace.json")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the trace; standard output by default.",
)  # fmt: skip
@click.option("--tag", help="Which run of an event file to take; the last one by default.")
@click.option("--memory/--no-memory", default=False, help="Add counters of memory in use.")
@click.option("--dataflow/--no-dataflow", default=True, help="Draw arrows between ops.")
def command(file: Path, output: Path | None, tag: str | None, memory: bool, dataflow: bool) -> None:
    """Write the Chrome trace of a run.

    FILE holds a serialized RunMetadata or StepStats, or is an event file in which
    FileWriter.add_run_metadata recorded runs. Open the result in chrome://tracing or
    https://ui.perfetto.dev.
    """
    from opdock.api.timeline import Timeline
    from opdock.io.files import write_file

    with working(f"reading {file}"):
        stats = _step_stats(file, tag)
        made = Timeline(stats)
        trace = made.generate_chrome_trace_format(show_dataflow=dataflow, show_memory=memory)
    if output is None:
        click.echo(trace)
    else:
        write_file(str(output), trace.encode())
        count = sum(len(d.node_stats) for d in stats.dev_stats)
        click.echo(f"{output}: {count} ops on {len(stats.dev_stats)} devices")


def _step_stats(file: Path, tag: str | None) -> Any:
    from opdock.cli._traces import read_run

    try:
        run = read_run(file, tag)
    except KeyError as e:
        raise Wrong(str(e.args[0])) from None
    if run is None:
        raise Wrong(
            f"{file} is neither a RunMetadata with step_stats nor an event file with one; run with "
            "RunOptions(trace_level=RunOptions.FULL_TRACE)"
        )
    return run.step_stats
