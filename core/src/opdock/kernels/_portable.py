"""Which modules have portable kernels of an op. Written by tools/make_families.py; do not edit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PORTABLE: Final[Mapping[str, str]] = {
    "argmax": "ArgMax ArgMin",
    "array": "BroadcastArgs BroadcastTo EnsureShape ExpandDims Reshape Squeeze UnravelIndex",
    "audio": "AudioSpectrogram Mfcc",
    "batching": "Batch BatchFunction Unbatch UnbatchGrad",
    "beam_search": "GatherTree",
    "bias": "BiasAdd BiasAddGrad BiasAddV1",
    "block_rnn": (
        "BlockLSTM BlockLSTMGrad BlockLSTMGradV2 BlockLSTMV2 GRUBlockCell GRUBlockCellGrad "
        "LSTMBlockCell LSTMBlockCellGrad"
    ),
    "boosted_trees_quantiles": "BoostedTreesBucketize",
    "boosted_trees_stats": "BoostedTreesAggregateStats BoostedTreesMakeStatsSummary",
    "bucketize": "Bucketize CompareAndBitpack",
    "candidate_sampling": "ComputeAccidentalHits",
    "cast": "Bitcast",
    "check": "Assert",
    "clustering": "NearestNeighbors",
    "collective": "CollectiveBcastRecv CollectiveBcastSend CollectiveGather CollectiveReduce",
    "compare": "ApproximateEqual Select",
    "conv": (
        "Conv2D Conv2DBackpropFilter Conv2DBackpropInput Conv3D Conv3DBackpropFilterV2 "
        "Conv3DBackpropInputV2"
    ),
    "ctc": "CTCGreedyDecoder",
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
    "elementwise": (
        "Abs Acos Acosh Add AddV2 Angle Asin Asinh Atan Atan2 Atanh BesselI0e BesselI1e Betainc "
        "BitwiseAnd BitwiseOr BitwiseXor Cast Ceil ClipByValue Complex ComplexAbs Conj Cos Cosh "
        "Digamma Div DivNoNan Elu EluGrad Equal Erf Erfc Erfinv Exp Expm1 Floor FloorDiv FloorMod "
        "Greater GreaterEqual Igamma IgammaGradA Igammac Imag Inv InvGrad Invert IsFinite IsInf "
        "IsNan LeakyRelu LeakyReluGrad LeftShift Less LessEqual Lgamma Log Log1p LogicalAnd "
        "LogicalNot LogicalOr Maximum Minimum Mod Mul MulNoNan Ndtri Neg NextAfter NotEqual "
        "Polygamma PopulationCount Pow Real RealDiv Reciprocal ReciprocalGrad Relu Relu6 "
        "Relu6Grad ReluGrad RightShift Rint Round Rsqrt RsqrtGrad SelectV2 Selu SeluGrad Sigmoid "
        "SigmoidGrad Sign Sin Sinh Softplus SoftplusGrad Softsign SoftsignGrad Sqrt SqrtGrad "
        "Square SquaredDifference Sub Tan Tanh TanhGrad TruncateDiv TruncateMod Xdivy Xlogy Zeta"
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
    "gather": "Gather GatherNd GatherV2",
    "histogram": "HistogramFixedWidth",
    "identity": (
        "CheckNumerics GuaranteeConst Identity PlaceholderWithDefault PreventGradient RefIdentity "
        "Snapshot StopGradient"
    ),
    "image_boxes": (
        "CombinedNonMaxSuppression DrawBoundingBoxes DrawBoundingBoxesV2 NonMaxSuppression "
        "NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4 NonMaxSuppressionV5 "
        "NonMaxSuppressionWithOverlaps"
    ),
    "image_color": "AdjustContrastv2 AdjustHsvInYiq AdjustHue AdjustSaturation HSVToRGB RGBToHSV",
    "image_crop": "CropAndResize CropAndResizeGradBoxes CropAndResizeGradImage ExtractGlimpse",
    "image_resize": (
        "ResizeArea ResizeBicubic ResizeBicubicGrad ResizeBilinear ResizeBilinearGrad "
        "ResizeNearestNeighbor ResizeNearestNeighborGrad ScaleAndTranslate ScaleAndTranslateGrad"
    ),
    "image_warp": "ImageProjectiveTransform ImageProjectiveTransformV2 Resampler ResamplerGrad",
    "inplace": "DeepCopy Empty InplaceAdd InplaceSub InplaceUpdate",
    "joining": "Concat ConcatOffset ConcatV2 Pack ParallelConcat",
    "linalg": "BatchMatMul BatchMatMulV2 MatMul SparseMatMul",
    "loss": "InTopK InTopKV2 L2Loss",
    "lrn": "LRN LRNGrad",
    "matrix": "ConjugateTranspose MatrixBandPart Transpose",
    "matrix_functions": "MatrixExponential",
    "morphology": "Dilation2D Dilation2DBackpropFilter Dilation2DBackpropInput",
    "norm": (
        "FusedBatchNorm FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3 "
        "FusedBatchNormV2 FusedBatchNormV3"
    ),
    "padding": "MirrorPad MirrorPadGrad Pad PadV2",
    "partition": "DynamicPartition DynamicStitch ParallelDynamicStitch",
    "patches": "ExtractImagePatches ExtractVolumePatches",
    "pool": (
        "AvgPool AvgPool3D AvgPool3DGrad AvgPoolGrad MaxPool MaxPool3D MaxPool3DGrad "
        "MaxPool3DGradGrad MaxPoolGrad MaxPoolGradGrad MaxPoolGradGradV2 "
        "MaxPoolGradGradWithArgmax MaxPoolGradV2 MaxPoolGradWithArgmax MaxPoolV2 "
        "MaxPoolWithArgmax"
    ),
    "printing": "Print PrintV2 StringFormat",
    "proto": "DecodeProtoV2 EncodeProto",
    "quantized": "QuantizedReshape",
    "ragged": "RaggedGather RaggedRange RaggedTensorToSparse",
    "ragged_padding": "RaggedTensorToTensor",
    "random": (
        "RandomShuffle RandomStandardNormal RandomUniform RandomUniformInt StatelessRandomNormal "
        "StatelessRandomUniform StatelessRandomUniformInt StatelessTruncatedNormal "
        "TruncatedNormal"
    ),
    "random_dist": "Multinomial RandomGammaGrad StatelessMultinomial",
    "random_stateful": (
        "NonDeterministicInts RngSkip StatefulRandomBinomial StatefulStandardNormalV2 "
        "StatefulTruncatedNormal StatefulUniform StatefulUniformFullInt StatefulUniformInt"
    ),
    "reduce": "All Any EuclideanNorm Max Mean Min Prod Sum",
    "scan": "Cumprod Cumsum CumulativeLogsumexp",
    "scatter": "TensorScatterUpdate",
    "script": "EagerPyFunc PyFunc PyFuncStateless",
    "sdca": "SdcaShrinkL1",
    "segment": "UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum",
    "select": "OneHot Where",
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
    "sparse_layout": (
        "SparseConcat SparseFillEmptyRows SparseFillEmptyRowsGrad SparseReorder SparseReshape "
        "SparseSlice SparseSliceGrad SparseSplit SparseToDense"
    ),
    "sparse_math": (
        "SparseAdd SparseAddGrad SparseDenseCwiseAdd SparseDenseCwiseDiv SparseDenseCwiseMul "
        "SparseSoftmax SparseSparseMaximum SparseSparseMinimum"
    ),
    "sparse_reduce": "SparseReduceMax SparseReduceMaxSparse SparseReduceSum SparseReduceSumSparse",
    "splitting": "Split SplitV Unpack",
    "stack": "Stack StackClose StackCloseV2 StackPop StackPopV2 StackPush StackPushV2 StackV2",
    "staging": (
        "MapClear MapIncompleteSize MapPeek MapSize MapStage MapUnstage MapUnstageNoKey "
        "OrderedMapClear OrderedMapIncompleteSize OrderedMapPeek OrderedMapSize OrderedMapStage "
        "OrderedMapUnstage OrderedMapUnstageNoKey Stage StageClear StagePeek StageSize Unstage"
    ),
    "state": (
        "AssignAdd AssignAddVariableOp AssignSub AssignSubVariableOp CountUpTo ResourceCountUpTo "
        "ResourceScatterAdd ResourceScatterDiv ResourceScatterMax ResourceScatterMin "
        "ResourceScatterMul ResourceScatterNdAdd ResourceScatterNdSub ResourceScatterNdUpdate "
        "ResourceScatterSub ResourceScatterUpdate ScatterAdd ScatterDiv ScatterMax ScatterMin "
        "ScatterMul ScatterNdAdd ScatterNdSub ScatterNdUpdate ScatterSub ScatterUpdate"
    ),
    "sums": "AccumulateNV2 AddN Cross",
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
    "training": (
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
    "tridiagonal": "TridiagonalSolve",
    "unbroadcast": "BroadcastGradientArgs",
    "unicode": "UnicodeScript",
    "variants": "AddN ZerosLike",
    "xent": "LogSoftmax Softmax SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits",
}
"""Module of `opdock.kernels.portable` -> the op types of its kernels."""
