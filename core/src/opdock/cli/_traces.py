"""What `timeline` and `view` read: recorded runs, by themselves or in event files."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def read_run(file: Path, tag: str | None) -> Any | None:
    """The RunMetadata in a file; None if it holds none with times.

    Args:
        file: a serialized RunMetadata or StepStats, an event file in which
            `FileWriter.add_run_metadata` recorded runs, or a folder of which the newest is one.
        tag: which run of an event file; None for the last one.

    Raises:
        KeyError: an event file has no such run; the message lists those that it has.
    """
    from google.protobuf.message import DecodeError

    from opdock.io import protos

    if file.is_dir():
        newest = newest_events(file)
        if newest is None:
            return None
        file = newest
    runs = _tagged_runs(file)
    if runs:
        if tag is not None and tag not in runs:
            raise KeyError(f"{file} has no run '{tag}'; it has: {', '.join(runs)}")
        return runs[tag if tag is not None else list(runs)[-1]]
    data = file.read_bytes()
    for message in (protos.RunMetadata, protos.StepStats):
        try:
            found = message.FromString(data)
        except DecodeError:
            continue
        run = found if message is protos.RunMetadata else protos.RunMetadata(step_stats=found)
        if any(d.node_stats for d in run.step_stats.dev_stats):
            return run
    return None


def newest_events(folder: Path) -> Path | None:
    """The event file of a folder that was written last; None in a SavedModel's folder."""
    if any((folder / f"saved_model.{kind}").exists() for kind in ("pb", "pbtxt")):
        return None
    files = [file for file in folder.glob("*tfevents*") if file.is_file()]
    return max(files, key=lambda file: (file.stat().st_mtime_ns, file.name), default=None)


def _tagged_runs(file: Path) -> dict[str, Any]:
    """The runs of an event file by tag; empty when the file is none."""
    from opdock import errors
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
