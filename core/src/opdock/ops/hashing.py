"""Hashes of strings and of data, the same bits as TF's on every machine."""

from __future__ import annotations

from typing import Any

from opdock import shapes
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.ops.registry import Elementwise, ShapeSig, Traits, define_op
from opdock.ops.support import array_util, common_shapes
from opdock.shapes import Shape

__all__ = [
    "fingerprint", "string_to_hash_bucket", "string_to_hash_bucket_fast",
    "string_to_hash_bucket_strong",
]  # fmt: skip

string_to_hash_bucket_op = define_op(
    "StringToHashBucket", "string_tensor: string -> output: int64", "num_buckets: int >= 1"
)
string_to_hash_bucket_fast_op = define_op(
    "StringToHashBucketFast", "input: string -> output: int64", "num_buckets: int >= 1"
)
string_to_hash_bucket_strong_op = define_op(
    "StringToHashBucketStrong", "input: string -> output: int64",
    "num_buckets: int >= 1, key: list(int)",
)  # fmt: skip
for _op in (
    string_to_hash_bucket_op, string_to_hash_bucket_fast_op, string_to_hash_bucket_strong_op,
):  # fmt: skip
    _op.shape(common_shapes.unchanged)
    _op.declare(Traits(layout=Elementwise()))
    _op.not_differentiable()
fingerprint_op = define_op(
    "Fingerprint", "data: T, method: string -> fingerprint: uint8", "T: type"
).not_differentiable()

_METHODS = {"farmhash64": 8}


@fingerprint_op.shape
def _fingerprint_shape(sig: ShapeSig) -> Shape:
    data = shapes.with_rank_at_least(sig.shapes[0], 1)
    shapes.with_rank(sig.shapes[1], 0)
    method = sig.const(1)
    size = None
    if method is not None:
        item = method.reshape(-1)[0]
        text = item.decode(errors="replace") if isinstance(item, bytes) else str(item)
        if text not in _METHODS:
            raise ValueError(f"Unsupported method: {text}")
        size = _METHODS[text]
    return (None if data is None else data[0], size)


@extensible
def string_to_hash_bucket(
    string_tensor: Any = None, num_buckets: Any = None, name: str | None = None, input: Any = None
) -> Tensor:
    """The hash of each string modulo a number of buckets, by TF's first hash function.

    Args:
        string_tensor: a string tensor.
        num_buckets: how many buckets there are.
        name: a name for the operation.
        input: another name of `string_tensor`.

    Returns:
        An int64 tensor of the same shape.
    """
    strings = array_util.renamed("input", input, "string_tensor", string_tensor)
    return string_to_hash_bucket_op(strings, num_buckets=num_buckets, name=name)  # type: ignore[no-any-return]


@extensible
def string_to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Tensor:
    """The FarmHash fingerprint of each string modulo a number of buckets.

    Args:
        input: a string tensor.
        num_buckets: how many buckets there are.
        name: a name for the operation.

    Returns:
        An int64 tensor of the same shape.
    """
    return string_to_hash_bucket_fast_op(input, num_buckets=num_buckets, name=name)  # type: ignore[no-any-return]


@extensible
def string_to_hash_bucket_strong(
    input: Any, num_buckets: int, key: Any, name: str | None = None
) -> Tensor:
    """The SipHash-2-4 of each string under a key, modulo a number of buckets.

    Without the key nobody can make strings that all fall into one bucket.

    Args:
        input: a string tensor.
        num_buckets: how many buckets there are.
        key: two integers.
        name: a name for the operation.

    Returns:
        An int64 tensor of the same shape.

    Raises:
        tf.errors.InvalidArgumentError: at run time, unless there are two.
    """
    return string_to_hash_bucket_strong_op(  # type: ignore[no-any-return]
        input, num_buckets=num_buckets, key=key, name=name
    )


@extensible
def fingerprint(data: Any, method: Any = "farmhash64", name: str | None = None) -> Tensor:
    """A fingerprint of each row of a tensor.

    Args:
        data: a tensor of rank 1 or more.
        method: "farmhash64".
        name: a name for the operation.

    Returns:
        A uint8 tensor of shape [rows, 8]: the bytes of the fingerprints, low ones first.

    Raises:
        ValueError: the method is unknown.
    """
    return fingerprint_op(data, method, name=name)  # type: ignore[no-any-return]
