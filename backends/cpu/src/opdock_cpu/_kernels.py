"""Which tables have kernels for an op. Written by tools/make_families.py; do not edit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TABLES: Final[Mapping[str, str]] = {
    "opdock_cpu.kernels.accumulators:table": (
        "AccumulatorApplyGradient AccumulatorNumAccumulated AccumulatorSetGlobalStep "
        "AccumulatorTakeGradient ConditionalAccumulator ResourceAccumulatorApplyGradient "
        "ResourceAccumulatorNumAccumulated ResourceAccumulatorSetGlobalStep "
        "ResourceAccumulatorTakeGradient ResourceConditionalAccumulator "
        "SparseAccumulatorApplyGradient SparseAccumulatorTakeGradient "
        "SparseConditionalAccumulator"
    ),
    "opdock_cpu.kernels.argmax:table": "ArgMax ArgMin",
    "opdock_cpu.kernels.arithmetic:table": (
        "Add Div DivNoNan FloorDiv FloorMod Mod MulNoNan NextAfter TruncateDiv TruncateMod Xdivy "
        "Xlogy"
    ),
    "opdock_cpu.kernels.array:table": "BroadcastTo",
    "opdock_cpu.kernels.audio:table": "DecodeWav EncodeWav",
    "opdock_cpu.kernels.barriers:table": (
        "Barrier BarrierClose BarrierIncompleteSize BarrierInsertMany BarrierReadySize "
        "BarrierTakeMany"
    ),
    "opdock_cpu.kernels.bias:table": "BiasAdd BiasAddGrad BiasAddV1",
    "opdock_cpu.kernels.bitwise:table": "LeftShift PopulationCount RightShift",
    "opdock_cpu.kernels.block_rnn:table": "BlockLSTM BlockLSTMGrad BlockLSTMGradV2 BlockLSTMV2",
    "opdock_cpu.kernels.boosted_trees:table": (
        "BoostedTreesCenterBias BoostedTreesCreateEnsemble BoostedTreesDeserializeEnsemble "
        "BoostedTreesEnsembleResourceHandleOp BoostedTreesExampleDebugOutputs "
        "BoostedTreesGetEnsembleStates BoostedTreesPredict BoostedTreesSerializeEnsemble "
        "BoostedTreesTrainingPredict BoostedTreesUpdateEnsemble BoostedTreesUpdateEnsembleV2 "
        "IsBoostedTreesEnsembleInitialized"
    ),
    "opdock_cpu.kernels.boosted_trees_quantiles:table": (
        "BoostedTreesCreateQuantileStreamResource BoostedTreesFlushQuantileSummaries "
        "BoostedTreesMakeQuantileSummaries BoostedTreesQuantileStreamResourceAddSummaries "
        "BoostedTreesQuantileStreamResourceDeserialize BoostedTreesQuantileStreamResourceFlush "
        "BoostedTreesQuantileStreamResourceGetBucketBoundaries "
        "BoostedTreesQuantileStreamResourceHandleOp "
        "IsBoostedTreesQuantileStreamResourceInitialized"
    ),
    "opdock_cpu.kernels.boosted_trees_stats:table": (
        "BoostedTreesCalculateBestFeatureSplit BoostedTreesCalculateBestGainsPerFeature "
        "BoostedTreesSparseAggregateStats BoostedTreesSparseCalculateBestFeatureSplit"
    ),
    "opdock_cpu.kernels.bucketize:table": "Bucketize",
    "opdock_cpu.kernels.candidate_sampling:table": (
        "AllCandidateSampler FixedUnigramCandidateSampler LearnedUnigramCandidateSampler "
        "LogUniformCandidateSampler ThreadUnsafeUnigramCandidateSampler UniformCandidateSampler"
    ),
    "opdock_cpu.kernels.cast:table": "Bitcast Cast",
    "opdock_cpu.kernels.clustering:table": (
        "KMC2ChainInitialization KmeansPlusPlusInitialization NearestNeighbors"
    ),
    "opdock_cpu.kernels.compare:table": "Equal NotEqual Select SelectV2",
    "opdock_cpu.kernels.complex:table": "Angle Complex Imag Real",
    "opdock_cpu.kernels.conv:table": (
        "Conv2D Conv2DBackpropFilter Conv2DBackpropInput Conv3D Conv3DBackpropFilterV2 "
        "Conv3DBackpropInputV2"
    ),
    "opdock_cpu.kernels.ctc:table": "CTCBeamSearchDecoder CTCGreedyDecoder CTCLoss",
    "opdock_cpu.kernels.decompositions:table": "Cholesky CholeskyGrad Lu",
    "opdock_cpu.kernels.depthwise:table": (
        "DepthwiseConv2dNative DepthwiseConv2dNativeBackpropFilter "
        "DepthwiseConv2dNativeBackpropInput"
    ),
    "opdock_cpu.kernels.edit_distance:table": "EditDistance",
    "opdock_cpu.kernels.einsum:table": "Einsum",
    "opdock_cpu.kernels.encoding:table": (
        "AsString DecodeBase64 DecodeCompressed DecodePaddedRaw DecodeRaw EncodeBase64 "
        "ParseTensor SerializeTensor StringToNumber"
    ),
    "opdock_cpu.kernels.fake_quant:table": (
        "FakeQuantWithMinMaxArgs FakeQuantWithMinMaxArgsGradient FakeQuantWithMinMaxVars "
        "FakeQuantWithMinMaxVarsGradient FakeQuantWithMinMaxVarsPerChannel"
    ),
    "opdock_cpu.kernels.fft:table": (
        "FFT FFT2D FFT3D IFFT IFFT2D IFFT3D IRFFT IRFFT2D IRFFT3D RFFT RFFT2D RFFT3D"
    ),
    "opdock_cpu.kernels.fill:table": "Fill OnesLike ZerosLike",
    "opdock_cpu.kernels.fractional_pool:table": (
        "FractionalAvgPool FractionalAvgPoolGrad FractionalMaxPool FractionalMaxPoolGrad"
    ),
    "opdock_cpu.kernels.gather:table": "Gather GatherNd GatherV2",
    "opdock_cpu.kernels.hashing:table": (
        "Fingerprint StringToHashBucket StringToHashBucketFast StringToHashBucketStrong"
    ),
    "opdock_cpu.kernels.histogram:table": "Bincount HistogramFixedWidth",
    "opdock_cpu.kernels.image_boxes:table": (
        "CombinedNonMaxSuppression DrawBoundingBoxes DrawBoundingBoxesV2 NonMaxSuppression "
        "NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4 NonMaxSuppressionV5 "
        "NonMaxSuppressionWithOverlaps SampleDistortedBoundingBox SampleDistortedBoundingBoxV2"
    ),
    "opdock_cpu.kernels.image_codec:table": (
        "DecodeAndCropJpeg DecodeBmp DecodeGif DecodeJpeg DecodePng EncodeJpeg "
        "EncodeJpegVariableQuality EncodePng ExtractJpegShape"
    ),
    "opdock_cpu.kernels.image_color:table": (
        "AdjustContrastv2 AdjustHue AdjustSaturation HSVToRGB RGBToHSV"
    ),
    "opdock_cpu.kernels.image_crop:table": (
        "CropAndResize CropAndResizeGradBoxes CropAndResizeGradImage ExtractGlimpse"
    ),
    "opdock_cpu.kernels.image_regions:table": "BipartiteMatch ImageConnectedComponents",
    "opdock_cpu.kernels.image_warp:table": "ImageProjectiveTransform ImageProjectiveTransformV2",
    "opdock_cpu.kernels.inplace:table": "DeepCopy Empty InplaceAdd InplaceSub InplaceUpdate",
    "opdock_cpu.kernels.io:table": (
        "MatchingFiles MergeV2Checkpoints ReadFile Restore RestoreSlice RestoreV2 Save SaveSlices "
        "SaveV2 ShardedFilename ShardedFilespec WriteFile _CreateCheckpoint _FinishCheckpoint "
        "_OpenCheckpoint _ReadCheckpoint _WriteCheckpoint"
    ),
    "opdock_cpu.kernels.joining:table": "Concat ConcatV2 Pack ParallelConcat",
    "opdock_cpu.kernels.linalg:table": "BatchMatMul BatchMatMulV2 MatMul SparseMatMul",
    "opdock_cpu.kernels.lookup:table": (
        "HashTable HashTableV2 InitializeTable InitializeTableFromTextFile "
        "InitializeTableFromTextFileV2 InitializeTableV2 LookupTableExport LookupTableExportV2 "
        "LookupTableFind LookupTableFindV2 LookupTableImport LookupTableImportV2 "
        "LookupTableInsert LookupTableInsertV2 LookupTableRemoveV2 LookupTableSize "
        "LookupTableSizeV2 MutableDenseHashTable MutableDenseHashTableV2 MutableHashTable "
        "MutableHashTableOfTensors MutableHashTableOfTensorsV2 MutableHashTableV2"
    ),
    "opdock_cpu.kernels.loss:table": "InTopK InTopKV2 L2Loss",
    "opdock_cpu.kernels.lrn:table": "LRN LRNGrad",
    "opdock_cpu.kernels.matrix:table": "ConjugateTranspose MatrixBandPart Transpose",
    "opdock_cpu.kernels.matrix_functions:table": "MatrixLogarithm MatrixSquareRoot",
    "opdock_cpu.kernels.morphology:table": (
        "Dilation2D Dilation2DBackpropFilter Dilation2DBackpropInput"
    ),
    "opdock_cpu.kernels.mutex:table": "ConsumeMutexLock MutexLock MutexV2",
    "opdock_cpu.kernels.ngrams:table": "StringNGrams",
    "opdock_cpu.kernels.nn:table": "LeakyRelu ReluGrad",
    "opdock_cpu.kernels.norm:table": (
        "FusedBatchNorm FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3 "
        "FusedBatchNormV2 FusedBatchNormV3"
    ),
    "opdock_cpu.kernels.padding:table": "MirrorPadGrad Pad PadV2",
    "opdock_cpu.kernels.parsing:table": (
        "DecodeCSV DecodeJSONExample ParseExample ParseSequenceExample ParseSingleExample "
        "ParseSingleSequenceExample"
    ),
    "opdock_cpu.kernels.partition:table": "DynamicPartition DynamicStitch ParallelDynamicStitch",
    "opdock_cpu.kernels.pool:table": (
        "AvgPool AvgPool3D AvgPool3DGrad AvgPoolGrad MaxPool MaxPool3D MaxPool3DGrad MaxPoolGrad "
        "MaxPoolGradGrad MaxPoolGradGradV2 MaxPoolGradV2 MaxPoolV2 MaxPoolWithArgmax"
    ),
    "opdock_cpu.kernels.quantize:table": (
        "Dequantize QuantizeDownAndShrinkRange QuantizeV2 RequantizationRange Requantize"
    ),
    "opdock_cpu.kernels.quantized:table": (
        "QuantizedAdd QuantizedBiasAdd QuantizedConcat QuantizedMatMul QuantizedMul"
    ),
    "opdock_cpu.kernels.quantized_fused:table": (
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
    "opdock_cpu.kernels.quantized_nn:table": (
        "QuantizedAvgPool QuantizedBatchNormWithGlobalNormalization QuantizedConv2D "
        "QuantizedInstanceNorm QuantizedMaxPool QuantizedRelu QuantizedRelu6 QuantizedReluX"
    ),
    "opdock_cpu.kernels.queues:table": (
        "FIFOQueue FIFOQueueV2 FakeQueue PaddingFIFOQueue PaddingFIFOQueueV2 PriorityQueue "
        "PriorityQueueV2 QueueClose QueueCloseV2 QueueDequeue QueueDequeueMany QueueDequeueManyV2 "
        "QueueDequeueUpTo QueueDequeueUpToV2 QueueDequeueV2 QueueEnqueue QueueEnqueueMany "
        "QueueEnqueueManyV2 QueueEnqueueV2 QueueIsClosed QueueIsClosedV2 QueueSize QueueSizeV2 "
        "RandomShuffleQueue RandomShuffleQueueV2"
    ),
    "opdock_cpu.kernels.ragged:table": (
        "RaggedRange RaggedTensorFromVariant RaggedTensorToSparse RaggedTensorToVariant"
    ),
    "opdock_cpu.kernels.ragged_padding:table": "RaggedTensorToTensor",
    "opdock_cpu.kernels.random:table": (
        "RandomShuffle RandomStandardNormal RandomUniform RandomUniformInt "
        "StatefulStandardNormalV2 StatefulTruncatedNormal StatefulUniform StatefulUniformFullInt "
        "StatelessRandomNormal StatelessRandomUniform StatelessRandomUniformInt "
        "StatelessTruncatedNormal TruncatedNormal"
    ),
    "opdock_cpu.kernels.random_dist:table": (
        "Multinomial ParameterizedTruncatedNormal RandomGamma RandomGammaGrad RandomPoissonV2 "
        "StatelessMultinomial"
    ),
    "opdock_cpu.kernels.readers:table": (
        "FixedLengthRecordReader FixedLengthRecordReaderV2 IdentityReader IdentityReaderV2 "
        "LMDBReader ReaderNumRecordsProduced ReaderNumRecordsProducedV2 "
        "ReaderNumWorkUnitsCompleted ReaderNumWorkUnitsCompletedV2 ReaderRead ReaderReadUpTo "
        "ReaderReadUpToV2 ReaderReadV2 ReaderReset ReaderResetV2 ReaderRestoreState "
        "ReaderRestoreStateV2 ReaderSerializeState ReaderSerializeStateV2 TFRecordReader "
        "TFRecordReaderV2 TextLineReader TextLineReaderV2 WholeFileReader WholeFileReaderV2"
    ),
    "opdock_cpu.kernels.record_input:table": "RecordInput",
    "opdock_cpu.kernels.reduce:table": "All Any EuclideanNorm Max Mean Min Prod Sum",
    "opdock_cpu.kernels.regex:table": (
        "RegexFullMatch RegexReplace StaticRegexFullMatch StaticRegexReplace"
    ),
    "opdock_cpu.kernels.remapping:table": "GenerateVocabRemapping LoadAndRemapMatrix",
    "opdock_cpu.kernels.scan:table": "Cumprod Cumsum CumulativeLogsumexp",
    "opdock_cpu.kernels.scatter:table": (
        "ScatterNd ScatterNdNonAliasingAdd TensorScatterAdd TensorScatterMax TensorScatterMin "
        "TensorScatterSub TensorScatterUpdate"
    ),
    "opdock_cpu.kernels.sdca:table": "SdcaFprint SdcaOptimizer SdcaOptimizerV2 SdcaShrinkL1",
    "opdock_cpu.kernels.segment:table": (
        "SegmentMax SegmentMean SegmentMin SegmentProd SegmentSum SparseSegmentMean "
        "SparseSegmentMeanGrad SparseSegmentMeanWithNumSegments SparseSegmentSqrtN "
        "SparseSegmentSqrtNGrad SparseSegmentSqrtNWithNumSegments SparseSegmentSum "
        "SparseSegmentSumWithNumSegments UnsortedSegmentMax UnsortedSegmentMin "
        "UnsortedSegmentProd UnsortedSegmentSum"
    ),
    "opdock_cpu.kernels.select:table": "OneHot Where",
    "opdock_cpu.kernels.set_operations:table": (
        "DenseToDenseSetOperation DenseToSparseSetOperation SetSize SparseToSparseSetOperation"
    ),
    "opdock_cpu.kernels.sets:table": "ListDiff Unique UniqueV2 UniqueWithCounts UniqueWithCountsV2",
    "opdock_cpu.kernels.slicing:table": "ResourceStridedSliceAssign StridedSliceAssign",
    "opdock_cpu.kernels.solve:table": (
        "MatrixDeterminant MatrixInverse MatrixSolve MatrixSolveLs MatrixTriangularSolve"
    ),
    "opdock_cpu.kernels.sorting:table": "LowerBound NthElement TopK TopKV2 UpperBound",
    "opdock_cpu.kernels.sparse_cross:table": "SparseCross SparseFeatureCross SparseFeatureCrossV2",
    "opdock_cpu.kernels.sparse_layout:table": (
        "SparseFillEmptyRows SparseFillEmptyRowsGrad SparseSplit SparseToDense"
    ),
    "opdock_cpu.kernels.sparse_math:table": (
        "SparseAdd SparseAddGrad SparseDenseCwiseAdd SparseDenseCwiseDiv SparseDenseCwiseMul "
        "SparseSparseMaximum SparseSparseMinimum SparseTensorDenseAdd SparseTensorDenseMatMul"
    ),
    "opdock_cpu.kernels.sparse_serial:table": (
        "AddManySparseToTensorsMap AddSparseToTensorsMap DeserializeManySparse DeserializeSparse "
        "SerializeManySparse SerializeSparse TakeManySparseFromTensorsMap"
    ),
    "opdock_cpu.kernels.special:table": (
        "BesselI0e BesselI1e Betainc Digamma Erf Erfc Erfinv Igamma IgammaGradA Igammac Lgamma "
        "Ndtri Polygamma Zeta"
    ),
    "opdock_cpu.kernels.state:table": (
        "AssignAdd AssignAddVariableOp AssignSub AssignSubVariableOp CountUpTo ResourceGather "
        "ResourceScatterAdd ResourceScatterDiv ResourceScatterMax ResourceScatterMin "
        "ResourceScatterMul ResourceScatterNdAdd ResourceScatterNdSub ResourceScatterNdUpdate "
        "ResourceScatterSub ResourceScatterUpdate ScatterAdd ScatterDiv ScatterMax ScatterMin "
        "ScatterMul ScatterNdAdd ScatterNdSub ScatterNdUpdate ScatterSub ScatterUpdate"
    ),
    "opdock_cpu.kernels.strings:table": (
        "ReduceJoin StringJoin StringLength StringLower StringSplit StringSplitV2 StringStrip "
        "StringUpper Substr UnsortedSegmentJoin"
    ),
    "opdock_cpu.kernels.summary:table": (
        "AudioSummary AudioSummaryV2 HistogramSummary ImageSummary MergeSummary ScalarSummary "
        "TensorSummary TensorSummaryV2"
    ),
    "opdock_cpu.kernels.summary_writer:table": (
        "CloseSummaryWriter CreateSummaryFileWriter FlushSummaryWriter ImportEvent SummaryWriter "
        "WriteAudioSummary WriteGraphSummary WriteHistogramSummary WriteImageSummary "
        "WriteRawProtoSummary WriteScalarSummary WriteSummary"
    ),
    "opdock_cpu.kernels.sums:table": "AccumulateNV2 AddN",
    "opdock_cpu.kernels.tensor_forest:table": (
        "CreateFertileStatsVariable CreateTreeVariable DecisionTreeResourceHandleOp "
        "FeatureUsageCounts FertileStatsDeserialize FertileStatsIsInitializedOp "
        "FertileStatsResourceHandleOp FertileStatsSerialize GrowTreeV4 ProcessInputV4 "
        "TraverseTreeV4 TreeDeserialize TreeIsInitializedOp TreePredictionsV4 TreeSerialize "
        "TreeSize UpdateModelV4"
    ),
    "opdock_cpu.kernels.tiling:table": "ReverseSequence ReverseV2 Tile",
    "opdock_cpu.kernels.timestamp:table": "Timestamp",
    "opdock_cpu.kernels.training:table": (
        "ResourceSparseApplyAdadelta ResourceSparseApplyAdagrad ResourceSparseApplyAdagradDA "
        "ResourceSparseApplyAdagradV2 ResourceSparseApplyCenteredRMSProp ResourceSparseApplyFtrl "
        "ResourceSparseApplyFtrlV2 ResourceSparseApplyKerasMomentum ResourceSparseApplyMomentum "
        "ResourceSparseApplyProximalAdagrad ResourceSparseApplyProximalGradientDescent "
        "ResourceSparseApplyRMSProp SparseApplyAdadelta SparseApplyAdagrad SparseApplyAdagradDA "
        "SparseApplyAdagradV2 SparseApplyCenteredRMSProp SparseApplyFtrl SparseApplyFtrlV2 "
        "SparseApplyMomentum SparseApplyProximalAdagrad SparseApplyProximalGradientDescent "
        "SparseApplyRMSProp"
    ),
    "opdock_cpu.kernels.tridiagonal:table": "TridiagonalMatMul TridiagonalSolve",
    "opdock_cpu.kernels.unicode:table": (
        "UnicodeDecode UnicodeDecodeWithOffsets UnicodeEncode UnicodeTranscode"
    ),
    "opdock_cpu.kernels.widened:table": (
        "AccumulateNV2 AddN AdjustHue AdjustSaturation ArgMax ArgMin AvgPool AvgPool3D "
        "AvgPool3DGrad AvgPoolGrad BatchMatMul BatchMatMulV2 BiasAdd BiasAddGrad BiasAddV1 "
        "BlockLSTM BlockLSTMGrad BlockLSTMGradV2 BlockLSTMV2 Conv2D Conv2DBackpropFilter "
        "Conv2DBackpropInput Conv3D Conv3DBackpropFilterV2 Conv3DBackpropInputV2 "
        "CropAndResizeGradBoxes CropAndResizeGradImage Cross DepthwiseConv2dNative "
        "DepthwiseConv2dNativeBackpropFilter DepthwiseConv2dNativeBackpropInput Dilation2D "
        "Dilation2DBackpropFilter Dilation2DBackpropInput HSVToRGB L2Loss LRN LRNGrad "
        "LSTMBlockCell LSTMBlockCellGrad LogSoftmax MatMul MaxPool MaxPool3D MaxPool3DGrad "
        "MaxPoolGrad MaxPoolGradGrad MaxPoolGradGradV2 MaxPoolGradV2 MaxPoolWithArgmax NthElement "
        "RGBToHSV Softmax SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits TopK "
        "TopKV2"
    ),
    "opdock_cpu.kernels.xent:table": (
        "LogSoftmax Softmax SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits"
    ),
    "opdock_cpu.onednn.kernels.bias:table": "BiasAddGrad",
    "opdock_cpu.onednn.kernels.conv:table": (
        "Conv2D Conv2DBackpropFilter Conv2DBackpropInput Conv3D Conv3DBackpropFilterV2 "
        "Conv3DBackpropInputV2 DepthwiseConv2dNative DepthwiseConv2dNativeBackpropFilter "
        "DepthwiseConv2dNativeBackpropInput"
    ),
    "opdock_cpu.onednn.kernels.fused:table": (
        "opdock_cpu>Conv2DBias opdock_cpu>Conv2DBiasAdd opdock_cpu>Conv2DBiasAddElu "
        "opdock_cpu>Conv2DBiasAddRelu opdock_cpu>Conv2DBiasAddRelu6 "
        "opdock_cpu>Conv2DBiasAddSigmoid opdock_cpu>Conv2DBiasAddTanh opdock_cpu>Conv2DBiasElu "
        "opdock_cpu>Conv2DBiasRelu opdock_cpu>Conv2DBiasRelu6 opdock_cpu>Conv2DBiasSigmoid "
        "opdock_cpu>Conv2DBiasTanh opdock_cpu>Conv2DFilterAndBiasGrad opdock_cpu>Conv2DNorm "
        "opdock_cpu>Conv2DNormAdd opdock_cpu>Conv2DNormAddElu opdock_cpu>Conv2DNormAddRelu "
        "opdock_cpu>Conv2DNormAddRelu6 opdock_cpu>Conv2DNormAddSigmoid "
        "opdock_cpu>Conv2DNormAddTanh opdock_cpu>Conv2DNormElu opdock_cpu>Conv2DNormRelu "
        "opdock_cpu>Conv2DNormRelu6 opdock_cpu>Conv2DNormSigmoid opdock_cpu>Conv2DNormTanh "
        "opdock_cpu>DepthwiseConv2dNativeBias opdock_cpu>DepthwiseConv2dNativeBiasRelu "
        "opdock_cpu>DepthwiseConv2dNativeBiasRelu6 opdock_cpu>DepthwiseConv2dNativeNorm "
        "opdock_cpu>DepthwiseConv2dNativeNormRelu opdock_cpu>DepthwiseConv2dNativeNormRelu6 "
        "opdock_cpu>MatMulAdd opdock_cpu>MatMulBias opdock_cpu>MatMulBiasElu "
        "opdock_cpu>MatMulBiasRelu opdock_cpu>MatMulBiasRelu6 opdock_cpu>MatMulBiasSigmoid "
        "opdock_cpu>MatMulBiasTanh"
    ),
    "opdock_cpu.onednn.kernels.linalg:table": "BatchMatMul BatchMatMulV2 MatMul",
    "opdock_cpu.onednn.kernels.lrn:table": "LRN LRNGrad",
    "opdock_cpu.onednn.kernels.narrowed:table": (
        "opdock_cpu>QuantizedAddMeasured opdock_cpu>QuantizedAddMeasuredRelu "
        "opdock_cpu>QuantizedAddMeasuredRelu6 opdock_cpu>QuantizedAddNarrowed "
        "opdock_cpu>QuantizedAddNarrowedRelu opdock_cpu>QuantizedAddNarrowedRelu6 "
        "opdock_cpu>QuantizedBiasAddMeasured opdock_cpu>QuantizedBiasAddMeasuredRelu "
        "opdock_cpu>QuantizedBiasAddMeasuredRelu6 opdock_cpu>QuantizedBiasAddNarrowed "
        "opdock_cpu>QuantizedBiasAddNarrowedRelu opdock_cpu>QuantizedBiasAddNarrowedRelu6 "
        "opdock_cpu>QuantizedConv2DMeasured opdock_cpu>QuantizedConv2DMeasuredRelu "
        "opdock_cpu>QuantizedConv2DMeasuredRelu6 opdock_cpu>QuantizedConv2DNarrowed "
        "opdock_cpu>QuantizedConv2DNarrowedBiased opdock_cpu>QuantizedConv2DNarrowedBiasedRelu "
        "opdock_cpu>QuantizedConv2DNarrowedBiasedRelu6 opdock_cpu>QuantizedConv2DNarrowedRelu "
        "opdock_cpu>QuantizedConv2DNarrowedRelu6 opdock_cpu>QuantizedMatMulMeasured "
        "opdock_cpu>QuantizedMatMulMeasuredRelu opdock_cpu>QuantizedMatMulMeasuredRelu6 "
        "opdock_cpu>QuantizedMatMulNarrowed opdock_cpu>QuantizedMatMulNarrowedBiased "
        "opdock_cpu>QuantizedMatMulNarrowedBiasedRelu "
        "opdock_cpu>QuantizedMatMulNarrowedBiasedRelu6 opdock_cpu>QuantizedMatMulNarrowedRelu "
        "opdock_cpu>QuantizedMatMulNarrowedRelu6"
    ),
    "opdock_cpu.onednn.kernels.norm:table": (
        "FusedBatchNorm FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3 "
        "FusedBatchNormV2 FusedBatchNormV3"
    ),
    "opdock_cpu.onednn.kernels.pool:table": (
        "AvgPool AvgPool3D AvgPool3DGrad AvgPoolGrad MaxPool MaxPool3D MaxPoolGrad"
    ),
    "opdock_cpu.onednn.kernels.quantized:table": "QuantizedConv2D QuantizedMatMul",
    "opdock_cpu.onednn.kernels.quantized_fused:table": (
        "QuantizedConv2DAndReluAndRequantize QuantizedConv2DAndRequantize "
        "QuantizedConv2DWithBiasAndReluAndRequantize QuantizedConv2DWithBiasAndRequantize "
        "QuantizedConv2DWithBiasSignedSumAndReluAndRequantize "
        "QuantizedConv2DWithBiasSumAndReluAndRequantize"
    ),
    "opdock_cpu.onednn.kernels.xent:table": "LogSoftmax Softmax",
    "opdock_cpu.jit.angles:table": "Cos Sin Tan",
    "opdock_cpu.jit.cluster:table": "opdock>Cluster opdock>ClusterOpen",
    "opdock_cpu.jit.elementary:table": (
        "Abs Acos Acosh Add AddV2 Asin Asinh Atan Atan2 Atanh BesselI0e BesselI1e Ceil "
        "ClipByValue Cosh Div DivNoNan Elu EluGrad Equal Erf Erfc Erfinv Exp Expm1 Floor FloorDiv "
        "Greater GreaterEqual Inv InvGrad IsFinite IsInf IsNan LeakyRelu LeakyReluGrad Less "
        "LessEqual Log Log1p Maximum Minimum Mul MulNoNan Ndtri Neg NotEqual Pow RealDiv "
        "Reciprocal ReciprocalGrad Relu Relu6 Relu6Grad ReluGrad Rint Round Rsqrt RsqrtGrad "
        "SelectV2 Selu SeluGrad Sigmoid SigmoidGrad Sign Sinh Softplus SoftplusGrad Softsign "
        "SoftsignGrad Sqrt SqrtGrad Square SquaredDifference Sub Tanh TanhGrad TruncateDiv Xdivy "
        "Xlogy"
    ),
    "opdock_cpu.jit.entropy:table": (
        "SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits "
        "opdock_cpu>SoftmaxCrossEntropyWithLogitsScaled "
        "opdock_cpu>SparseSoftmaxCrossEntropyWithLogitsScaled"
    ),
    "opdock_cpu.jit.quotients:table": "Div DivNoNan Inv RealDiv Reciprocal",
    "opdock_cpu.jit.reduce:table": "BiasAddGrad EuclideanNorm L2Loss Max Mean Min Prod Sum",
    "opdock_cpu.jit.remainders:table": "FloorMod Mod TruncateMod",
    "opdock_cpu.jit.training:table": (
        "ApplyAdaMax ApplyAdadelta ApplyAdagrad ApplyAdagradDA ApplyAdagradV2 ApplyAdam "
        "ApplyAddSign ApplyCenteredRMSProp ApplyFtrl ApplyFtrlV2 ApplyGradientDescent "
        "ApplyMomentum ApplyPowerSign ApplyProximalAdagrad ApplyProximalGradientDescent "
        "ApplyRMSProp ResourceApplyAdaMax ResourceApplyAdadelta ResourceApplyAdagrad "
        "ResourceApplyAdagradDA ResourceApplyAdagradV2 ResourceApplyAdam "
        "ResourceApplyAdamWithAmsgrad ResourceApplyAddSign ResourceApplyCenteredRMSProp "
        "ResourceApplyFtrl ResourceApplyFtrlV2 ResourceApplyGradientDescent "
        "ResourceApplyKerasMomentum ResourceApplyMomentum ResourceApplyPowerSign "
        "ResourceApplyProximalAdagrad ResourceApplyProximalGradientDescent ResourceApplyRMSProp"
    ),
    "opdock_cpu.jit.turns:table": "opdock>Turns",
    "opdock_cpu.jit.updates:table": "opdock>Updates",
}
"""A table, in the order in which they are asked -> the op types of its kernels."""
