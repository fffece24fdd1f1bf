"""`opdock timeline`: turn recorded run metadata into a Chrome trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from opdock import errors
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
    from google.protobuf.message import DecodeError

    from opdock.io import protos

    runs = _tagged_runs(file)
    if runs:
        if tag is not None and tag not in runs:
            raise Wrong(f"{file} has no run '{tag}'; it has: {', '.join(runs)}")
        return runs[tag if tag is not None else list(runs)[-1]].step_stats
    data = file.read_bytes()
    for message in (protos.RunMetadata, protos.StepStats):
        try:
            found = message.FromString(data)
        except DecodeError:
            continue
        stats = found.step_stats if message is protos.RunMetadata else found
        if any(d.node_stats for d in stats.dev_stats):
            return stats
    raise Wrong(
        f"{file} is neither a RunMetadata with step_stats nor an event file with one; run with "
        "RunOptions(trace_level=RunOptions.FULL_TRACE)"
    )


def _tagged_runs(file: Path) -> dict[str, Any]:
    """The runs of an event file by tag; empty when the file is none."""
    from opdock.io import protos
    from opdock.io.event_files import summary_iterator

    runs: dict[str, Any] = {}
    try:
        for event in summary_iterator(file):
            if event.WhichOneof("what") == "tagged_run_metadata":
                tagged = event.tagged_run_metadata
                runs[tagged.tag] = protos.RunMetadata.FromString(tagged.run_metadata)
    except errors.OpError:
        # A cut event file still has what was flushed; a file of another kind has nothing.
        return runs
    return runs
