"""Ops that lack one of an op's parts, each with a typed reason: one table, checked against reality.

An entry that names a part which the op does have is an error, so the table cannot outlive its
reasons.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

__all__ = [
    "EXEMPT", "NO_ERROR_SAMPLE", "NO_GRADIENT_SAMPLE", "Exemption", "Kind", "Part", "exemption",
]  # fmt: skip

Kind = Literal["state", "resource", "host", "control"]
Part = Literal["shape", "samples", "reference", "gradient"]


@dataclass(frozen=True)
class Exemption:
    """Why an op lacks some parts.

    Attributes:
        kind: "state" (acts through variables), "resource" (acts through queues, readers and the
            like), "host" (files, protobufs, Python), "control" (runs or orders other ops).
        parts: the parts that are missing.
        reason: in words.
    """

    kind: Kind
    parts: frozenset[Part]
    reason: str

    def covers(self, part: Part) -> bool:
        """Whether the op may lack that part."""
        return part in self.parts


_DATA: Final[frozenset[Part]] = frozenset({"samples", "reference"})

_TABLE: Final[tuple[tuple[Kind, frozenset[Part], str, str], ...]] = (
    ("control", _DATA, "every case of the suite feeds placeholders",
     "Placeholder PlaceholderV2"),
    ("control", _DATA, "no data passes through; level L4 orders ops with it",
     "NoOp ControlTrigger"),
    ("control", _DATA, "runs functions; level L4 has cond and while_loop against NumPy",
     "If StatelessIf While StatelessWhile"),
    ("host", _DATA, "tells the time; a test of it covers it", "Timestamp"),
    ("resource", _DATA, "brings values from task to task; tests of clusters cover it",
     "_ReceiveFromTask _SendToTask"),
    ("control", _DATA, "stands for a function before any pass looks; tests of calls cover it",
     "Case For PartitionedCall RemoteCall StatefulPartitionedCall StatelessCase SymbolicGradient"),
    ("control", _DATA, "stands for ops that have samples; tests of later ops say what it gives",
     "DecodeImage DenseBincount FinalizeDataset MatrixDiagPartV3 MatrixDiagV3 MatrixSetDiagV3"),
    ("control", _DATA, "stands for ops that have samples; tests of later ops say what it gives",
     "OptionsDataset ParallelBatchDataset ParallelInterleaveDatasetV3"),
    ("control", _DATA, "stands for ops that have samples; tests of later ops say what it gives",
     "ParallelInterleaveDatasetV4 ParallelMapDatasetV2 ParseExampleV2 RewriteDataset Xlog1py"),
    ("control", _DATA, "the older name of an op that has its own entry; a test covers it",
     "ExperimentalBytesProducedStatsDataset ExperimentalCSVDataset"),
    ("control", _DATA, "the older name of an op that has its own entry; a test covers it",
     "ExperimentalDatasetCardinality ExperimentalDatasetToTFRecord"),
    ("control", _DATA, "the older name of an op that has its own entry; a test covers it",
     "ExperimentalDenseToSparseBatchDataset ExperimentalDirectedInterleaveDataset"),
    ("control", _DATA, "the older name of an op that has its own entry; a test covers it",
     "ExperimentalGroupByReducerDataset ExperimentalGroupByWindowDataset"),
    ("control", _DATA, "the older name of an op that has its own entry; a test covers it",
     "ExperimentalIgnoreErrorsDataset ExperimentalLatencyStatsDataset"),
    ("control", _DATA, "the older name of an op that has its own entry; a test covers it",
     "ExperimentalMapAndBatchDataset ExperimentalMapDataset ExperimentalMatchingFilesDataset"),
    ("control", _DATA, "the older name of an op that has its own entry; a test covers it",
     "ExperimentalMaxIntraOpParallelismDataset ExperimentalParallelInterleaveDataset"),
    ("control", _DATA, "the older name of an op that has its own entry; a test covers it",
     "ExperimentalPrivateThreadPoolDataset ExperimentalRandomDataset ExperimentalScanDataset"),
    ("control", _DATA, "the older name of an op that has its own entry; a test covers it",
     "ExperimentalSetStatsAggregatorDataset ExperimentalSqlDataset ExperimentalLMDBDataset"),
    ("control", _DATA, "the older name of an op that has its own entry; a test covers it",
     "ExperimentalStatsAggregatorHandle ExperimentalStatsAggregatorSummary"),
    ("control", _DATA, "the older name of an op that has its own entry; a test covers it",
     "ExperimentalAutoShardDataset ExperimentalChooseFastestDataset"),
    ("control", _DATA, "the older name of an op that has its own entry; a test covers it",
     "ExperimentalNonSerializableDataset ExperimentalRebatchDataset"),
    ("control", _DATA, "the older name of an op that has its own entry; a test covers it",
     "ExperimentalSlidingWindowDataset ExperimentalThreadPoolDataset"),
    ("control", _DATA, "the older name of an op that has its own entry; a test covers it",
     "ExperimentalThreadPoolHandle ExperimentalAssertNextDataset ExperimentalSleepDataset"),
    ("control", _DATA, "the older name of an op that has its own entry; a test covers it",
     "ExperimentalParseExampleDataset"),
    ("control", _DATA, "the older name of an op that has its own entry; a test covers it",
     "ExperimentalTakeWhileDataset ExperimentalUnbatchDataset ExperimentalUniqueDataset"),
    ("resource", _DATA, "keeps a tensor behind a handle; tests of session handles cover it",
     "DeleteSessionTensor GetSessionHandle GetSessionHandleV2 GetSessionTensor"),
    ("resource", _DATA, "waits for gradients behind a handle; tests of accumulators cover it",
     "AccumulatorApplyGradient AccumulatorNumAccumulated AccumulatorSetGlobalStep"),
    ("resource", _DATA, "waits for gradients behind a handle; tests of accumulators cover it",
     "AccumulatorTakeGradient ConditionalAccumulator ResourceConditionalAccumulator"),
    ("resource", _DATA, "waits for gradients behind a handle; tests of accumulators cover it",
     "ResourceAccumulatorApplyGradient ResourceAccumulatorNumAccumulated"),
    ("resource", _DATA, "waits for gradients behind a handle; tests of accumulators cover it",
     "ResourceAccumulatorSetGlobalStep ResourceAccumulatorTakeGradient"),
    ("resource", _DATA, "waits for gradients behind a handle; tests of accumulators cover it",
     "SparseAccumulatorApplyGradient SparseAccumulatorTakeGradient SparseConditionalAccumulator"),
    ("resource", _DATA, "waits for its turn behind a handle; tests of critical sections cover it",
     "ConsumeMutexLock MutexLock MutexV2"),
    ("control", _DATA, "read into functions before there is a program; tests of the graph cover it",
     "Switch RefSwitch Merge RefMerge LoopCond Enter RefEnter Exit RefExit NextIteration"),
    ("control", _DATA, "read into functions before there is a program; tests of the graph cover it",
     "RefNextIteration _DeadValue"),
    ("state", _DATA, "hands on one of several variables; tests of the graph cover it", "RefSelect"),
    ("control", _DATA, "keeps a loop's values in lists; level L4 differentiates a while_loop",
     "EmptyTensorList TensorListLength TensorListPopBack TensorListPushBack"),
    ("control", _DATA, "keeps a loop's values in lists; level L4 differentiates a while_loop",
     "TensorListConcatV2 TensorListSplit"),
    ("host", _DATA, "works on messages of the user's types; tests of protobufs cover it",
     "DecodeProtoV2 EncodeProto"),
    ("control", _DATA, "works on a list of tensors; tests of tensor lists cover it",
     "TensorListConcat TensorListConcatLists TensorListElementShape TensorListFromTensor"),
    ("control", _DATA, "works on a list of tensors; tests of tensor lists cover it",
     "TensorListGather TensorListGetItem TensorListPushBackBatch TensorListReserve"),
    ("control", _DATA, "works on a list of tensors; tests of tensor lists cover it",
     "TensorListResize TensorListScatter TensorListScatterIntoExistingList"),
    ("control", _DATA, "works on a list of tensors; tests of tensor lists cover it",
     "TensorListScatterV2 TensorListSetItem TensorListStack"),
    ("resource", _DATA, "works on a list behind a handle; level L4 has a program for it",
     "TensorArrayCloseV3 TensorArrayConcatV3 TensorArrayGatherV3 TensorArrayGradV3"),
    ("resource", _DATA, "works on a list behind a handle; level L4 has a program for it",
     "TensorArrayReadV3 TensorArrayScatterV3 TensorArraySizeV3 TensorArraySplitV3"),
    ("resource", _DATA, "works on a list behind a handle; level L4 has a program for it",
     "TensorArrayV3 TensorArrayWriteV3"),
    ("resource", _DATA, "an older array; tests/core/ops/test_tensor_array.py covers it",
     "TensorArray TensorArrayClose TensorArrayCloseV2 TensorArrayConcat TensorArrayConcatV2"),
    ("resource", _DATA, "an older array; tests/core/ops/test_tensor_array.py covers it",
     "TensorArrayGather TensorArrayGatherV2 TensorArrayGrad TensorArrayGradV2"),
    ("resource", _DATA, "an older array; tests/core/ops/test_tensor_array.py covers it",
     "TensorArrayGradWithShape TensorArrayPack TensorArrayRead TensorArrayReadV2"),
    ("resource", _DATA, "an older array; tests/core/ops/test_tensor_array.py covers it",
     "TensorArrayScatter TensorArrayScatterV2 TensorArraySize TensorArraySizeV2"),
    ("resource", _DATA, "an older array; tests/core/ops/test_tensor_array.py covers it",
     "TensorArraySplit TensorArraySplitV2 TensorArrayUnpack TensorArrayV2 TensorArrayWrite"),
    ("resource", _DATA, "an older array; tests/core/ops/test_tensor_array.py covers it",
     "TensorArrayWriteV2"),
    ("resource", _DATA, "works on a stack behind a handle; tests/core/ops/test_stack.py covers it",
     "Stack StackClose StackCloseV2 StackPop StackPopV2 StackPush StackPushV2 StackV2"),
    ("resource", _DATA, "works on a queue behind a handle; tests/core/ops/test_queues.py covers it",
     "FIFOQueue FIFOQueueV2 FakeQueue PaddingFIFOQueue PaddingFIFOQueueV2 PriorityQueue"),
    ("resource", _DATA, "works on a queue behind a handle; tests/core/ops/test_queues.py covers it",
     "PriorityQueueV2 RandomShuffleQueue RandomShuffleQueueV2 QueueClose QueueCloseV2"),
    ("resource", _DATA, "works on a queue behind a handle; tests/core/ops/test_queues.py covers it",
     "QueueDequeue QueueDequeueMany QueueDequeueManyV2 QueueDequeueUpTo QueueDequeueUpToV2"),
    ("resource", _DATA, "works on a queue behind a handle; tests/core/ops/test_queues.py covers it",
     "QueueDequeueV2 QueueEnqueue QueueEnqueueMany QueueEnqueueManyV2 QueueEnqueueV2"),
    ("resource", _DATA, "works on a queue behind a handle; tests/core/ops/test_queues.py covers it",
     "QueueIsClosed QueueIsClosedV2 QueueSize QueueSizeV2"),
    ("resource", _DATA, "works on a reader; tests/core/ops/test_readers.py covers it",
     "FixedLengthRecordReader FixedLengthRecordReaderV2 IdentityReader IdentityReaderV2"),
    ("resource", _DATA, "works on a reader; tests/core/ops/test_readers.py covers it",
     "TFRecordReader TFRecordReaderV2 TextLineReader TextLineReaderV2 WholeFileReader"),
    ("resource", _DATA, "works on a reader; tests/core/ops/test_readers.py covers it",
     "WholeFileReaderV2 LMDBReader ReaderNumRecordsProduced ReaderNumRecordsProducedV2"),
    ("resource", _DATA, "works on a reader; tests/core/ops/test_readers.py covers it",
     "ReaderNumWorkUnitsCompleted ReaderNumWorkUnitsCompletedV2 ReaderReadUpTo ReaderRead"),
    ("resource", _DATA, "works on a reader; tests/core/ops/test_readers.py covers it",
     "ReaderReadV2 ReaderReadUpToV2 ReaderReset ReaderResetV2 ReaderRestoreState"),
    ("resource", _DATA, "works on a reader; tests/core/ops/test_readers.py covers it",
     "ReaderRestoreStateV2"),
    ("resource", _DATA, "works on a reader; tests/core/ops/test_readers.py covers it",
     "ReaderSerializeState ReaderSerializeStateV2"),
    ("resource", _DATA, "works on a barrier; tests/core/ops/test_barriers.py covers it",
     "Barrier BarrierClose BarrierIncompleteSize BarrierInsertMany BarrierReadySize"),
    ("resource", _DATA, "works on a barrier; tests/core/ops/test_barriers.py covers it",
     "BarrierTakeMany"),
    ("resource", _DATA, "works on an ensemble; tests/core/ops/test_boosted_trees.py covers it",
     "BoostedTreesEnsembleResourceHandleOp IsBoostedTreesEnsembleInitialized"),
    ("resource", _DATA, "works on an ensemble; tests/core/ops/test_boosted_trees.py covers it",
     "BoostedTreesCreateEnsemble BoostedTreesDeserializeEnsemble BoostedTreesSerializeEnsemble"),
    ("resource", _DATA, "works on an ensemble; tests/core/ops/test_boosted_trees.py covers it",
     "BoostedTreesGetEnsembleStates BoostedTreesPredict BoostedTreesExampleDebugOutputs"),
    ("resource", _DATA, "works on an ensemble; tests/core/ops/test_boosted_trees.py covers it",
     "BoostedTreesTrainingPredict BoostedTreesUpdateEnsemble BoostedTreesUpdateEnsembleV2"),
    ("resource", _DATA, "works on an ensemble; tests/core/ops/test_boosted_trees.py covers it",
     "BoostedTreesCenterBias"),
    ("resource", _DATA, "holds streams; tests/core/ops/test_boosted_trees_quantiles.py covers it",
     "BoostedTreesQuantileStreamResourceHandleOp BoostedTreesCreateQuantileStreamResource"),
    ("resource", _DATA, "holds streams; tests/core/ops/test_boosted_trees_quantiles.py covers it",
     "IsBoostedTreesQuantileStreamResourceInitialized BoostedTreesFlushQuantileSummaries"),
    ("resource", _DATA, "holds streams; tests/core/ops/test_boosted_trees_quantiles.py covers it",
     "BoostedTreesQuantileStreamResourceAddSummaries BoostedTreesQuantileStreamResourceFlush"),
    ("resource", _DATA, "holds streams; tests/core/ops/test_boosted_trees_quantiles.py covers it",
     "BoostedTreesQuantileStreamResourceDeserialize"),
    ("resource", _DATA, "holds streams; tests/core/ops/test_boosted_trees_quantiles.py covers it",
     "BoostedTreesQuantileStreamResourceGetBucketBoundaries"),
    ("resource", _DATA, "meets other steps; tests/core/ops/test_batching.py covers it",
     "Batch BatchFunction Unbatch UnbatchGrad"),
    ("resource", _DATA, "meets other nodes; tests/core/ops/test_collective.py covers it",
     "CollectiveBcastRecv CollectiveBcastSend CollectiveGather CollectiveReduce"),
    ("resource", _DATA, "works on a staging area; tests/core/ops/test_staging.py covers it",
     "Stage StageClear StagePeek StageSize Unstage MapClear MapIncompleteSize MapPeek MapSize"),
    ("resource", _DATA, "works on a staging area; tests/core/ops/test_staging.py covers it",
     "MapStage MapUnstage MapUnstageNoKey OrderedMapClear OrderedMapIncompleteSize"),
    ("resource", _DATA, "works on a staging area; tests/core/ops/test_staging.py covers it",
     "OrderedMapPeek OrderedMapSize OrderedMapStage OrderedMapUnstage OrderedMapUnstageNoKey"),
    ("resource", _DATA, "boxes a ragged tensor; tests/core/data/test_ragged.py covers it",
     "RaggedTensorToVariant RaggedTensorFromVariant"),
    ("host", _DATA, "tells of memory; tests/core/contrib/test_memory_stats.py covers it",
     "BytesInUse BytesLimit MaxBytesInUse"),
    ("host", _DATA, "reads files; tests/core/ops/test_record_input.py covers it", "RecordInput"),
    ("host", _DATA, "reads files; tests/core/ops/test_remapping.py covers it",
     "GenerateVocabRemapping LoadAndRemapMatrix"),
    ("resource", _DATA, "works on a table behind a handle; tests/core/lookup covers it",
     "HashTable HashTableV2 MutableHashTable MutableHashTableV2 MutableHashTableOfTensors"),
    ("resource", _DATA, "works on a table behind a handle; tests/core/lookup covers it",
     "MutableHashTableOfTensorsV2 MutableDenseHashTable MutableDenseHashTableV2"),
    ("resource", _DATA, "works on a table behind a handle; tests/core/lookup covers it",
     "LookupTableFind LookupTableFindV2 LookupTableInsert LookupTableInsertV2"),
    ("resource", _DATA, "works on a table behind a handle; tests/core/lookup covers it",
     "LookupTableRemoveV2 LookupTableSize LookupTableSizeV2 LookupTableExport"),
    ("resource", _DATA, "works on a table behind a handle; tests/core/lookup covers it",
     "LookupTableExportV2 LookupTableImport LookupTableImportV2 InitializeTable"),
    ("resource", _DATA, "works on a table behind a handle; tests/core/lookup covers it",
     "InitializeTableV2 InitializeTableFromTextFile InitializeTableFromTextFileV2"),
    ("resource", _DATA, "makes a dataset; tests/core/data walks through it",
     "CSVDataset FixedLengthRecordDataset FixedLengthRecordDatasetV2 GeneratorDataset"),
    ("resource", _DATA, "makes a dataset; tests/core/data walks through it",
     "MatchingFilesDataset RandomDataset RangeDataset SparseTensorSliceDataset SqlDataset"),
    ("resource", _DATA, "makes a dataset; tests/core/data walks through it",
     "TFRecordDataset TensorDataset TensorSliceDataset TextLineDataset LMDBDataset"),
    ("resource", _DATA, "makes a dataset; tests/core/data walks through it",
     "BatchDataset BatchDatasetV2 CacheDataset ConcatenateDataset DenseToSparseBatchDataset"),
    ("resource", _DATA, "makes a dataset; tests/core/data walks through it",
     "DirectedInterleaveDataset FilterByLastComponentDataset IgnoreErrorsDataset"),
    ("resource", _DATA, "makes a dataset; tests/core/data walks through it",
     "MaxIntraOpParallelismDataset ModelDataset OptimizeDataset SleepDataset PaddedBatchDataset"),
    ("resource", _DATA, "makes a dataset; tests/core/data walks through it",
     "PaddedBatchDatasetV2 PrefetchDataset PrivateThreadPoolDataset RepeatDataset"),
    ("resource", _DATA, "makes a dataset; tests/core/data walks through it",
     "BytesProducedStatsDataset LatencyStatsDataset SetStatsAggregatorDataset"),
    ("resource", _DATA, "counts what datasets say; tests/core/data/test_statistics.py covers it",
     "StatsAggregatorHandle StatsAggregatorSummary"),
    ("resource", _DATA, "makes a dataset; tests/core/data walks through it",
     "SamplingDataset ShardDataset ShuffleAndRepeatDataset ShuffleDataset SkipDataset"),
    ("resource", _DATA, "makes a dataset; tests/core/data walks through it",
     "TakeDataset UnbatchDataset UniqueDataset WindowDataset ZipDataset"),
    ("resource", _DATA, "makes a dataset; tests/core/data walks through it",
     "AutoShardDataset ChooseFastestDataset NonSerializableDataset RebatchDataset"),
    ("resource", _DATA, "makes a dataset; tests/core/data walks through it",
     "SlidingWindowDataset ThreadPoolDataset AssertNextDataset ParseExampleDataset"),
    ("resource", _DATA, "keeps threads behind a handle; tests/core/data covers it",
     "ThreadPoolHandle"),
    ("resource", _DATA, "makes a dataset of a function; tests/core/data walks through it",
     "FilterDataset FlatMapDataset GroupByReducerDataset GroupByWindowDataset"),
    ("resource", _DATA, "makes a dataset of a function; tests/core/data walks through it",
     "InterleaveDataset MapAndBatchDataset MapDataset ParallelInterleaveDataset"),
    ("resource", _DATA, "makes a dataset of a function; tests/core/data walks through it",
     "ParallelInterleaveDatasetV2 ParallelMapDataset ReduceDataset ScanDataset"),
    ("resource", _DATA, "makes a dataset of a function; tests/core/data walks through it",
     "TakeWhileDataset ChooseFastestBranchDataset"),
    ("resource", _DATA, "calls a function; tests/core/data/test_vectorized.py covers it",
     "MapDefun"),
    ("resource", _DATA, "works on an iterator or a dataset; tests/core/data covers it",
     "DatasetCardinality DatasetToSingleElement DatasetToTFRecord DeserializeIterator Iterator"),
    ("resource", _DATA, "works on an iterator or a dataset; tests/core/data covers it",
     "IteratorFromStringHandle IteratorFromStringHandleV2 IteratorGetNext"),
    ("resource", _DATA, "works on an iterator or a dataset; tests/core/data covers it",
     "IteratorGetNextAsOptional IteratorGetNextSync IteratorToStringHandle IteratorV2"),
    ("resource", _DATA, "works on an iterator or a dataset; tests/core/data covers it",
     "MakeIterator OneShotIterator OptionalFromValue OptionalGetValue OptionalHasValue"),
    ("resource", _DATA, "works on an iterator or a dataset; tests/core/data covers it",
     "OptionalNone SerializeIterator UnwrapDatasetVariant WrapDatasetVariant"),
    ("resource", _DATA, "works on an iterator or a dataset; tests/core/data covers it",
     "AnonymousIterator AnonymousIteratorV2 DeleteIterator MultiDeviceIterator"),
    ("resource", _DATA, "works on an iterator or a dataset; tests/core/data covers it",
     "MultiDeviceIteratorFromStringHandle MultiDeviceIteratorGetNextFromShard"),
    ("resource", _DATA, "works on an iterator or a dataset; tests/core/data covers it",
     "MultiDeviceIteratorInit MultiDeviceIteratorToStringHandle"),
    ("host", _DATA, "reads and writes a TensorProto; tests/core/ops/test_encoding.py covers it",
     "ParseTensor SerializeTensor"),
    ("resource", _DATA, "works on a map; tests/core/ops/test_sparse_serial.py covers it",
     "AddManySparseToTensorsMap AddSparseToTensorsMap TakeManySparseFromTensorsMap"),
    ("control", _DATA, "an argument inside a function, never in a user's graph",
     "_Arg"),
    ("state", _DATA, "makes or ends a variable; every case with variables runs it",
     "VariableV2 Variable VarHandleOp"),
    ("state", _DATA, "a variable that lives within one step; tests of the runtime cover it",
     "TemporaryVariable DestroyTemporaryVariable"),
    ("state", _DATA, "leaves nothing to compare; tests of the runtime cover it",
     "DestroyResourceOp"),
    ("host", _DATA, "reads and writes files; tests/core/io covers it",
     "MatchingFiles MergeV2Checkpoints ReadFile Restore RestoreSlice RestoreV2 Save SaveSlices"),
    ("host", _DATA, "reads files; tests/core/compiler/clean/test_pieces.py covers it",
     "_OpenCheckpoint _ReadCheckpoint"),
    ("host", _DATA, "TF's first checkpoint format; tests/core/train and tests/oracle cover it",
     "Restore RestoreSlice Save SaveSlices"),
    ("host", _DATA, "prints, or runs Python; tests/core/ops covers it",
     "EagerPyFunc Print PrintV2 PyFunc PyFuncStateless"),
    ("host", _DATA, "reads and writes files; tests/core/io covers it", "SaveV2 WriteFile"),
    ("host", _DATA, "reads encoded images; tests/core/io and tests/core/ops decode them",
     "DecodeAndCropJpeg DecodeBmp DecodeGif DecodeJpeg DecodePng ExtractJpegShape"),
    ("host", _DATA, "writes encoded images; tests/core/io and tests/core/ops decode what it writes",
     "EncodeJpeg EncodeJpegVariableQuality EncodePng"),
    ("host", _DATA, "writes a summary protobuf; tests/core/summary parses what it writes",
     "AudioSummary AudioSummaryV2 HistogramSummary ImageSummary MergeSummary ScalarSummary"),
    ("host", _DATA, "writes a summary protobuf; tests/core/summary parses what it writes",
     "TensorSummary TensorSummaryV2"),
    ("resource", _DATA, "writes an event file; tests/core/summary/test_recording.py reads it",
     "CloseSummaryWriter CreateSummaryFileWriter FlushSummaryWriter ImportEvent SummaryWriter"),
    ("resource", _DATA, "writes an event file; tests/core/summary/test_recording.py reads it",
     "WriteAudioSummary WriteGraphSummary WriteHistogramSummary WriteImageSummary"),
    ("resource", _DATA, "writes an event file; tests/core/summary/test_recording.py reads it",
     "WriteRawProtoSummary WriteScalarSummary WriteSummary"),
)  # fmt: skip


def _table() -> Iterator[tuple[str, Exemption]]:
    for kind, parts, reason, ops in _TABLE:
        for op in ops.split():
            yield op, Exemption(kind, parts, reason)


EXEMPT: Final[dict[str, Exemption]] = dict(_table())
"""Op type -> its exemption."""


NO_GRADIENT_SAMPLE: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            "FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars",
            "FakeQuantWithMinMaxVarsPerChannel", "QuantizeAndDequantize",
            "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3",
        ),
        "its gradient passes through what is a staircase; L2 compares the ops that compute it",
    ),
    "PreventGradient": "its gradient raises by design; tests/core/ops covers it",
    "RandomGamma": "rejection makes the sample jump; RandomGammaGrad is compared in L2 instead",
    "RefIdentity": "its input is a variable; the programs of L4 differentiate by variables",
    "ResourceGather": "its input is a variable; the programs of L4 differentiate by variables",
    "ResourceGatherNd": "its input is a variable; tests/core/graph/variables differentiates it",
    "ReadVariableOp": "its input is a variable; the programs of L4 differentiate by variables",
}  # fmt: skip
"""Ops whose gradient the numeric comparison cannot reach, and why."""


NO_ERROR_SAMPLE: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            "Cast", "DeepCopy", "EncodeBase64", "GuaranteeConst", "Identity", "IdentityN",
            "LogicalNot", "PreventGradient", "RandomShuffle", "Rank", "Shape", "ShapeN", "Size",
            "Snapshot", "StopGradient", "StringFormat", "StringLength", "StringStrip",
            "StringToHashBucket", "StringToHashBucketFast", "StringUpper", "UnicodeScript",
            "ZerosLike",
        ),
        "takes any tensor of the types that its signature fixes",
    ),
    **dict.fromkeys(
        (
            "DisableCopyOnRead", "IsVariableInitialized", "ReadVariableOp", "RefIdentity",
            "VarIsInitializedOp", "VariableShape",
        ),
        "takes any variable",
    ),
    **dict.fromkeys(
        (
            "BatchFFT", "BatchFFT2D", "BatchFFT3D", "BatchIFFT", "BatchIFFT2D", "BatchIFFT3D",
            "BatchMatrixBandPart", "BatchMatrixDiag", "BatchMatrixDiagPart", "BatchMatrixSetDiag",
        ),
        "an older name without a shape function; the op that it became has error samples",
    ),
    "Const": "takes nothing",
    "SdcaShrinkL1": "takes any variables",
}  # fmt: skip
"""Ops that no call of theirs shows to refuse anything, and why."""


def exemption(op: str) -> Exemption | None:
    """The exemption of an op type, or None."""
    return EXEMPT.get(op)
