"""TF's `core/lib/core/error_codes_pb2`: the status codes by name, and the enum that lists them."""

from __future__ import annotations

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

from opdock.errors import (
    ABORTED,
    ALREADY_EXISTS,
    CANCELLED,
    DATA_LOSS,
    DEADLINE_EXCEEDED,
    FAILED_PRECONDITION,
    INTERNAL,
    INVALID_ARGUMENT,
    NOT_FOUND,
    OK,
    OUT_OF_RANGE,
    PERMISSION_DENIED,
    RESOURCE_EXHAUSTED,
    UNAUTHENTICATED,
    UNAVAILABLE,
    UNIMPLEMENTED,
    UNKNOWN,
)  # fmt: skip

__all__ = [
    "ABORTED",
    "ALREADY_EXISTS",
    "CANCELLED",
    "DATA_LOSS",
    "DEADLINE_EXCEEDED",
    "DO_NOT_USE_RESERVED_FOR_FUTURE_EXPANSION_USE_DEFAULT_IN_SWITCH_INSTEAD_",
    "FAILED_PRECONDITION",
    "INTERNAL",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "OK",
    "OUT_OF_RANGE",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "UNAUTHENTICATED",
    "UNAVAILABLE",
    "UNIMPLEMENTED",
    "UNKNOWN",
    "Code",
]  # fmt: skip

DO_NOT_USE_RESERVED_FOR_FUTURE_EXPANSION_USE_DEFAULT_IN_SWITCH_INSTEAD_ = 20


def _enum() -> EnumTypeWrapper:
    file = descriptor_pb2.FileDescriptorProto(
        name="tensorflow/core/lib/core/error_codes.proto", package="tensorflow.error"
    )
    enum = file.enum_type.add(name="Code")
    for name in __all__:
        if name != "Code":
            enum.value.add(name=name, number=globals()[name])
    # The first value of an enum of proto2 is its default.
    enum.value.sort(key=lambda value: value.number)
    # A pool of its own: TensorFlow, where it is installed too, registers the same file.
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return EnumTypeWrapper(pool.FindEnumTypeByName("tensorflow.error.Code"))


Code = _enum()
