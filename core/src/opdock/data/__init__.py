"""`tf.data`: input pipelines.

A dataset is a node of the graph, an iterator is state of a session, and the functions between them
are compiled like any other.
"""

from __future__ import annotations

from opdock.data import experimental
from opdock.data.dataset_v1 import DatasetV1 as Dataset
from opdock.data.dataset_v1 import (
    get_legacy_output_classes,
    get_legacy_output_shapes,
    get_legacy_output_types,
    make_initializable_iterator,
    make_one_shot_iterator,
)
from opdock.data.iterators import Iterator
from opdock.data.options import Options
from opdock.data.readers import FixedLengthRecordDatasetV1 as FixedLengthRecordDataset
from opdock.data.readers import TextLineDatasetV1 as TextLineDataset
from opdock.data.readers import TFRecordDatasetV1 as TFRecordDataset
from opdock.data.spec import DatasetSpec

get_output_classes = get_legacy_output_classes
get_output_shapes = get_legacy_output_shapes
get_output_types = get_legacy_output_types

__all__ = [
    "Dataset", "DatasetSpec", "FixedLengthRecordDataset", "Iterator", "Options",
    "TFRecordDataset", "TextLineDataset", "experimental", "get_output_classes", "get_output_shapes",
    "get_output_types", "make_initializable_iterator", "make_one_shot_iterator",
]  # fmt: skip
