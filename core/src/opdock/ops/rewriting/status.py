"""What a conversion may do, and whether code is to be converted here."""

from __future__ import annotations

import enum
import threading
from collections.abc import Iterable
from typing import Any, Self

__all__ = ["STANDARD", "ControlStatusCtx", "ConversionOptions", "Feature", "Status"]


class Feature(enum.Enum):
    """What a conversion does only if it is asked to."""

    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"

    @classmethod
    def all(cls) -> tuple[Feature, ...]:
        """All features."""
        return tuple(cls)

    @classmethod
    def all_but(cls, exclude: Any) -> tuple[Feature, ...]:
        """All features but one, or but several."""
        left_out = {exclude} if isinstance(exclude, cls) else set(exclude)
        return tuple(set(cls) - left_out - {cls.ALL})


class ConversionOptions:
    """How a function is converted.

    Args:
        recursive: whether the functions that it calls are converted as well.
        user_requested: whether the user asked for this very function.
        internal_convert_user_code: whether functions of the user's are converted at all.
        optional_features: a feature, several, or None.
    """

    def __init__(
        self, recursive: bool = False, user_requested: bool = False,
        internal_convert_user_code: bool = True,
        optional_features: Feature | Iterable[Feature] | None = Feature.ALL,
    ) -> None:  # fmt: skip
        self.recursive = recursive
        self.user_requested = user_requested
        self.internal_convert_user_code = internal_convert_user_code
        if isinstance(optional_features, Feature):
            optional_features = (optional_features,)
        self.optional_features = frozenset(optional_features or ())

    def as_tuple(self) -> tuple[Any, ...]:
        """All that is set."""
        return (
            self.recursive, self.user_requested, self.internal_convert_user_code,
            self.optional_features,
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash(self.as_tuple())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConversionOptions) and self.as_tuple() == other.as_tuple()

    def uses(self, feature: Feature) -> bool:
        """Whether the conversion has a feature."""
        return not self.optional_features.isdisjoint((feature, Feature.ALL))

    def call_options(self) -> ConversionOptions:
        """How the functions are converted that a converted one calls."""
        return ConversionOptions(self.recursive, False, self.recursive, self.optional_features)


STANDARD = ConversionOptions(recursive=True, optional_features=None)


class Status(enum.Enum):
    """Whether the code around asked for conversions."""

    UNSPECIFIED = 0
    ENABLED = 1
    DISABLED = 2


class ControlStatusCtx:
    """A context in which conversions are on or off, for the thread that enters it."""

    def __init__(self, status: Status, options: ConversionOptions | None = None) -> None:
        self.status = status
        self.options = options

    def __enter__(self) -> Self:
        _thread.contexts.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        assert _thread.contexts.pop() is self

    def __repr__(self) -> str:
        return f"ControlStatusCtx[status={self.status}, options={self.options}]"


class _Thread(threading.local):
    def __init__(self) -> None:
        self.contexts = [ControlStatusCtx(Status.UNSPECIFIED)]


_thread = _Thread()


def control_status_ctx() -> ControlStatusCtx:
    """The innermost context."""
    return _thread.contexts[-1]
