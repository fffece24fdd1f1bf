"""`tf.train.CheckpointManager`: numbered checkpoints of a `Checkpoint`, and which to keep."""

from __future__ import annotations

import logging
import os
import time
from typing import Any

from opdock import errors
from opdock.graph.nodes.default_session import get_default_session
from opdock.graph.nodes.scopes import executing_eagerly
from opdock.io.files import as_path
from opdock.train.checkpoint_management import (
    get_checkpoint_state,
    remove_checkpoint,
    update_checkpoint_state_internal,
)

__all__ = ["CheckpointManager"]

_log = logging.getLogger("tensorflow")


class CheckpointManager:
    """Saves a `Checkpoint` under new numbers and deletes the oldest.

    Args:
        checkpoint: the `tf.train.Checkpoint`.
        directory: where the files go.
        max_to_keep: how many recent checkpoints to keep; None keeps all.
        keep_checkpoint_every_n_hours: besides those, keep one every so many hours for good.
        checkpoint_name: what the files' names begin with.

    Raises:
        ValueError: `max_to_keep` is not positive.
    """

    def __init__(
        self, checkpoint: Any, directory: Any, max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float | None = None, checkpoint_name: str = "ckpt",
    ) -> None:  # fmt: skip
        if max_to_keep is not None and max_to_keep <= 0:
            raise ValueError(
                "Expected a positive integer or `None` for `max_to_max_to_keep`, got"
                f" {max_to_keep}."
            )
        self._checkpoint = checkpoint
        self._max_to_keep = max_to_keep
        self._keep_hours = keep_checkpoint_every_n_hours
        self._directory = as_path(directory)
        self._prefix = os.path.join(self._directory, checkpoint_name)
        self._count: Any = None
        # Those that may be deleted, with the times they were written, oldest first.
        self._maybe_delete: dict[str, float] = {}
        self._latest: str | None = None
        self._last_preserved = time.time() - 1.0
        self._recover()

    def _recover(self) -> None:
        """Goes on from what an earlier process wrote into the directory."""
        state = get_checkpoint_state(self._directory)
        if state is None:
            return
        now = time.time()
        self._latest = state.model_checkpoint_path
        self._last_preserved = state.last_preserved_timestamp
        if now < self._last_preserved:
            _log.warning(
                "time.time() returned a value %f seconds behind the last preserved checkpoint"
                " timestamp.",
                self._last_preserved - now,
            )
            self._last_preserved = now
        paths = state.all_model_checkpoint_paths
        stamps = state.all_model_checkpoint_timestamps or [self._last_preserved] * len(paths)
        for path, stamp in zip(paths, stamps, strict=False):
            stamp = min(stamp, now)
            if stamp > self._last_preserved:
                self._maybe_delete[path] = stamp

    @property
    def latest_checkpoint(self) -> str | None:
        """The prefix of the latest checkpoint, None when there is none."""
        return self._latest

    @property
    def checkpoints(self) -> list[str]:
        """The prefixes of the checkpoints that may be deleted, oldest first."""
        return list(self._maybe_delete)

    def save(self, checkpoint_number: Any = None) -> str:
        """Writes a checkpoint in the default session, and deletes the oldest if there are too many.

        Args:
            checkpoint_number: a number or a variable; the checkpoint's own counter when None.

        Returns:
            The checkpoint's prefix.

        Raises:
            FailedPreconditionError: there is no default session.
        """
        session = get_default_session()
        if executing_eagerly():
            given = self._checkpoint.save_counter.assign_add(1)
            return self._written(int(given if checkpoint_number is None else checkpoint_number))
        if session is None:
            raise errors.FailedPreconditionError(
                None, None, "CheckpointManager.save needs a default session"
            )
        number = self._counted(session)
        if checkpoint_number is not None:
            given = checkpoint_number
            number = int(given if hasattr(given, "__index__") else session.run(given))
        return self._written(number, session)

    def _written(self, number: int, session: Any = None) -> str:
        path = self._checkpoint.write(f"{self._prefix}-{number}", session)
        self._maybe_delete.pop(path, None)
        self._maybe_delete[path] = time.time()
        self._latest = path
        # The state names the new checkpoint before an old one goes, and no old one afterwards.
        self._record()
        if self._sweep():
            self._record()
        return str(path)

    def _counted(self, session: Any) -> int:
        counter = self._checkpoint.save_counter
        if self._count is None:
            if not session.run(counter._initialized()):
                session.run(counter.initializer)
            self._count = counter.assign_add(1, read_value=True)
        return int(session.run(self._count))

    def _record(self) -> None:
        update_checkpoint_state_internal(
            self._directory, str(self._latest), list(self._maybe_delete), None, True,
            list(self._maybe_delete.values()), self._last_preserved,
        )  # fmt: skip

    def _sweep(self) -> bool:
        """Deletes or preserves the oldest checkpoints; whether there were too many."""
        changed = False
        while self._max_to_keep and len(self._maybe_delete) > self._max_to_keep:
            changed = True
            path = next(iter(self._maybe_delete))
            written = self._maybe_delete.pop(path)
            if self._keep_hours and written - self._keep_hours * 3600.0 >= self._last_preserved:
                self._last_preserved = written
                continue
            remove_checkpoint(path)
        return changed
