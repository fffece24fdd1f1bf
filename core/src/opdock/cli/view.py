"""`opdock view FILE`: a page on which one looks at a program, its decisions, times and memory."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from pathlib import Path

import click

from opdock.cli._command import Command, Wrong, emit, json_option
from opdock.cli._graphs import Wish, explain_file, read_graph
from opdock.cli._report import size
from opdock.cli._screen import working
from opdock.cli._traces import read_run
from opdock.view.model import View
from opdock.view.page import page_of, write_page
from opdock.view.trace import view_of_graph, view_of_run


@click.command(
    "view", cls=Command,
    example="opdock view graph.pb --time --device cpu:0 -o page.html",
    keys={
        "output": "the page that was written",
        "programs": "what each is called",
        "nodes": "how many nodes the page has",
        "bytes": "its size",
    },
)  # fmt: skip
@click.argument(
    "files", metavar="FILE [FILE]", nargs=-1, required=True,
    type=click.Path(exists=True, path_type=Path),
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
    help="The page to write (default: the file's name with .html).",
)  # fmt: skip
@click.option("--fetch", "fetches", multiple=True, help="Tensor or op to run (default: outputs).")
@click.option(
    "--feed", "feeds", multiple=True, metavar="NAME=2,3",
    help="Shape of a placeholder (default: 1s).",
)  # fmt: skip
@click.option(
    "--device", "devices", multiple=True,
    help="Place everything that names no device here; given twice, both are shown.",
)  # fmt: skip
@click.option("--no-soft", is_flag=True, help="Do not move ops off the device that they name.")
@click.option("--time", "timed", is_flag=True, help="Run graphs, and show what each node took.")
@click.option("--as-written", is_flag=True, help="Show graphs as they are: compile nothing.")
@click.option("--tag", help="Which run of an event file to take; the last one by default.")
@click.option("--title", "titles", multiple=True, help="What to call it; one a program.")
@click.option("--serve", is_flag=True, help="Serve the page on this machine instead of writing it.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="To serve on; 0: any.")
@json_option
@click.option("--open", "opened", is_flag=True, help="Open the page in the browser.")
def command(
    files: tuple[Path, ...],
    output: Path | None,
    fetches: tuple[str, ...],
    feeds: tuple[str, ...],
    devices: tuple[str, ...],
    no_soft: bool,
    timed: bool,
    as_written: bool,
    tag: str | None,
    titles: tuple[str, ...],
    serve: bool,
    port: int,
    json_output: bool,
    opened: bool,
) -> None:
    """Make a page of a program: where each op runs and why, fusions, copies, time, memory.

    FILE is a GraphDef, a MetaGraphDef, a SavedModel's directory, a RunMetadata, an event file with
    a recorded run or a graph, or a directory of event files. Two files, or one on two devices, are
    shown side by side. The page needs no server and no network.
    """
    wanted = [(file, device) for file in files for device in devices or (None,)]
    if len(wanted) > 2:
        raise click.UsageError(
            "a page shows at most two programs: two files, or one on two devices"
        )
    if titles and len(titles) != len(wanted):
        raise click.UsageError(f"--title is given {len(titles)} times for {len(wanted)} programs")
    if serve and json_output:
        raise click.UsageError("--json tells of a page that is written, and --serve writes none")
    names = titles or _titles(wanted)
    try:
        views = []
        for (file, device), title in zip(wanted, names, strict=True):
            wish = Wish(fetches, feeds, device, not no_soft, timed)
            with working(f"compiling {file}"):
                views.append(view_of_file(file, wish, title, tag, as_written))
        if serve:
            _serve(page_of(*views), port, opened)
            return
        target = output or Path(f"{files[0].resolve().name}.html")
        write_page(str(target), views)
    except (ValueError, KeyError, TypeError, OSError, RuntimeError) as e:
        raise Wrong(str(e.args[0] if isinstance(e, KeyError) else e)) from e
    nodes = sum(len(view.rows) for view in views)
    length = target.stat().st_size
    if json_output:
        emit({"output": str(target), "programs": list(names), "nodes": nodes, "bytes": length})
    else:
        click.echo(f"{target}: {nodes} nodes, {size(length)}")
    if opened:
        webbrowser.open(target.resolve().as_uri())


def view_of_file(file: Path, wish: Wish, title: str, tag: str | None, as_written: bool) -> View:
    """The view of whatever a path holds; see the command for the arguments.

    Raises:
        ValueError: what has run already is to be placed on a device.
        OpError, OSError, RuntimeError: nothing that can be shown is there.
    """
    run = read_run(file, tag)
    if run is not None:
        if wish.device is not None:
            raise ValueError(f"{file} is a recorded run: it cannot be placed on {wish.device}")
        return view_of_run(run, title)
    if as_written:
        return view_of_graph(read_graph(file), title)
    return explain_file(file, wish).view(title)


def _titles(wanted: Sequence[tuple[Path, str | None]]) -> list[str]:
    """File names, with what tells two of a name apart."""
    names = [file.resolve().name for file, _ in wanted]
    if len(set(names)) < len(names) and all(device for _, device in wanted):
        return [f"{name} on {device}" for name, (_, device) in zip(names, wanted, strict=True)]
    return [str(file) for file, _ in wanted] if len(set(names)) < len(names) else names


def _serve(page: str, port: int, opened: bool) -> None:
    from opdock.cli._served import Served

    with Served(page, port) as served:
        click.echo(f"{served.address} (Ctrl-C ends it)")
        if opened:
            webbrowser.open(served.address)
        served.wait()
