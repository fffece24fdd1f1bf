"""The state of a reader, as TF saves it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from google.protobuf.message import DecodeError

from opdock import errors
from opdock.io import protos

__all__ = ["ReaderState"]


@dataclass(slots=True)
class ReaderState:
    """Where a reader is.

    Attributes:
        started: how many units of work it has begun.
        finished: how many it has finished.
        produced: how many records it has given.
        work: the unit that was begun last.
    """

    started: int = 0
    finished: int = 0
    produced: int = 0
    work: bytes = b""

    def to_bytes(self) -> bytes:
        """A serialized ReaderBaseState."""
        message = protos.ReaderBaseState(
            work_started=self.started, work_finished=self.finished,
            num_records_produced=self.produced, current_work=self.work,
        )  # fmt: skip
        data: bytes = message.SerializeToString()
        return data

    @classmethod
    def from_bytes(cls, data: bytes, reader: str) -> Self:
        """The state in a serialized ReaderBaseState.

        Args:
            data: the bytes.
            reader: whose it is to be, for messages.

        Raises:
            InvalidArgumentError: it is none, or one that no reader can be in between two records.
        """
        message = protos.ReaderBaseState()
        try:
            message.ParseFromString(data)
        except DecodeError:
            shown = data[:200].decode("ascii", "backslashreplace")
            raise errors.InvalidArgumentError(
                None, None, f"Could not parse state for {reader}: {shown}"
            ) from None
        state = cls(
            message.work_started, message.work_finished, message.num_records_produced,
            message.current_work,
        )  # fmt: skip
        if min(state.started, state.finished, state.produced) < 0:
            raise errors.InvalidArgumentError(
                None, None, f"Unexpected negative value when restoring in {reader}: {state}"
            )
        if state.started > state.finished:
            raise errors.InvalidArgumentError(
                None, None,
                f"Inconsistent work started vs. finished when restoring in {reader}: {state}",
            )  # fmt: skip
        return state
