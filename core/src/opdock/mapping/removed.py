"""Names from before TensorFlow 1.0, which programs of its first year use.

What was only renamed works, and the new name is told once. What meant something else is not there,
and the error says what to write.
"""

from __future__ import annotations

from typing import Final

# Path -> (where it is in opdock, the name that TensorFlow 1 has for it).
_RENAMED: Final[dict[str, tuple[str, str]]] = {
    "sub": ("opdock:subtract", "tf.subtract"),
    "mul": ("opdock:multiply", "tf.multiply"),
    "neg": ("opdock:negative", "tf.negative"),
    "inv": ("opdock:reciprocal", "tf.reciprocal"),
    "pack": ("opdock:stack", "tf.stack"),
    "unpack": ("opdock:unstack", "tf.unstack"),
    "concat_v2": ("opdock:concat", "tf.concat"),
    "select": ("opdock.contrib.deprecated:select", "tf.where"),
    "batch_matmul": ("opdock.contrib.deprecated:batch_matmul", "tf.matmul"),
    "complex_abs": ("opdock:abs", "tf.abs"),
    "listdiff": ("opdock:setdiff1d", "tf.setdiff1d"),
    "list_diff": ("opdock:setdiff1d", "tf.setdiff1d"),
    "all_variables": ("opdock:global_variables", "tf.global_variables"),
    "initialize_all_variables": (
        "opdock:global_variables_initializer",
        "tf.global_variables_initializer",
    ),
    "initialize_variables": ("opdock:variables_initializer", "tf.variables_initializer"),
    "initialize_local_variables": (
        "opdock:local_variables_initializer",
        "tf.local_variables_initializer",
    ),
    "initialize_all_tables": ("opdock:tables_initializer", "tf.tables_initializer"),
    "scalar_summary": ("opdock.contrib.deprecated:scalar_summary", "tf.summary.scalar"),
    "histogram_summary": ("opdock.contrib.deprecated:histogram_summary", "tf.summary.histogram"),
    "image_summary": ("opdock.contrib.deprecated:image_summary", "tf.summary.image"),
    "audio_summary": ("opdock.contrib.deprecated:audio_summary", "tf.summary.audio"),
    "merge_summary": ("opdock.contrib.deprecated:merge_summary", "tf.summary.merge"),
    "merge_all_summaries": (
        "opdock.contrib.deprecated:merge_all_summaries",
        "tf.summary.merge_all",
    ),
    "train.SummaryWriter": ("opdock.summary:FileWriter", "tf.summary.FileWriter"),
    "nn.deconv2d": ("opdock.api.nn:conv2d_transpose", "tf.nn.conv2d_transpose"),
    "image.per_image_whitening": (
        "opdock.api.image:per_image_standardization",
        "tf.image.per_image_standardization",
    ),
    **{
        f"batch_{old}": (f"opdock:{new}", f"tf.{new}")
        for old, new in {
            "matrix_diag": "matrix_diag",
            "matrix_diag_part": "matrix_diag_part",
            "matrix_set_diag": "matrix_set_diag",
            "matrix_band_part": "matrix_band_part",
            "matrix_transpose": "matrix_transpose",
            "matrix_determinant": "matrix_determinant",
            "matrix_inverse": "matrix_inverse",
            "matrix_solve": "matrix_solve",
            "matrix_solve_ls": "matrix_solve_ls",
            "matrix_triangular_solve": "matrix_triangular_solve",
            "cholesky": "cholesky",
            "cholesky_solve": "cholesky_solve",
            "self_adjoint_eig": "self_adjoint_eig",
            "self_adjoint_eigvals": "self_adjoint_eigvals",
            "svd": "svd",
            "fft": "fft",
            "fft2d": "fft2d",
            "fft3d": "fft3d",
            "ifft": "ifft",
            "ifft2d": "ifft2d",
            "ifft3d": "ifft3d",
        }.items()
    },
}
NAMES: Final[dict[str, str]] = {path: place for path, (place, _) in _RENAMED.items()}

# Path -> what to write instead, where the old name meant something else or moved away.
_ADVICE: Final[dict[str, str]] = {
    "op_scope": "tf.name_scope, whose name comes first and whose values come last",
    "nn.seq2seq": "tf.contrib.legacy_seq2seq",
    "nn.rnn": "tf.nn.static_rnn, or tf.contrib.rnn.static_rnn before TensorFlow 1.2",
    "nn.bidirectional_rnn": "tf.nn.static_bidirectional_rnn",
    "nn.state_saving_rnn": "tf.nn.static_state_saving_rnn",
    "nn.inference_learning": "tf.nn.nce_loss or tf.nn.sampled_softmax_loss",
    "models": "the repository tensorflow/models, which is no part of TensorFlow 1",
    "moments": "tf.nn.moments",
    "relu": "tf.nn.relu",
    "softmax": "tf.nn.softmax",
    "conv2d": "tf.nn.conv2d",
    "random_gaussian": "tf.random_normal",
    "dynamic_rnn": "tf.nn.dynamic_rnn",
    "contrib.legacy_seq2seq": "tf.nn.static_rnn and tf.contrib.seq2seq",
    "function": "a plain function: TensorFlow 1 has tf.function for eager programs alone",
}


def advice(path: str) -> str:
    """What to write instead of a name from before 1.0; empty if it is none."""
    if path in _RENAMED:
        return f"it is older than TensorFlow 1.0, which calls it {_RENAMED[path][1]}"
    if path in _ADVICE:
        return f"TensorFlow 1 has {_ADVICE[path]} in its place"
    return ""


_told: set[str] = set()


def tell(path: str) -> None:
    """Says once, through `tf.logging`, that a name is from before 1.0 and what it is called now."""
    if path in _told or path not in _RENAMED:
        return
    _told.add(path)
    from opdock import logging

    logging.warning(
        "tf.%s is deprecated. Instructions for updating:\nUse `%s`.", path, _RENAMED[path][1]
    )


def renamed() -> dict[str, str]:
    """Path of each old name that works -> what TensorFlow 1 calls it."""
    return {path: now for path, (_, now) in _RENAMED.items()}
