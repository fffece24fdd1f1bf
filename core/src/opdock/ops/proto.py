"""Protocol buffers as tensors: fields out of serialized messages, and messages of fields."""

from __future__ import annotations

from typing import Any, NamedTuple

from opdock import shapes
from opdock.graph.nodes.dispatch import extensible
from opdock.graph.nodes.operation import Tensor
from opdock.ops.registry import ShapeSig, Traits, define_op
from opdock.shapes import Shape

__all__: list[str] = []  # TF has these names in tf.io only.

decode_proto_op = define_op(
    "DecodeProtoV2", "bytes: string -> sizes: int32, values: output_types",
    "message_type: string, field_names: list(string), output_types: list(type) >= 0, "
    'descriptor_source: string = "local://", message_format: string = "binary", '
    "sanitize: bool = false",
).not_differentiable()  # fmt: skip
encode_proto_op = define_op(
    "EncodeProto", "sizes: int32, values: Tinput_types -> bytes: string",
    "field_names: list(string), message_type: string, "
    'descriptor_source: string = "local://", Tinput_types: list(type) >= 1',
).not_differentiable()  # fmt: skip
for _op in (decode_proto_op, encode_proto_op):
    _op.declare(Traits(on_host=True))


@decode_proto_op.shape
def _decode_shape(sig: ShapeSig) -> list[Shape]:
    batch, count = sig.shapes[0], len(sig.attrs["output_types"])
    return [shapes.concat(batch, (count,)), *[shapes.concat(batch, (None,))] * count]


@encode_proto_op.shape
def _encode_shape(sig: ShapeSig) -> Shape:
    batch: Shape = None
    for given in sig.shapes[1:]:
        shapes.with_rank_at_least(given, 2)
        batch = shapes.merge(batch, None if given is None else given[:-1])
    return batch


class DecodedProto(NamedTuple):
    """What `tf.io.decode_proto` gives: how many values each field has, and the values."""

    sizes: Tensor
    values: list[Tensor]


@extensible
def decode_proto(
    bytes: Any, message_type: str, field_names: Any, output_types: Any,
    descriptor_source: Any = "local://", message_format: str = "binary", sanitize: bool = False,
    name: str | None = None,
) -> DecodedProto:  # fmt: skip
    """Takes fields out of serialized messages.

    Args:
        bytes: a tensor of serialized messages of one type.
        message_type: its full name.
        field_names: the fields; of extensions the full names.
        output_types: a type for each field, that of the field or a wider one; string for
            messages, which stay serialized.
        descriptor_source: where the type is described: "local://" for the types of this process,
            "bytes://" followed by a serialized FileDescriptorSet, or the name of a file of one.
        message_format: "binary" or "text".
        sanitize: accepted for TF's signature; messages are always checked.
        name: a name for the operation.

    Returns:
        (sizes, values): an int32 tensor of shape ``[..., fields]`` that says how often each field
        occurs, and for each field a tensor with one dimension more than `bytes`: as many values as
        the message with the most, filled up with the field's default.

    Raises:
        InvalidArgumentError: when it runs: there is no such type or field, or it has another type.
        DataLossError: when it runs: an element is no such message.
    """
    sizes, values = decode_proto_op(
        bytes, message_type=message_type, field_names=field_names, output_types=output_types,
        descriptor_source=descriptor_source, message_format=message_format, sanitize=sanitize,
        name=name,
    )  # fmt: skip
    return DecodedProto(sizes, list(values))


@extensible
def encode_proto(
    sizes: Any, values: Any, field_names: Any, message_type: str,
    descriptor_source: Any = "local://", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Makes serialized messages of fields.

    Args:
        sizes: int32 tensor ``[..., fields]``: how many of the values of each field count.
        values: for each field a tensor ``[..., values]`` of the type that `tf.io.decode_proto`
            would give.
        field_names: the fields.
        message_type: the messages' full name.
        descriptor_source: see `tf.io.decode_proto`.
        name: a name for the operation.

    Returns:
        A string tensor of the leading dimensions of `sizes`.

    Raises:
        InvalidArgumentError: when it runs: there is no such type or field, or it has another type
            or fewer values than `sizes` says.
    """
    out: Tensor = encode_proto_op(
        sizes, values, field_names=field_names, message_type=message_type,
        descriptor_source=descriptor_source, name=name,
    )  # fmt: skip
    return out
