"""Why ops of TensorFlow 1.15 are not there: as data, by what their names look like."""

from __future__ import annotations

import functools
import re
from typing import Final, NamedTuple

__all__ = ["Gap", "gap_of"]


class Gap(NamedTuple):
    """Ops that are not there.

    Attributes:
        names: a regular expression of their types.
        why: the reason, or what they are for if they may come.
        out: whether they are not meant to come.
    """

    names: str
    why: str
    out: bool = True


_GAPS: Final = (
    Gap(r".*TPU.*|Infeed\w+|Outfeed\w+|Prelinearize\w*|CrossReplicaSum|AllToAll|WorkerHeartbeat"
        r"|CollectivePermute", "needs a TPU's own runtime"),
    Gap(r"Nccl\w+", "needs several GPUs of one kind and their library"),
    Gap(r"CudnnRNN\w*", "weights in an order that cuDNN alone knows; BlockLSTM is there"),
    Gap(r"Anonymous\w+|Delete(Iterator|MemoryCache|MultiDeviceIterator|RandomSeedGenerator)"
        r"|CacheDatasetV2|ShuffleDatasetV2", "lifetimes of objects in eager execution"),
    Gap(r"AdjustContrast|RandomCrop|TileGrad|RandomPoisson|StatefulStandardNormal",
        "TF 1.15 refuses it in new graphs; another op has taken its place"),
    Gap(r"Abort", "ends the process"),
    Gap(r"DebugGradient(Ref)?Identity", "a mark of tfdbg's in gradients"),
    Gap(r"FakeParam|TensorStridedSliceUpdate", "TF's own passes make it; no function gives it"),
    Gap(r"Fact", "a joke of TF's"),
    Gap(r"CreateSummaryDbWriter", "summaries in an SQLite database, which TensorBoard gave up"),
    Gap(r"ImmutableConst", "memory of TF's C++ environments; tf.io.read_file and decode_raw"),
    Gap(r"QuantizedResizeBilinear", "TF's rewrites make it; QuantizeV2 of ResizeBilinear"),
    Gap(r"Dataset(To|From)Graph|SnapshotDataset",
        "stands on a dataset as a GraphDef while it runs, where it is a value here: "
        "`tf.Graph.as_graph_def` has its nodes, and `Dataset.cache` keeps its elements in files"),
    Gap(r"StatsAggregator(HandleV2|SetSummaryWriter)",
        "statistics that an aggregator writes by itself: `StatsAggregator.get_summary` gives them"),
    Gap(r"(Experimental)?IteratorGetDevice", "no function gives it: elements lie on the host"),
    Gap(r"Experimental\w+", "the name that a dataset's op had before 1.15", False),
    Gap(r"\w*Dataset\w*|MultiDeviceIterator\w*|MapDefun|StatsAggregator\w+|ThreadPool\w+",
        "transformations of datasets", False),
)  # fmt: skip


@functools.cache
def gap_of(op: str) -> Gap | None:
    """Why there is no op of this type, as far as it is known."""
    return next((gap for gap in _GAPS if re.fullmatch(gap.names, op)), None)
