"""`RecordInput`: batches of records from many files, in random order."""

from __future__ import annotations

from typing import Any

from opdock.graph.nodes.operation import Tensor
from opdock.graph.nodes.scopes import name_scope
from opdock.io.tfrecord import TFRecordOptions
from opdock.ops.array import reshape
from opdock.ops.record_input import record_input_op
from opdock.ops.splitting import split


class RecordInput:
    """Gives the records of TFRecord files again and again, mixed anew in each turn.

    Args:
        file_pattern: the files, as a pattern or several with commas between them.
        batch_size: how many records a batch has.
        buffer_size: among how many records the next is chosen.
        parallelism: from how many files records are read in turns.
        shift_ratio: by which part of the list of files each turn begins later in it.
        seed: for the order.
        name: a name for the operation.
        batches: how many batches there are in a step; None for one that is no list.
        compression_type: a `tf.python_io.TFRecordCompressionType`.

    Raises:
        ValueError: there is no such kind of compression.
    """

    def __init__(
        self, file_pattern: str, batch_size: int = 1, buffer_size: int = 1, parallelism: int = 1,
        shift_ratio: float = 0, seed: int = 0, name: str | None = None,
        batches: int | None = None, compression_type: Any = None,
    ) -> None:  # fmt: skip
        self._batch_size = batch_size * (1 if batches is None else batches)
        self._batches = batches
        self._file_pattern = file_pattern
        self._buffer_size = buffer_size
        self._parallelism = parallelism
        self._shift_ratio = shift_ratio
        self._seed = seed
        self._name = name
        self._compression = TFRecordOptions.get_compression_type_string(compression_type)

    def get_yield_op(self) -> Tensor | list[list[Tensor]]:
        """A vector of records or, with `batches`, a list of lists of scalars."""
        records: Tensor = record_input_op(
            file_pattern=self._file_pattern, file_buffer_size=self._buffer_size,
            file_parallelism=self._parallelism, file_shuffle_shift_ratio=self._shift_ratio,
            batch_size=self._batch_size, file_random_seed=self._seed,
            compression_type=self._compression, name=self._name,
        )  # fmt: skip
        if self._batches is None:
            return records
        with name_scope(self._name):
            each = [reshape(part, []) for part in split(records, self._batch_size, 0)]
            return [each[i :: self._batches] for i in range(self._batches)]
