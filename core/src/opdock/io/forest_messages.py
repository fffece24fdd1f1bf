"""The messages of decision trees and of random forests, as contrib's files number their fields.

They are those of `generic_tree_model.proto` and its extensions, of `fertile_stats.proto` and of
`tensor_forest_params.proto`.
"""

from __future__ import annotations

from google.protobuf import any_pb2, wrappers_pb2

from opdock.io.proto_builder import build

_ENUMS = {
    "LeafModelType": "MODEL_DENSE_CLASSIFICATION=0 MODEL_SPARSE_CLASSIFICATION=1"
    " MODEL_REGRESSION=2 MODEL_SPARSE_OR_DENSE_CLASSIFICATION=3",
    "StatsModelType": "STATS_DENSE_GINI=0 STATS_SPARSE_GINI=1 STATS_LEAST_SQUARES_REGRESSION=2"
    " STATS_SPARSE_THEN_DENSE_GINI=3 STATS_FIXED_SIZE_SPARSE_GINI=4",
    "SplitCollectionType": "COLLECTION_BASIC=0 GRAPH_RUNNER_COLLECTION=1",
    "SplitPruningStrategyType": "SPLIT_PRUNE_NONE=0 SPLIT_PRUNE_HALF=1 SPLIT_PRUNE_QUARTER=2"
    " SPLIT_PRUNE_10_PERCENT=3 SPLIT_PRUNE_HOEFFDING=4",
    "SplitFinishStrategyType": "SPLIT_FINISH_BASIC=0 SPLIT_FINISH_DOMINATE_HOEFFDING=2"
    " SPLIT_FINISH_DOMINATE_BOOTSTRAP=3",
}
_TREES = {
    "Model": "decision_tree:DecisionTree=1[model] ensemble:Ensemble=2[model]"
    " custom_model:Any=3[model] additional_data:Any*=4",
    "Ensemble.Member": "submodel:Model=1 submodel_id:Int32Value=2 additional_data:Any*=3",
    "Ensemble": "members:Ensemble.Member*=100"
    " summation_combination_technique:Summation=1[combination_technique]"
    " averaging_combination_technique:Averaging=2[combination_technique]"
    " custom_combination_technique:Any=3[combination_technique] additional_data:Any*=4",
    "Summation": "additional_data:Any*=1",
    "Averaging": "additional_data:Any*=1",
    "DecisionTree": "nodes:TreeNode*=1 additional_data:Any*=2",
    "TreeNode": "node_id:Int32Value=1 depth:Int32Value=2 subtree_size:Int32Value=3"
    " binary_node:BinaryNode=4[node_type] leaf:Leaf=5[node_type]"
    " custom_node_type:Any=6[node_type] additional_data:Any*=7",
    "BinaryNode": "#Direction.LEFT=0 #Direction.RIGHT=1 left_child_id:Int32Value=1"
    " right_child_id:Int32Value=2 default_direction:BinaryNode.Direction=3"
    " inequality_left_child_test:InequalityTest=4[left_child_test]"
    " custom_left_child_test:Any=5[left_child_test]",
    "SparseVector": "sparse_value:{int64:Value}=1",
    "Vector": "value:Value*=1",
    "Leaf": "vector:Vector=1[leaf] sparse_vector:SparseVector=2[leaf] additional_data:Any*=3",
    "FeatureId": "id:StringValue=1 additional_data:Any*=2",
    "ObliqueFeatures": "features:FeatureId*=1 weights:float*=2",
    "InequalityTest": "#Type.LESS_OR_EQUAL=0 #Type.LESS_THAN=1 #Type.GREATER_OR_EQUAL=2"
    " #Type.GREATER_THAN=3 feature_id:FeatureId=1[FeatureSum] oblique:ObliqueFeatures=4[FeatureSum]"
    " type:InequalityTest.Type=2 threshold:Value=3",
    "Value": "float_value:float=1[value] double_value:double=2[value] int32_value:int32=3[value]"
    " int64_value:int64=4[value] custom_value:Any=5[value]",
    "MatchingValuesTest": "feature_id:FeatureId=1 value:Value*=2 inverse:bool=3",
    "ConstResultTest": "feature_id:FeatureId=1 value_for_dtype:Value=2 test_result:bool=3",
}
_FORESTS = {
    "FertileStats": "node_to_slot:FertileSlot*=1",
    "GiniStats": "square:float=2",
    "LeafStat.GiniImpurityClassificationStats": "dense_counts:Vector=1[counts]"
    " sparse_counts:SparseVector=2[counts] gini:GiniStats=3",
    "LeafStat.LeastSquaresRegressionStats": "mean_output:Vector=1 mean_output_squares:Vector=2",
    "LeafStat": "weight_sum:float=3"
    " classification:LeafStat.GiniImpurityClassificationStats=1[leaf_stat]"
    " regression:LeafStat.LeastSquaresRegressionStats=2[leaf_stat]",
    "FertileSlot": "leaf_stats:LeafStat=4 candidates:SplitCandidate*=1"
    " post_init_leaf_stats:LeafStat=6 node_id:int32=5 depth:int32=7",
    "SplitCandidate": "split:BinaryNode=1 left_stats:LeafStat=4 right_stats:LeafStat=5"
    " unique_id:string=6",
    "TreePath": "nodes_visited:TreeNode*=1",
    "SplitPruningConfig": "prune_every_samples:DepthDependentParam=1"
    " type:SplitPruningStrategyType=2",
    "SplitFinishConfig": "check_every_steps:DepthDependentParam=1 type:SplitFinishStrategyType=2",
    "LinearParam": "slope:float=1 y_intercept:float=2 min_val:float=3 max_val:float=4",
    "ExponentialParam": "bias:float=1 base:float=2 multiplier:float=3 depth_multiplier:float=4",
    "ThresholdParam": "on_value:float=1 off_value:float=2 threshold:float=3",
    "DepthDependentParam": "constant_value:float=1[ParamType] linear:LinearParam=2[ParamType]"
    " exponential:ExponentialParam=3[ParamType] threshold:ThresholdParam=4[ParamType]",
    "TensorForestParams": "leaf_type:LeafModelType=1 stats_type:StatsModelType=2"
    " collection_type:SplitCollectionType=3 pruning_type:SplitPruningConfig=4"
    " finish_type:SplitFinishConfig=5 num_trees:int32=6 max_nodes:int32=7 num_features:int32=21"
    " inequality_test_type:InequalityTest.Type=19 is_regression:bool=8 drop_final_class:bool=9"
    " collate_examples:bool=10 checkpoint_stats:bool=11 use_running_stats_method:bool=20"
    " initialize_average_splits:bool=22 inference_tree_paths:bool=23 num_outputs:int32=12"
    " num_splits_to_consider:DepthDependentParam=13 split_after_samples:DepthDependentParam=14"
    " dominate_fraction:DepthDependentParam=15 min_split_samples:DepthDependentParam=18"
    " graph_dir:string=16 num_select_features:int32=17 num_classes_to_track:int32=24",
}
_FOREIGN = {
    "Any": any_pb2.DESCRIPTOR,
    "Int32Value": wrappers_pb2.DESCRIPTOR,
    "StringValue": wrappers_pb2.DESCRIPTOR,
}

globals().update(
    build(
        "opdock/io/forest_messages.proto",
        "opdock.forests",
        {**_TREES, **_FORESTS},
        enums=_ENUMS,
        foreign=_FOREIGN,
    )
)
