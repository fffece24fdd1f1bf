"""TensorBoard's projector of embeddings: its configuration, written beside a writer's events."""

from __future__ import annotations

import os
from typing import Any

from opdock.io.files import write_file

__all__ = ["visualize_embeddings"]


def visualize_embeddings(summary_writer: Any, config: Any) -> None:
    """Writes `projector_config.pbtxt` into the folder of a summary writer.

    Args:
        summary_writer: a `FileWriter`, whose folder TensorBoard reads.
        config: a `ProjectorConfig`.

    Raises:
        ValueError: the writer has no folder.
    """
    from google.protobuf import text_format

    folder = summary_writer.get_logdir()
    if folder is None:
        raise ValueError("Summary writer must have a logdir")
    text = text_format.MessageToString(config)
    write_file(os.path.join(os.fsdecode(folder), "projector_config.pbtxt"), text.encode())
