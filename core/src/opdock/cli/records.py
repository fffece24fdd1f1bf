"""`opdock records`: look into TFRecord files, check them, and make them of images."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, islice
from pathlib import Path
from typing import Any, NoReturn

import click

from opdock import errors
from opdock.cli._command import Command, Wrong, emit, json_option
from opdock.cli._report import size
from opdock.cli._screen import Screen, counting, working

_FILES = click.argument("files", nargs=-1, required=True)
_DAMAGE = "a file is damaged"


@click.group("records")
def command() -> None:
    """Look into TFRecord files, check them, and make them of images.

    Whether a file is compressed is seen by its first bytes. Paths with a scheme, such as
    s3://bucket/name, are read through fsspec.
    """


Row = dict[str, Any]


class _Told:
    """What is told of each file, those that cannot be read among them.

    Args:
        keys: what is told of a file; None where it is not known, as something went wrong before.

    Attributes:
        rows: in the order of the files; `error` says what went wrong, if anything did.
        status: the exit status: 1 if a file is damaged, 2 if one cannot be opened.
    """

    def __init__(self, *keys: str) -> None:
        self._keys = keys
        self.rows: list[Row] = []
        self.status = 0

    def over(self, files: tuple[str, ...], work: Callable[[str, Row], None]) -> None:
        """Has `work` say something of each file, and goes on after one that cannot be read."""
        statuses = {0}
        for name in files:
            row: Row = {"file": name, **dict.fromkeys(self._keys), "error": None}
            self.rows.append(row)
            try:
                with working(f"reading {name}"):
                    work(name, row)
            except errors.OpError as e:
                statuses.add(1 if isinstance(e, errors.DataLossError) else 2)
                where = "" if name in e.message else f"{name}: "
                row["error"] = f"{type(e).__name__}: {where}{e.message}"
                click.echo(row["error"], err=True)
        self.status = min(statuses - {0}, default=0)

    @property
    def sound(self) -> list[Row]:
        """Of the files with which nothing went wrong."""
        return [row for row in self.rows if row["error"] is None]

    def end(self, line: str, json_output: bool) -> NoReturn:
        """Ends the command with a line for each sound file, or with JSON of all of them."""
        if json_output:
            emit(self.rows)
        else:
            for row in self.sound:
                click.echo(line.format(**row))
        raise SystemExit(self.status)


_ERROR = "what went wrong with the file; null if nothing did, else what is not known is null"


def _read(name: str) -> Any:
    from opdock.io.records import RecordReader, compression_of

    return RecordReader(name, compression_of(name))


@command.command(
    "list", cls=Command, example="opdock records list data.tfrecord", found=_DAMAGE, each="file",
    keys={
        "file": "its name", "records": "how many it has", "bytes": "its size",
        "compression": "none, GZIP or ZLIB", "first": "what its first record is", "error": _ERROR,
    },
)  # fmt: skip
@_FILES
@json_option
def list_files(files: tuple[str, ...], json_output: bool) -> None:
    """List files with their records, sizes and what the first record is."""
    from opdock.cli._examples import features_of
    from opdock.io import filesystems
    from opdock.io.records import compression_of

    told = _Told("records", "bytes", "compression", "first")

    def add(name: str, row: Row) -> None:
        with _read(name) as reader:
            row["bytes"] = filesystems.of(name).stat(name)[0]
            row["compression"] = compression_of(name) or "none"
            first = reader.read()
            features = None if first is None else features_of(first)
            what = "-" if first is None else f"{len(first)} bytes"
            row["first"] = what if features is None else f"Example of {len(features)} features"
            row["records"] = (first is not None) + sum(1 for _ in reader)

    told.over(files, add)
    if json_output:
        emit(told.rows)
    else:
        columns = ("file", "records", "size", "compression", "first record")
        shown = [
            [r["file"], str(r["records"]), size(r["bytes"]), r["compression"], r["first"]]
            for r in told.sound
        ]
        Screen().table(columns, shown, numbers=("records", "size"))
    raise SystemExit(told.status)


@command.command(
    "count", cls=Command, example="opdock records count data.tfrecord", found=_DAMAGE, each="file",
    keys={"file": "its name", "records": "how many it has", "error": _ERROR},
)  # fmt: skip
@_FILES
@json_option
def count_records(files: tuple[str, ...], json_output: bool) -> None:
    """Count records; the last line is the sum, if there are several files."""
    told = _Told("records")

    def add(name: str, row: Row) -> None:
        with _read(name) as reader:
            row["records"] = sum(1 for _ in reader)

    told.over(files, add)
    if json_output:
        emit(told.rows)
    else:
        for row in told.sound:
            click.echo(f"{row['records']}\t{row['file']}")
        if len(files) > 1:
            click.echo(f"{sum(row['records'] for row in told.sound)}\ttotal")
    raise SystemExit(told.status)


@command.command(
    "verify", cls=Command, example="opdock records verify data.tfrecord", found=_DAMAGE,
    each="file",
    keys={
        "file": "its name", "records": "how many are sound, up to the damage if there is some",
        "bytes": "that they take, unpacked: the place of the damage", "error": _ERROR,
    },
)  # fmt: skip
@_FILES
@json_option
def verify(files: tuple[str, ...], json_output: bool) -> None:
    """Read every record and check its sums; tells file and place of damage on stderr."""
    told = _Told("records", "bytes")

    def check(name: str, row: Row) -> None:
        with _read(name) as reader:
            for count, _ in enumerate(chain([b""], reader)):
                row.update(records=count, bytes=reader.offset)
            reader.check_end()

    told.over(files, check)
    told.end("{file}: {records} records, {bytes} bytes, no damage", json_output)


@command.command(
    "show", cls=Command, example="opdock records show data.tfrecord -n 2", found=_DAMAGE,
    each="record",
    keys={
        "record": "its number", "bytes": "its size",
        "features": "of an Example: name, kind and values; null for other records",
    },
)  # fmt: skip
@click.argument("file")
@click.option("-n", "count", default=1, show_default=True, help="How many records to show.")
@click.option("--skip", default=0, show_default=True, help="How many records to leave out before.")
@click.option("--values", default=8, show_default=True, help="How many values of each feature.")
@json_option
def show(file: str, count: int, skip: int, values: int, json_output: bool) -> None:
    """Show records: the features of Examples, the first bytes of others."""
    from opdock.cli._examples import features_of

    records: list[bytes] = []

    def read(name: str, row: Row) -> None:
        with _read(name) as reader:
            records.extend(islice(reader, skip, skip + count))

    told = _Told()
    told.over((file,), read)
    rows: list[Row] = []
    for number, record in enumerate(records, skip):
        features = features_of(record)
        if json_output:
            plain = None if features is None else [f.plain(values) for f in features]
            rows.append({"record": number, "bytes": len(record), "features": plain})
            continue
        click.echo(f"record {number}: {len(record)} bytes")
        if features is None:
            click.echo(f"  {record[:64]!r}{' ...' if len(record) > 64 else ''}")
        for feature in features or ():
            click.echo(f"  {feature.name}: {feature.text(values)}")
    if json_output:
        emit(rows)
    raise SystemExit(told.status)


@command.command(
    "index", cls=Command, example="opdock records index data.tfrecord", found=_DAMAGE, each="file",
    keys={
        "file": "its name", "index": "the file beside it", "records": "how many it has",
        "error": _ERROR,
    },
)  # fmt: skip
@_FILES
@json_option
def index(files: tuple[str, ...], json_output: bool) -> None:
    """Write FILE.idx beside each file: place and size of each record, a line each."""
    from opdock.io.record_index import index_of, save_index

    told = _Told("index", "records")

    def write(name: str, row: Row) -> None:
        found = index_of(name)
        save_index(f"{name}.idx", found)
        row.update(index=f"{name}.idx", records=len(found))

    told.over(files, write)
    told.end("{index}: {records} records", json_output)


@command.command(
    "convert", cls=Command, example="opdock records convert images data --shards 2",
    keys={
        "files": "what was written", "images": "how many there are",
        "classes": "their names, in the order of their numbers",
    },
)  # fmt: skip
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("output", type=click.Path(path_type=Path))
@click.option("--shards", default=1, show_default=True, type=click.IntRange(1, 99999))
@click.option(
    "--compression", type=click.Choice(["none", "GZIP", "ZLIB"]), default="none", show_default=True
)
@click.option("--seed", default=0, show_default=True, help="For the order of the images.")
@json_option
def convert(
    folder: Path, output: Path, shards: int, compression: str, seed: int, json_output: bool
) -> None:
    """Make TFRecord files of the images in FOLDER.

    The files are OUTPUT-00000-of-00004 and so on; each has its name when all of it is written. A
    folder in FOLDER is a class: OUTPUT-labels.txt has their names, in the order of their numbers.
    Each image is an Example with image/encoded, image/format, image/filename, image/height,
    image/width, image/channels and, of classes, image/class/label and image/class/text.
    """
    from opdock.cli._examples import Images

    images = Images.found(folder, seed)
    if not images.files:
        raise Wrong(f"{folder} holds no JPEG, PNG, GIF or BMP images")
    kind = "" if compression == "none" else compression
    total = len(images.files)
    with counting("images") as count:
        done = iter(range(1, total + 1))
        written = [
            str(shard)
            for shard in images.write(output, shards, kind, lambda: count("", next(done), total))
        ]
    if json_output:
        emit({"files": written, "images": total, "classes": images.labels})
        return
    for name in written:
        click.echo(name)
    click.echo(f"{total} images of {len(images.labels) or 'no'} classes")
