"""Which family defines an op. Written by tools/make_families.py; do not edit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

OPS: Final[Mapping[str, str]] = {
    "accumulators": (
        "AccumulatorApplyGradient AccumulatorNumAccumulated AccumulatorSetGlobalStep "
        "AccumulatorTakeGradient ConditionalAccumulator ResourceAccumulatorApplyGradient "
        "ResourceAccumulatorNumAccumulated ResourceAccumulatorSetGlobalStep "
        "ResourceAccumulatorTakeGradient ResourceConditionalAccumulator "
        "SparseAccumulatorApplyGradient SparseAccumulatorTakeGradient "
        "SparseConditionalAccumulator"
    ),
    "argmax": "ArgMax ArgMin",
    "arithmetic": (
        "Add AddV2 Div DivNoNan FloorDiv FloorMod Maximum Minimum Mod Mul MulNoNan Pow RealDiv "
        "SquaredDifference Sub TruncateDiv TruncateMod Xdivy Xlogy"
    ),
    "array": (
        "BroadcastArgs BroadcastTo EnsureShape ExpandDims Rank Reshape Shape ShapeN Size Squeeze "
        "UnravelIndex"
    ),
    "audio": "AudioSpectrogram DecodeWav EncodeWav Mfcc",
    "barriers": (
        "Barrier BarrierClose BarrierIncompleteSize BarrierInsertMany BarrierReadySize "
        "BarrierTakeMany"
    ),
    "batching": "Batch BatchFunction Unbatch UnbatchGrad",
    "beam_search": "GatherTree",
    "bias": "BiasAdd BiasAddGrad BiasAddV1",
    "bitwise": "BitwiseAnd BitwiseOr BitwiseXor Invert LeftShift PopulationCount RightShift",
    "block_rnn": (
        "BlockLSTM BlockLSTMGrad BlockLSTMGradV2 BlockLSTMV2 GRUBlockCell GRUBlockCellGrad "
        "LSTMBlockCell LSTMBlockCellGrad"
    ),
    "boosted_trees": (
        "BoostedTreesCenterBias BoostedTreesCreateEnsemble BoostedTreesDeserializeEnsemble "
        "BoostedTreesEnsembleResourceHandleOp BoostedTreesExampleDebugOutputs "
        "BoostedTreesGetEnsembleStates BoostedTreesPredict BoostedTreesSerializeEnsemble "
        "BoostedTreesTrainingPredict BoostedTreesUpdateEnsemble BoostedTreesUpdateEnsembleV2 "
        "IsBoostedTreesEnsembleInitialized"
    ),
    "boosted_trees_quantiles": (
        "BoostedTreesBucketize BoostedTreesCreateQuantileStreamResource "
        "BoostedTreesFlushQuantileSummaries BoostedTreesMakeQuantileSummaries "
        "BoostedTreesQuantileStreamResourceAddSummaries "
        "BoostedTreesQuantileStreamResourceDeserialize BoostedTreesQuantileStreamResourceFlush "
        "BoostedTreesQuantileStreamResourceGetBucketBoundaries "
        "BoostedTreesQuantileStreamResourceHandleOp "
        "IsBoostedTreesQuantileStreamResourceInitialized"
    ),
    "boosted_trees_stats": (
        "BoostedTreesAggregateStats BoostedTreesCalculateBestFeatureSplit "
        "BoostedTreesCalculateBestGainsPerFeature BoostedTreesMakeStatsSummary "
        "BoostedTreesSparseAggregateStats BoostedTreesSparseCalculateBestFeatureSplit"
    ),
    "bucketize": "Bucketize CompareAndBitpack",
    "calls": "PartitionedCall StatefulPartitionedCall SymbolicGradient",
    "candidate_sampling": (
        "AllCandidateSampler ComputeAccidentalHits FixedUnigramCandidateSampler "
        "LearnedUnigramCandidateSampler LogUniformCandidateSampler "
        "ThreadUnsafeUnigramCandidateSampler UniformCandidateSampler"
    ),
    "cast": "Bitcast Cast",
    "check": "Assert",
    "clip": "ClipByValue",
    "clustering": "KMC2ChainInitialization KmeansPlusPlusInitialization NearestNeighbors",
    "collective": "CollectiveBcastRecv CollectiveBcastSend CollectiveGather CollectiveReduce",
    "compare": (
        "ApproximateEqual Equal Greater GreaterEqual Less LessEqual LogicalAnd LogicalNot "
        "LogicalOr NotEqual Select SelectV2"
    ),
    "complex": "Angle Complex ComplexAbs Conj Imag Real",
    "control": "ControlTrigger If NoOp StatelessIf StatelessWhile While",
    "conv": "Conv2D Conv2DBackpropFilter Conv2DBackpropInput",
    "conv3d": (
        "Conv3D Conv3DBackpropFilter Conv3DBackpropFilterV2 Conv3DBackpropInput "
        "Conv3DBackpropInputV2"
    ),
    "ctc": "CTCBeamSearchDecoder CTCGreedyDecoder CTCLoss",
    "data_elements": (
        "AssertNextDataset AutoShardDataset BatchDataset BatchDatasetV2 CacheDataset "
        "ChooseFastestDataset ConcatenateDataset DenseToSparseBatchDataset "
        "DirectedInterleaveDataset FilterByLastComponentDataset IgnoreErrorsDataset "
        "MaxIntraOpParallelismDataset ModelDataset NonSerializableDataset OptimizeDataset "
        "PaddedBatchDataset PaddedBatchDatasetV2 PrefetchDataset PrivateThreadPoolDataset "
        "RebatchDataset RepeatDataset SamplingDataset ShardDataset ShuffleAndRepeatDataset "
        "ShuffleDataset SkipDataset SleepDataset SlidingWindowDataset TakeDataset "
        "ThreadPoolDataset ThreadPoolHandle UnbatchDataset UniqueDataset WindowDataset ZipDataset"
    ),
    "data_experimental": (
        "ExperimentalAssertNextDataset ExperimentalAutoShardDataset "
        "ExperimentalBytesProducedStatsDataset ExperimentalCSVDataset "
        "ExperimentalChooseFastestDataset ExperimentalDatasetCardinality "
        "ExperimentalDatasetToTFRecord ExperimentalDenseToSparseBatchDataset "
        "ExperimentalDirectedInterleaveDataset ExperimentalGroupByReducerDataset "
        "ExperimentalGroupByWindowDataset ExperimentalIgnoreErrorsDataset ExperimentalLMDBDataset "
        "ExperimentalLatencyStatsDataset ExperimentalMapAndBatchDataset ExperimentalMapDataset "
        "ExperimentalMatchingFilesDataset ExperimentalMaxIntraOpParallelismDataset "
        "ExperimentalNonSerializableDataset ExperimentalParallelInterleaveDataset "
        "ExperimentalParseExampleDataset ExperimentalPrivateThreadPoolDataset "
        "ExperimentalRandomDataset ExperimentalRebatchDataset ExperimentalScanDataset "
        "ExperimentalSetStatsAggregatorDataset ExperimentalSleepDataset "
        "ExperimentalSlidingWindowDataset ExperimentalSqlDataset "
        "ExperimentalStatsAggregatorHandle ExperimentalStatsAggregatorSummary "
        "ExperimentalTakeWhileDataset ExperimentalThreadPoolDataset ExperimentalThreadPoolHandle "
        "ExperimentalUnbatchDataset ExperimentalUniqueDataset"
    ),
    "data_format": "DataFormatDimMap DataFormatVecPermute",
    "data_functions": (
        "ChooseFastestBranchDataset FilterDataset FlatMapDataset GroupByReducerDataset "
        "GroupByWindowDataset InterleaveDataset MapAndBatchDataset MapDataset MapDefun "
        "ParallelInterleaveDataset ParallelInterleaveDatasetV2 ParallelMapDataset "
        "ParseExampleDataset ReduceDataset ScanDataset TakeWhileDataset"
    ),
    "data_iterators": (
        "AnonymousIterator AnonymousIteratorV2 DatasetCardinality DatasetToSingleElement "
        "DatasetToTFRecord DeleteIterator DeserializeIterator Iterator IteratorFromStringHandle "
        "IteratorFromStringHandleV2 IteratorGetNext IteratorGetNextAsOptional IteratorGetNextSync "
        "IteratorToStringHandle IteratorV2 MakeIterator OneShotIterator OptionalFromValue "
        "OptionalGetValue OptionalHasValue OptionalNone SerializeIterator UnwrapDatasetVariant "
        "WrapDatasetVariant"
    ),
    "data_multi_device": (
        "MultiDeviceIterator MultiDeviceIteratorFromStringHandle "
        "MultiDeviceIteratorGetNextFromShard MultiDeviceIteratorInit "
        "MultiDeviceIteratorToStringHandle"
    ),
    "data_sources": (
        "CSVDataset FixedLengthRecordDataset FixedLengthRecordDatasetV2 GeneratorDataset "
        "LMDBDataset MatchingFilesDataset RandomDataset RangeDataset SparseTensorSliceDataset "
        "SqlDataset TFRecordDataset TensorDataset TensorSliceDataset TextLineDataset"
    ),
    "data_stats": (
        "BytesProducedStatsDataset LatencyStatsDataset SetStatsAggregatorDataset "
        "StatsAggregatorHandle StatsAggregatorSummary"
    ),
    "decompositions": "Cholesky CholeskyGrad Lu Qr SelfAdjointEig SelfAdjointEigV2 Svd",
    "depthwise": (
        "DepthwiseConv2dNative DepthwiseConv2dNativeBackpropFilter "
        "DepthwiseConv2dNativeBackpropInput"
    ),
    "diag": (
        "Diag DiagPart MatrixDiag MatrixDiagPart MatrixDiagPartV2 MatrixDiagV2 MatrixSetDiag "
        "MatrixSetDiagV2"
    ),
    "edit_distance": "EditDistance",
    "einsum": "Einsum",
    "elementary": (
        "Abs Ceil Exp Expm1 Floor Inv InvGrad IsFinite IsInf IsNan Log Log1p Neg Reciprocal "
        "ReciprocalGrad Rint Round Rsqrt RsqrtGrad Sigmoid SigmoidGrad Sign Sqrt SqrtGrad Square "
        "Tanh TanhGrad"
    ),
    "encoding": (
        "AsString DecodeBase64 DecodeCompressed DecodePaddedRaw DecodeRaw EncodeBase64 "
        "ParseTensor SerializeTensor StringToNumber"
    ),
    "fake_quant": (
        "FakeQuantWithMinMaxArgs FakeQuantWithMinMaxArgsGradient FakeQuantWithMinMaxVars "
        "FakeQuantWithMinMaxVarsGradient FakeQuantWithMinMaxVarsPerChannel "
        "FakeQuantWithMinMaxVarsPerChannelGradient QuantizeAndDequantize QuantizeAndDequantizeV2 "
        "QuantizeAndDequantizeV3"
    ),
    "fft": "FFT FFT2D FFT3D IFFT IFFT2D IFFT3D IRFFT IRFFT2D IRFFT3D RFFT RFFT2D RFFT3D",
    "fill": "Fill LinSpace OnesLike Range ZerosLike",
    "fractional_pool": (
        "FractionalAvgPool FractionalAvgPoolGrad FractionalMaxPool FractionalMaxPoolGrad"
    ),
    "functional": "Case For RemoteCall StatelessCase",
    "fused_conv": "FusedPadConv2D FusedResizeAndPadConv2D",
    "gather": "Gather GatherNd GatherV2",
    "hashing": "Fingerprint StringToHashBucket StringToHashBucketFast StringToHashBucketStrong",
    "histogram": "Bincount HistogramFixedWidth",
    "identity": (
        "CheckNumerics GuaranteeConst Identity IdentityN Placeholder PlaceholderV2 "
        "PlaceholderWithDefault PreventGradient RefIdentity Snapshot StopGradient"
    ),
    "image_boxes": (
        "CombinedNonMaxSuppression DrawBoundingBoxes DrawBoundingBoxesV2 NonMaxSuppression "
        "NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4 NonMaxSuppressionV5 "
        "NonMaxSuppressionWithOverlaps SampleDistortedBoundingBox SampleDistortedBoundingBoxV2"
    ),
    "image_codec": (
        "DecodeAndCropJpeg DecodeBmp DecodeGif DecodeJpeg DecodePng EncodeJpeg "
        "EncodeJpegVariableQuality EncodePng ExtractJpegShape"
    ),
    "image_color": "AdjustContrastv2 AdjustHsvInYiq AdjustHue AdjustSaturation HSVToRGB RGBToHSV",
    "image_crop": "CropAndResize CropAndResizeGradBoxes CropAndResizeGradImage ExtractGlimpse",
    "image_regions": "BipartiteMatch ImageConnectedComponents",
    "image_resize": (
        "ResizeArea ResizeBicubic ResizeBicubicGrad ResizeBilinear ResizeBilinearGrad "
        "ResizeNearestNeighbor ResizeNearestNeighborGrad ScaleAndTranslate ScaleAndTranslateGrad"
    ),
    "image_warp": "ImageProjectiveTransform ImageProjectiveTransformV2 Resampler ResamplerGrad",
    "inplace": "DeepCopy Empty InplaceAdd InplaceSub InplaceUpdate",
    "io": (
        "MatchingFiles MergeV2Checkpoints ReadFile Restore RestoreSlice RestoreV2 Save SaveSlices "
        "SaveV2 ShardedFilename ShardedFilespec WriteFile _CreateCheckpoint _FinishCheckpoint "
        "_OpenCheckpoint _ReadCheckpoint _WriteCheckpoint"
    ),
    "joining": "Concat ConcatOffset ConcatV2 Pack ParallelConcat",
    "later": (
        "DecodeImage DenseBincount FinalizeDataset MatrixDiagPartV3 MatrixDiagV3 MatrixSetDiagV3 "
        "OptionsDataset ParallelBatchDataset ParallelInterleaveDatasetV3 "
        "ParallelInterleaveDatasetV4 ParallelMapDatasetV2 ParseExampleV2 RewriteDataset Xlog1py"
    ),
    "linalg": "BatchMatMul BatchMatMulV2 MatMul SparseMatMul",
    "lookup": (
        "HashTable HashTableV2 InitializeTable InitializeTableFromTextFile "
        "InitializeTableFromTextFileV2 InitializeTableV2 LookupTableExport LookupTableExportV2 "
        "LookupTableFind LookupTableFindV2 LookupTableImport LookupTableImportV2 "
        "LookupTableInsert LookupTableInsertV2 LookupTableRemoveV2 LookupTableSize "
        "LookupTableSizeV2 MutableDenseHashTable MutableDenseHashTableV2 MutableHashTable "
        "MutableHashTableOfTensors MutableHashTableOfTensorsV2 MutableHashTableV2"
    ),
    "loss": "InTopK InTopKV2 L2Loss",
    "lrn": "LRN LRNGrad",
    "matrix": "ConjugateTranspose MatrixBandPart Transpose",
    "matrix_functions": "MatrixExponential MatrixLogarithm MatrixSquareRoot",
    "memory_stats": "BytesInUse BytesLimit MaxBytesInUse",
    "morphology": "Dilation2D Dilation2DBackpropFilter Dilation2DBackpropInput",
    "mutex": "ConsumeMutexLock MutexLock MutexV2",
    "ngrams": "StringNGrams",
    "nn": (
        "Elu EluGrad LeakyRelu LeakyReluGrad Relu Relu6 Relu6Grad ReluGrad Selu SeluGrad Softplus "
        "SoftplusGrad Softsign SoftsignGrad"
    ),
    "norm": (
        "BatchNormWithGlobalNormalization BatchNormWithGlobalNormalizationGrad FusedBatchNorm "
        "FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3 FusedBatchNormV2 "
        "FusedBatchNormV3"
    ),
    "padding": "MirrorPad MirrorPadGrad Pad PadV2",
    "parsing": (
        "DecodeCSV DecodeJSONExample ParseExample ParseSequenceExample ParseSingleExample "
        "ParseSingleSequenceExample"
    ),
    "partition": "DynamicPartition DynamicStitch ParallelDynamicStitch",
    "patches": "ExtractImagePatches ExtractVolumePatches",
    "pool": (
        "AvgPool AvgPoolGrad MaxPool MaxPoolGrad MaxPoolGradGrad MaxPoolGradGradV2 "
        "MaxPoolGradGradWithArgmax MaxPoolGradV2 MaxPoolGradWithArgmax MaxPoolV2 "
        "MaxPoolWithArgmax"
    ),
    "pool3d": "AvgPool3D AvgPool3DGrad MaxPool3D MaxPool3DGrad MaxPool3DGradGrad",
    "printing": "Print PrintV2 StringFormat",
    "probes": (
        "A Attr AttrBool AttrBoolList AttrDefault AttrEmptyListDefault AttrEnum AttrEnumList "
        "AttrFloat AttrListDefault AttrListMin AttrListTypeDefault AttrMin AttrPartialShape "
        "AttrPartialShapeList AttrShape AttrShapeList AttrTypeDefault B Binary ComplexStruct "
        "CopyOp DefaultAttrs FiveFloatOutputs FloatInput FloatOutput FloatOutputStringOutput Foo1 "
        "Foo2 Foo3 FuncAttr FuncListAttr InPolymorphicTwice Int64Output IntAttr IntInput "
        "IntInputFloatInput IntInputIntOutput IntOutput IntOutputFloatOutput ListInput ListOutput "
        "MixedStruct NInPolymorphicTwice NInTwice NInTwoTypeVariables NIntsIn NIntsOut "
        "NIntsOutDefault NPolymorphicIn NPolymorphicOut NPolymorphicOutDefault "
        "NPolymorphicRestrictIn NPolymorphicRestrictOut None OpWithDefaultAttr "
        "OpWithFutureDefaultAttr OutT OutTypeList OutTypeListRestrict Polymorphic "
        "PolymorphicDefaultOut PolymorphicOut RefIn RefInputFloatInput "
        "RefInputFloatInputIntOutput RefInputIntInput RefOut RefOutput RefOutputFloatOutput "
        "ReservedAttr ReservedInput Restrict Simple SimpleStruct StringListAttr TestAttr "
        "TestStringOutput TwoFloatInputs TwoFloatInputsFloatOutput TwoFloatInputsIntOutput "
        "TwoFloatOutputs TwoIntInputs TwoIntOutputs TwoRefsIn TypeList TypeListRestrict "
        "TypeListTwice Unary"
    ),
    "proto": "DecodeProtoV2 EncodeProto",
    "quantize": "Dequantize QuantizeDownAndShrinkRange QuantizeV2 RequantizationRange Requantize",
    "quantized": (
        "QuantizedAdd QuantizedBiasAdd QuantizedConcat QuantizedMatMul QuantizedMul "
        "QuantizedReshape"
    ),
    "quantized_fused": (
        "QuantizedConv2DAndRelu QuantizedConv2DAndReluAndRequantize QuantizedConv2DAndRequantize "
        "QuantizedConv2DPerChannel QuantizedConv2DWithBias QuantizedConv2DWithBiasAndRelu "
        "QuantizedConv2DWithBiasAndReluAndRequantize QuantizedConv2DWithBiasAndRequantize "
        "QuantizedConv2DWithBiasSignedSumAndReluAndRequantize QuantizedConv2DWithBiasSumAndRelu "
        "QuantizedConv2DWithBiasSumAndReluAndRequantize QuantizedDepthwiseConv2D "
        "QuantizedDepthwiseConv2DWithBias QuantizedDepthwiseConv2DWithBiasAndRelu "
        "QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize QuantizedMatMulWithBias "
        "QuantizedMatMulWithBiasAndRelu QuantizedMatMulWithBiasAndReluAndRequantize "
        "RequantizationRangePerChannel RequantizePerChannel"
    ),
    "quantized_nn": (
        "QuantizedAvgPool QuantizedBatchNormWithGlobalNormalization QuantizedConv2D "
        "QuantizedInstanceNorm QuantizedMaxPool QuantizedRelu QuantizedRelu6 QuantizedReluX"
    ),
    "queues": (
        "FIFOQueue FIFOQueueV2 FakeQueue PaddingFIFOQueue PaddingFIFOQueueV2 PriorityQueue "
        "PriorityQueueV2 QueueClose QueueCloseV2 QueueDequeue QueueDequeueMany QueueDequeueManyV2 "
        "QueueDequeueUpTo QueueDequeueUpToV2 QueueDequeueV2 QueueEnqueue QueueEnqueueMany "
        "QueueEnqueueManyV2 QueueEnqueueV2 QueueIsClosed QueueIsClosedV2 QueueSize QueueSizeV2 "
        "RandomShuffleQueue RandomShuffleQueueV2"
    ),
    "ragged": (
        "RaggedGather RaggedRange RaggedTensorFromVariant RaggedTensorToSparse "
        "RaggedTensorToVariant"
    ),
    "ragged_padding": "RaggedTensorToTensor",
    "random": "RandomShuffle RandomStandardNormal RandomUniform RandomUniformInt TruncatedNormal",
    "random_dist": (
        "Multinomial ParameterizedTruncatedNormal RandomGamma RandomGammaGrad RandomPoissonV2"
    ),
    "random_stateful": (
        "NonDeterministicInts RngSkip StatefulRandomBinomial StatefulStandardNormalV2 "
        "StatefulTruncatedNormal StatefulUniform StatefulUniformFullInt StatefulUniformInt"
    ),
    "random_stateless": (
        "StatelessMultinomial StatelessRandomNormal StatelessRandomUniform "
        "StatelessRandomUniformInt StatelessTruncatedNormal"
    ),
    "readers": (
        "FixedLengthRecordReader FixedLengthRecordReaderV2 IdentityReader IdentityReaderV2 "
        "LMDBReader ReaderNumRecordsProduced ReaderNumRecordsProducedV2 "
        "ReaderNumWorkUnitsCompleted ReaderNumWorkUnitsCompletedV2 ReaderRead ReaderReadUpTo "
        "ReaderReadUpToV2 ReaderReadV2 ReaderReset ReaderResetV2 ReaderRestoreState "
        "ReaderRestoreStateV2 ReaderSerializeState ReaderSerializeStateV2 TFRecordReader "
        "TFRecordReaderV2 TextLineReader TextLineReaderV2 WholeFileReader WholeFileReaderV2"
    ),
    "record_input": "RecordInput",
    "reduce": "All Any EuclideanNorm Max Mean Min Prod Sum",
    "reduce_slice": "ReduceSliceMax ReduceSliceMin ReduceSliceProd ReduceSliceSum",
    "regex": "RegexFullMatch RegexReplace StaticRegexFullMatch StaticRegexReplace",
    "remapping": "GenerateVocabRemapping LoadAndRemapMatrix",
    "scan": "Cumprod Cumsum CumulativeLogsumexp",
    "scatter": (
        "ScatterNd ScatterNdNonAliasingAdd TensorScatterAdd TensorScatterMax TensorScatterMin "
        "TensorScatterSub TensorScatterUpdate"
    ),
    "script": "EagerPyFunc PyFunc PyFuncStateless",
    "sdca": "SdcaFprint SdcaOptimizer SdcaOptimizerV2 SdcaShrinkL1",
    "segment": "SegmentMax SegmentMean SegmentMin SegmentProd SegmentSum",
    "select": "OneHot Where",
    "session_handles": "DeleteSessionTensor GetSessionHandle GetSessionHandleV2 GetSessionTensor",
    "set_operations": (
        "DenseToDenseSetOperation DenseToSparseSetOperation SetSize SparseToSparseSetOperation"
    ),
    "sets": "InvertPermutation ListDiff Unique UniqueV2 UniqueWithCounts UniqueWithCountsV2",
    "slicing": "ResourceStridedSliceAssign Slice StridedSlice StridedSliceAssign StridedSliceGrad",
    "solve": (
        "LogMatrixDeterminant MatrixDeterminant MatrixInverse MatrixSolve MatrixSolveLs "
        "MatrixTriangularSolve"
    ),
    "sorting": "LowerBound NthElement TopK TopKV2 UpperBound",
    "spacebatch": (
        "BatchToSpace BatchToSpaceND DepthToSpace SpaceToBatch SpaceToBatchND SpaceToDepth"
    ),
    "sparse_cross": "SparseCross SparseFeatureCross SparseFeatureCrossV2",
    "sparse_layout": (
        "SparseConcat SparseFillEmptyRows SparseFillEmptyRowsGrad SparseReorder SparseReshape "
        "SparseSlice SparseSliceGrad SparseSplit SparseToDense"
    ),
    "sparse_math": (
        "SparseAdd SparseAddGrad SparseDenseCwiseAdd SparseDenseCwiseDiv SparseDenseCwiseMul "
        "SparseSoftmax SparseSparseMaximum SparseSparseMinimum SparseTensorDenseAdd "
        "SparseTensorDenseMatMul"
    ),
    "sparse_reduce": "SparseReduceMax SparseReduceMaxSparse SparseReduceSum SparseReduceSumSparse",
    "sparse_segment": (
        "SparseSegmentMean SparseSegmentMeanGrad SparseSegmentMeanWithNumSegments "
        "SparseSegmentSqrtN SparseSegmentSqrtNGrad SparseSegmentSqrtNWithNumSegments "
        "SparseSegmentSum SparseSegmentSumWithNumSegments"
    ),
    "sparse_serial": (
        "AddManySparseToTensorsMap AddSparseToTensorsMap DeserializeManySparse DeserializeSparse "
        "SerializeManySparse SerializeSparse TakeManySparseFromTensorsMap"
    ),
    "special": (
        "BesselI0e BesselI1e Betainc Digamma Erf Erfc Erfinv Igamma IgammaGradA Igammac Lgamma "
        "Ndtri NextAfter Polygamma Zeta"
    ),
    "splitting": "Split SplitV Unpack",
    "stack": "Stack StackClose StackCloseV2 StackPop StackPopV2 StackPush StackPushV2 StackV2",
    "staging": (
        "MapClear MapIncompleteSize MapPeek MapSize MapStage MapUnstage MapUnstageNoKey "
        "OrderedMapClear OrderedMapIncompleteSize OrderedMapPeek OrderedMapSize OrderedMapStage "
        "OrderedMapUnstage OrderedMapUnstageNoKey Stage StageClear StagePeek StageSize Unstage"
    ),
    "state": (
        "Assign AssignAdd AssignAddVariableOp AssignSub AssignSubVariableOp AssignVariableOp "
        "CountUpTo DestroyResourceOp DestroyTemporaryVariable DisableCopyOnRead "
        "IsVariableInitialized ReadVariableOp ResourceCountUpTo ResourceGather ResourceGatherNd "
        "ResourceScatterAdd ResourceScatterDiv ResourceScatterMax ResourceScatterMin "
        "ResourceScatterMul ResourceScatterNdAdd ResourceScatterNdSub ResourceScatterNdUpdate "
        "ResourceScatterSub ResourceScatterUpdate ScatterAdd ScatterDiv ScatterMax ScatterMin "
        "ScatterMul ScatterNdAdd ScatterNdSub ScatterNdUpdate ScatterSub ScatterUpdate "
        "TemporaryVariable VarHandleOp VarIsInitializedOp Variable VariableShape VariableV2"
    ),
    "strings": (
        "ReduceJoin StringJoin StringLength StringLower StringSplit StringSplitV2 StringStrip "
        "StringUpper Substr UnsortedSegmentJoin"
    ),
    "summary": (
        "AudioSummary AudioSummaryV2 HistogramSummary ImageSummary MergeSummary ScalarSummary "
        "TensorSummary TensorSummaryV2"
    ),
    "summary_writer": (
        "CloseSummaryWriter CreateSummaryFileWriter FlushSummaryWriter ImportEvent SummaryWriter "
        "WriteAudioSummary WriteGraphSummary WriteHistogramSummary WriteImageSummary "
        "WriteRawProtoSummary WriteScalarSummary WriteSummary"
    ),
    "sums": "AccumulateNV2 AddN Cross",
    "superseded": (
        "BatchCholesky BatchCholeskyGrad BatchFFT BatchFFT2D BatchFFT3D BatchIFFT BatchIFFT2D "
        "BatchIFFT3D BatchMatrixBandPart BatchMatrixDeterminant BatchMatrixDiag "
        "BatchMatrixDiagPart BatchMatrixInverse BatchMatrixSetDiag BatchMatrixSolve "
        "BatchMatrixSolveLs BatchMatrixTriangularSolve BatchSelfAdjointEig BatchSelfAdjointEigV2 "
        "BatchSvd"
    ),
    "switch": (
        "Enter Exit LoopCond Merge NextIteration RefEnter RefExit RefMerge RefNextIteration "
        "RefSelect RefSwitch Switch _DeadValue"
    ),
    "tasks": "_ReceiveFromTask _SendToTask",
    "tensor_array": (
        "TensorArray TensorArrayClose TensorArrayCloseV2 TensorArrayCloseV3 TensorArrayConcat "
        "TensorArrayConcatV2 TensorArrayConcatV3 TensorArrayGather TensorArrayGatherV2 "
        "TensorArrayGatherV3 TensorArrayGrad TensorArrayGradV2 TensorArrayGradV3 "
        "TensorArrayGradWithShape TensorArrayPack TensorArrayRead TensorArrayReadV2 "
        "TensorArrayReadV3 TensorArrayScatter TensorArrayScatterV2 TensorArrayScatterV3 "
        "TensorArraySize TensorArraySizeV2 TensorArraySizeV3 TensorArraySplit TensorArraySplitV2 "
        "TensorArraySplitV3 TensorArrayUnpack TensorArrayV2 TensorArrayV3 TensorArrayWrite "
        "TensorArrayWriteV2 TensorArrayWriteV3"
    ),
    "tensor_forest": (
        "CreateFertileStatsVariable CreateTreeVariable DecisionTreeResourceHandleOp "
        "FeatureUsageCounts FertileStatsDeserialize FertileStatsIsInitializedOp "
        "FertileStatsResourceHandleOp FertileStatsSerialize GrowTreeV4 ProcessInputV4 "
        "TraverseTreeV4 TreeDeserialize TreeIsInitializedOp TreePredictionsV4 TreeSerialize "
        "TreeSize UpdateModelV4"
    ),
    "tensor_list": (
        "EmptyTensorList TensorListElementShape TensorListGetItem TensorListLength "
        "TensorListPopBack TensorListPushBack TensorListReserve TensorListResize "
        "TensorListSetItem"
    ),
    "tensor_list_rows": (
        "TensorListConcat TensorListConcatLists TensorListConcatV2 TensorListFromTensor "
        "TensorListGather TensorListPushBackBatch TensorListScatter "
        "TensorListScatterIntoExistingList TensorListScatterV2 TensorListSplit TensorListStack"
    ),
    "tiling": "Reverse ReverseSequence ReverseV2 Roll Tile",
    "timestamp": "Timestamp",
    "training": (
        "ApplyAdaMax ApplyAdadelta ApplyAdagrad ApplyAdagradDA ApplyAdagradV2 ApplyAdam "
        "ApplyAddSign ApplyCenteredRMSProp ApplyFtrl ApplyFtrlV2 ApplyGradientDescent "
        "ApplyMomentum ApplyPowerSign ApplyProximalAdagrad ApplyProximalGradientDescent "
        "ApplyRMSProp ResourceApplyAdaMax ResourceApplyAdadelta ResourceApplyAdagrad "
        "ResourceApplyAdagradDA ResourceApplyAdagradV2 ResourceApplyAdam "
        "ResourceApplyAdamWithAmsgrad ResourceApplyAddSign ResourceApplyCenteredRMSProp "
        "ResourceApplyFtrl ResourceApplyFtrlV2 ResourceApplyGradientDescent "
        "ResourceApplyKerasMomentum ResourceApplyMomentum ResourceApplyPowerSign "
        "ResourceApplyProximalAdagrad ResourceApplyProximalGradientDescent ResourceApplyRMSProp "
        "ResourceSparseApplyAdadelta ResourceSparseApplyAdagrad ResourceSparseApplyAdagradDA "
        "ResourceSparseApplyAdagradV2 ResourceSparseApplyCenteredRMSProp ResourceSparseApplyFtrl "
        "ResourceSparseApplyFtrlV2 ResourceSparseApplyKerasMomentum ResourceSparseApplyMomentum "
        "ResourceSparseApplyProximalAdagrad ResourceSparseApplyProximalGradientDescent "
        "ResourceSparseApplyRMSProp SparseApplyAdadelta SparseApplyAdagrad SparseApplyAdagradDA "
        "SparseApplyAdagradV2 SparseApplyCenteredRMSProp SparseApplyFtrl SparseApplyFtrlV2 "
        "SparseApplyMomentum SparseApplyProximalAdagrad SparseApplyProximalGradientDescent "
        "SparseApplyRMSProp"
    ),
    "tridiagonal": "TridiagonalMatMul TridiagonalSolve",
    "trig": "Acos Acosh Asin Asinh Atan Atan2 Atanh Cos Cosh Sin Sinh Tan",
    "unbroadcast": "BroadcastGradientArgs",
    "unicode": (
        "UnicodeDecode UnicodeDecodeWithOffsets UnicodeEncode UnicodeScript UnicodeTranscode"
    ),
    "unsorted_segment": (
        "UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum"
    ),
    "xent": "LogSoftmax Softmax SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits",
}
"""Module of `opdock.ops` -> the op types that it defines."""
