"""Where the names of TensorFlow's modules of feature columns are in opdock, as data."""

from __future__ import annotations

from typing import Final

_ALL: Final = (
    "opdock.feature_column",
    "opdock.feature_column.base",
    "opdock.feature_column.dense",
    "opdock.feature_column.categorical",
    "opdock.feature_column.embedding",
    "opdock.feature_column.sequence",
    "opdock.feature_column.functional",
    "opdock.feature_column.layers",
)

FEATURE_COLUMN_SOURCES: Final[dict[str, tuple[str, ...]]] = {
    **{
        f"python.feature_column.{module}": _ALL
        for module in (
            "feature_column", "feature_column_lib", "feature_column_v2", "sequence_feature_column",
        )
    },
    "python.feature_column.serialization": ("opdock.feature_column.serialization",),
}  # fmt: skip

FEATURE_COLUMN_NAMES: Final[dict[str, dict[str, str]]] = {
    "python.feature_column.feature_column": {
        "_LazyBuilder": "opdock.feature_column.functional:LazyBuilder",
        "_internal_input_layer": "opdock.feature_column.functional:scoped_input_layer",
        "_LinearModel": "opdock.feature_column.functional:ScopedLinearModel",
        "_transform_features": "opdock.feature_column.functional:transform_features",
        **{
            f"_{name}": f"opdock.feature_column.{module}:{name}"
            for module, names in {
                "base": "FeatureColumn SequenceDenseColumn",
                "dense": "NumericColumn BucketizedColumn",
                "embedding": "EmbeddingColumn SharedEmbeddingColumn IndicatorColumn",
                "categorical": (
                    "HashedCategoricalColumn VocabularyFileCategoricalColumn CrossedColumn "
                    "VocabularyListCategoricalColumn IdentityCategoricalColumn "
                    "WeightedCategoricalColumn SequenceCategoricalColumn"
                ),
            }.items()
            for name in names.split()
        },
        "_DenseColumn": "opdock.feature_column.old:OldDenseColumn",
        "_CategoricalColumn": "opdock.feature_column.old:OldCategoricalColumn",
        **{
            f"_{name}": f"opdock:feature_column.{name}"
            for name in (
                "bucketized_column",
                "categorical_column_with_hash_bucket",
                "categorical_column_with_identity",
                "categorical_column_with_vocabulary_file",
                "categorical_column_with_vocabulary_list",
                "crossed_column",
                "embedding_column",
                "indicator_column",
                "numeric_column",
                "shared_embedding_columns",
                "weighted_categorical_column",
            )
        },
    },
    # As in TensorFlow, Keras' own: a Sequential model asks for one where its input is a dictionary.
    "python.feature_column.feature_column_lib": {
        "DenseFeatures": "opdock:keras.layers.DenseFeatures",
        "SequenceFeatures": "opdock:keras.experimental.SequenceFeatures",
    },
    "python.feature_column.feature_column_v2": {
        "make_parse_example_spec_v2": "opdock:feature_column.make_parse_example_spec",
        "shared_embedding_columns_v2": "opdock.feature_column.make:shared_embeddings",
        "_LinearModelLayer": "opdock.feature_column.layers:LinearModel",
        "_StateManagerImpl": "opdock.feature_column.old:LayerState",
        "_transform_features_v2": "opdock.feature_column.functional:transform_features",
        "_normalize_feature_columns": "opdock.feature_column.base:normalized",
        "is_feature_column_v2": "opdock.feature_column.base:is_feature_column_v2",
    },
}
