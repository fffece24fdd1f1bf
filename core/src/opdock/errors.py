"""TensorFlow's exception hierarchy: one class per canonical status code."""

from __future__ import annotations

import warnings
from typing import Any

OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16


class OperatorNotAllowedInGraphError(TypeError):
    """A tensor was used where Python wants its value: as a condition, or to go through it."""


class OpError(Exception):
    """An operation failed.

    Attributes:
        node_def: the NodeDef of the failing op, or None.
        op: the `Operation` that failed, or None when it is not part of the user's graph.
        message: what went wrong.
        error_code: the canonical status code (`tf.errors.INVALID_ARGUMENT`, ...).
    """

    def __init__(self, node_def: Any, op: Any, message: str, error_code: int = UNKNOWN) -> None:
        super().__init__(message)
        self._node_def = node_def
        self._op = op
        self._message = message
        self._error_code = error_code

    @property
    def message(self) -> str:
        """What went wrong, with the node and the user's line where they are known."""
        return self._message

    def _add(self, text: str) -> None:
        """Says more of what went wrong."""
        self._message += text
        self.args = (self._message,)

    @property
    def op(self) -> Any:
        """The `Operation` that failed, or None."""
        return self._op

    @property
    def node_def(self) -> Any:
        """The failing op's NodeDef, or None."""
        if self._node_def is None and self._op is not None:
            return self._op.node_def
        return self._node_def

    @property
    def error_code(self) -> int:
        """The canonical status code."""
        return self._error_code

    def __str__(self) -> str:
        return self._message

    def __reduce__(self) -> tuple[Any, ...]:
        # The op belongs to a live graph and cannot travel; the text can.
        if type(self) is OpError:
            return OpError, (None, None, self._message, self._error_code)
        return type(self), (None, None, self._message)


class _CodedError(OpError):
    _code = UNKNOWN

    def __init__(self, node_def: Any, op: Any, message: str, *code: Any) -> None:
        # Programs of TensorFlow 2's time give the code as well, as tf_keras does.
        super().__init__(node_def, op, message, self._code)


class CancelledError(_CodedError):
    """The operation or step was cancelled."""

    _code = CANCELLED


class UnknownError(_CodedError):
    """A failure of unknown kind, for instance an unexpected exception inside a kernel."""

    _code = UNKNOWN


class InvalidArgumentError(_CodedError):
    """An operation received an argument that no state could make valid."""

    _code = INVALID_ARGUMENT


class DeadlineExceededError(_CodedError):
    """The deadline passed before the operation finished."""

    _code = DEADLINE_EXCEEDED


class NotFoundError(_CodedError):
    """A requested entity, a file or a variable in a checkpoint for instance, is not there."""

    _code = NOT_FOUND


class AlreadyExistsError(_CodedError):
    """An entity that was to be created exists already."""

    _code = ALREADY_EXISTS


class PermissionDeniedError(_CodedError):
    """The caller lacks the permission for the operation."""

    _code = PERMISSION_DENIED


class UnauthenticatedError(_CodedError):
    """The request carries no valid credentials."""

    _code = UNAUTHENTICATED


class ResourceExhaustedError(_CodedError):
    """Some resource, most often device memory, ran out."""

    _code = RESOURCE_EXHAUSTED


class FailedPreconditionError(_CodedError):
    """The system is not in the state that the operation needs: a variable is not initialized."""

    _code = FAILED_PRECONDITION


class AbortedError(_CodedError):
    """The operation was aborted, usually by a concurrent action."""

    _code = ABORTED


class OutOfRangeError(_CodedError):
    """An iteration went past its valid range, e.g. the end of the input."""

    _code = OUT_OF_RANGE


class UnimplementedError(_CodedError):
    """No implementation exists for the operation with these arguments.

    A kernel raises it to decline its arguments at run time; under soft placement the op then
    moves to another device.
    """

    _code = UNIMPLEMENTED


class InternalError(_CodedError):
    """An invariant of the runtime does not hold."""

    _code = INTERNAL


class UnavailableError(_CodedError):
    """The runtime or a service is currently unavailable."""

    _code = UNAVAILABLE


class DataLossError(_CodedError):
    """Data is lost or corrupted beyond recovery."""

    _code = DATA_LOSS


_BY_CODE: dict[int, type[_CodedError]] = {c._code: c for c in _CodedError.__subclasses__()}


def make_specific_exception(node_def: Any, op: Any, message: Any, error_code: int) -> OpError:
    """The exception of a status code; a plain `OpError`, and a warning, for one that is unknown."""
    if error_code in _BY_CODE:
        return _BY_CODE[error_code](node_def, op, message)
    warnings.warn(f"Unknown error code: {error_code}", stacklevel=2)
    return OpError(node_def, op, message, error_code)


def exception_type_from_error_code(error_code: int) -> type[OpError]:
    """The exception class of a canonical status code.

    Args:
        error_code: the code, an int.
    """
    return _BY_CODE[error_code]


def error_code_from_exception_type(cls: type[OpError]) -> int:
    """The canonical status code of an exception class; `UNKNOWN`, and a warning, for another.

    Args:
        cls: the class.
    """
    if isinstance(cls, type) and issubclass(cls, _CodedError):
        return cls._code
    warnings.warn("Unknown class exception", stacklevel=2)
    return UNKNOWN
