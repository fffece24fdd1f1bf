"""`opdock records`: look into TFRecord files, check them, and make them of images."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from opdock import errors

_FILES = click.argument("files", nargs=-1, required=True)


@click.group("records")
def command() -> None:
    """Look into TFRecord files, check them, and make them of images.

    Whether a file is compressed is seen by its first bytes. Paths with a scheme, such as
    s3://bucket/name, are read through fsspec.
    """


def _over(files: tuple[str, ...], work: Callable[[str], None]) -> None:
    """Does something with each file, goes on after one that cannot be read, and exits with 1."""
    failed = False
    for name in files:
        try:
            work(name)
        except errors.OpError as e:
            failed = True
            where = "" if name in e.message else f"{name}: "
            click.echo(f"{type(e).__name__}: {where}{e.message}", err=True)
    if failed:
        raise SystemExit(1)


def _read(name: str) -> Any:
    from opdock.io.records import RecordReader, compression_of

    return RecordReader(name, compression_of(name))


@command.command("list")
@_FILES
def list_files(files: tuple[str, ...]) -> None:
    """List files with their records, sizes and what the first record is."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from opdock.cli._examples import features_of
    from opdock.cli._report import size
    from opdock.io import filesystems
    from opdock.io.records import compression_of

    table = Table()
    for column in ("file", "records", "size", "compression", "first record"):
        table.add_column(column, overflow="fold")

    def add(name: str) -> None:
        with _read(name) as reader:
            first = reader.read()
            count = (first is not None) + sum(1 for _ in reader)
        found = None if first is None else features_of(first)
        what = "-" if first is None else f"{len(first)} bytes"
        if found is not None:
            what = f"Example of {len(found)} features"
        bytes_ = filesystems.of(name).stat(name)[0]
        kind = compression_of(name) or "none"
        table.add_row(escape(name), str(count), size(bytes_), kind, escape(what))

    try:
        _over(files, add)
    finally:
        Console().print(table)


@command.command("count")
@_FILES
def count_records(files: tuple[str, ...]) -> None:
    """Count records; the last line is the sum, if there are several files."""
    counts: list[int] = []

    def add(name: str) -> None:
        with _read(name) as reader:
            counts.append(sum(1 for _ in reader))
        click.echo(f"{counts[-1]}\t{name}")

    try:
        _over(files, add)
    finally:
        if len(files) > 1:
            click.echo(f"{sum(counts)}\ttotal")


@command.command("verify")
@_FILES
def verify(files: tuple[str, ...]) -> None:
    """Read every record and check its sums; tells file and place of damage, and exits with 1."""

    def check(name: str) -> None:
        with _read(name) as reader:
            count = sum(1 for _ in reader)
            click.echo(f"{name}: {count} records, {reader.offset} bytes, no damage")

    _over(files, check)


@command.command("show")
@click.argument("file")
@click.option("-n", "count", default=1, show_default=True, help="How many records to show.")
@click.option("--skip", default=0, show_default=True, help="How many records to leave out before.")
@click.option("--values", default=8, show_default=True, help="How many values of each feature.")
def show(file: str, count: int, skip: int, values: int) -> None:
    """Show records: the features of Examples, the first bytes of others."""
    from itertools import islice

    from opdock.cli._examples import features_of

    def tell(name: str) -> None:
        with _read(name) as reader:
            for number, record in enumerate(islice(reader, skip, skip + count), skip):
                click.echo(f"record {number}: {len(record)} bytes")
                features = features_of(record)
                if features is None:
                    click.echo(f"  {record[:64]!r}{' ...' if len(record) > 64 else ''}")
                for feature in features or ():
                    click.echo(f"  {feature.name}: {feature.text(values)}")

    _over((file,), tell)


@command.command("index")
@_FILES
def index(files: tuple[str, ...]) -> None:
    """Write FILE.idx beside each file: place and size of each record, a line each."""
    from opdock.io.record_index import index_of, save_index

    def write(name: str) -> None:
        found = index_of(name)
        save_index(f"{name}.idx", found)
        click.echo(f"{name}.idx: {len(found)} records")

    _over(files, write)


@command.command("convert")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("output", type=click.Path(path_type=Path))
@click.option("--shards", default=1, show_default=True, type=click.IntRange(1, 99999))
@click.option(
    "--compression", type=click.Choice(["none", "GZIP", "ZLIB"]), default="none", show_default=True
)
@click.option("--seed", default=0, show_default=True, help="For the order of the images.")
def convert(folder: Path, output: Path, shards: int, compression: str, seed: int) -> None:
    """Make TFRecord files of the images in FOLDER.

    The files are OUTPUT-00000-of-00004 and so on; each has its name when all of it is written. A
    folder in FOLDER is a class: OUTPUT-labels.txt has their names, in the order of their numbers.
    Each image is an Example with image/encoded, image/format, image/filename, image/height,
    image/width, image/channels and, of classes, image/class/label and image/class/text.
    """
    from rich.progress import Progress

    from opdock.cli._examples import Images

    try:
        images = Images.found(folder, seed)
        if not images.files:
            raise click.ClickException(f"{folder} holds no JPEG, PNG, GIF or BMP images")
        with Progress(transient=True) as progress:
            task = progress.add_task("images", total=len(images.files))
            kind = "" if compression == "none" else compression
            for shard in images.write(output, shards, kind, lambda: progress.advance(task)):
                progress.console.print(str(shard), highlight=False)
    except errors.OpError as e:
        raise click.ClickException(f"{type(e).__name__}: {e.message}") from None
    click.echo(f"{len(images.files)} images of {len(images.labels) or 'no'} classes")
