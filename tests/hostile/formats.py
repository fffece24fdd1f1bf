"""The kinds of files that strangers give us. A new one joins `FORMATS` of the file it is like."""

from __future__ import annotations

from tests.hostile import checkpoints, graphs, pictures, records, tools, values
from tests.hostile.base import Format

FORMATS: dict[str, Format] = {
    **graphs.FORMATS, **checkpoints.FORMATS, **records.FORMATS, **values.FORMATS,
    **pictures.FORMATS, **tools.FORMATS,
}  # fmt: skip
