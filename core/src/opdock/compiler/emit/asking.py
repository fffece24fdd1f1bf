"""What a backend's compiler answers: it is not believed, and what is wrong with it is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from opdock import errors
from opdock.compiler.place.target import Target
from opdock.devices.segment import Executable, Refusal, Segment
from opdock.failures import failures
from opdock.kernels.select.table import qualname

__all__ = ["asked", "compiler_of"]

_DECLINES: Final = (
    NotImplementedError,
    errors.UnimplementedError,
    errors.ResourceExhaustedError,
)


def asked(
    target: Target, segment: Segment, knows: Callable[[Any], bool]
) -> Executable | Refusal:  # fmt: skip
    """The answer of a device's compiler.

    One that raises what an executable declines with has refused the segment.

    Args:
        target: the device.
        segment: what is to be compiled.
        knows: whether something is a node of the segment.

    Raises:
        InternalError: the compiler raises anything else, or its answer is neither an executable nor
            a refusal of nodes of the segment.
    """
    assert target.compiler is not None
    try:
        answer = target.compiler(segment)
    except _DECLINES as e:
        return Refusal(str(e) or type(e).__name__)
    except failures() as e:
        raise _named(target, segment, f"raised {type(e).__name__}: {e}") from e
    if wrong := _wrong(answer, knows):
        raise _named(target, segment, wrong)
    return answer


def compiler_of(target: Target) -> str:
    """A device's compiler with its backend, for messages."""
    return f"compiler {qualname(target.compiler)} of {target.owner} on {target.name}"


def _wrong(answer: Any, knows: Callable[[Any], bool]) -> str:
    if not isinstance(answer, Refusal):
        told = f"returned {answer!r}, expected an executable or a Refusal"
        return "" if callable(answer) else told
    strange = [part for part in answer.nodes if not knows(part)]
    return f"refused {strange[0]!r}, which is no node of the segment" if strange else ""


def _named(target: Target, segment: Segment, wrong: str) -> errors.InternalError:
    nodes = ", ".join(f"{n.name} ({n.op})" for n in segment.nodes[:3])
    more = f" and {len(segment.nodes) - 3} more" if len(segment.nodes) > 3 else ""
    return errors.InternalError(
        None, None,
        f"{compiler_of(target)} {wrong}\n\t in the segment of {nodes}{more}; "
        "OPDOCK_DISABLE_PASSES=segments has its ops run one by one",
    )  # fmt: skip
