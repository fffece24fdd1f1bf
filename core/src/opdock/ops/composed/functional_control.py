"""Control flow over functions of the library: what TensorFlow has in `functional_ops`.

`tf.cond` and `tf.while_loop` trace what they are given; these take what `Defun` made, with all that
it uses from outside among the arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opdock import dtypes, errors
from opdock.graph.nodes.convert import convert_to_tensor
from opdock.graph.nodes.operation import Operation, Tensor
from opdock.ops.calls import partitioned_call_op, stateful_partitioned_call_op
from opdock.ops.composed.defined_function import Defun, get_extra_args, symbolic_gradient
from opdock.ops.control import if_op, while_op
from opdock.ops.functional import remote_call_op, turns_of

# None is public: TF 1's programs import them from the module.
__all__: list[str] = []


def If(
    cond: Any, inputs: Sequence[Any], then_branch: Any, else_branch: Any, name: str | None = None
) -> list[Tensor]:
    """What one of two functions makes of the inputs.

    Args:
        cond: a scalar; numbers other than 0 and strings that are not empty are true.
        inputs: the arguments of both.
        then_branch: a function of the library.
        else_branch: another, with results of the same types.
        name: a name for the operation.
    """
    kinds = [t.dtype.base_dtype for t in then_branch.function_graph.outputs]
    found: list[Tensor] = if_op(
        cond, list(inputs), Tout=kinds, then_branch=then_branch, else_branch=else_branch, name=name
    )
    return found


def Gradient(inputs: Sequence[Any], f: Any, name: str | None = None) -> list[Tensor]:
    """The gradient of a function's arguments.

    Args:
        inputs: its arguments, then the gradients of its results.
        f: a function of the library.
        name: a name for the operation.
    """
    kinds = [t.dtype.base_dtype for t in f.function_graph.inputs]
    return symbolic_gradient(input=inputs, Tout=kinds, f=f, name=name)


def While(
    input_: Sequence[Any], cond: Any, body: Any, name: str | None = None, hostmem: Any = None
) -> list[Tensor]:
    """What is left of the inputs when a function has been applied for as long as another is true.

    Args:
        input_: what the loop starts from.
        cond: a function of the library that uses nothing from outside.
        body: another, whose results have the types of its arguments.
        name: a name for the operation.
        hostmem: accepted for TF's signature; where what lies is decided when the loop runs.

    Raises:
        ValueError: `cond` uses something from outside, or takes other types than `body`.
    """
    if cond.captured_inputs:
        raise ValueError(
            "While op 'cond' argument must be a function without implicitly captured inputs."
        )
    declared = list(body.declared_input_types)
    if list(cond.declared_input_types) != declared:
        raise ValueError(
            "While op 'cond' and 'body' signatures do not match. "
            f"{cond.declared_input_types!r} vs {body.declared_input_types!r}"
        )
    captured = body.captured_inputs
    if not captured:
        out: list[Tensor] = while_op(list(input_), cond=cond, body=body, name=name)
        return out
    own, kinds = cond, [*declared, *(t.dtype.base_dtype for t in captured)]
    cond = Defun(*kinds, func_name=f"{own.name}_Wrapper")(lambda *args: own(*args[: len(declared)]))
    out = while_op([*input_, *captured], cond=cond, body=_with_captures(body), name=name)
    return out[: len(declared)]


def _with_captures(function: Any) -> Any:
    """A function that also gives what it uses from outside."""

    def wrapped(*args: Any) -> Any:
        return (*_results(function(*args)), *get_extra_args())

    name = f"{function.name}_Wrapper"
    return Defun(*function.declared_input_types, func_name=name)(wrapped)


def _results(found: Any) -> tuple[Any, ...]:
    if isinstance(found, Operation):
        return ()
    return tuple(found) if isinstance(found, (list, tuple)) else (found,)


def For(
    start: Any, limit: Any, delta: Any, inputs: Sequence[Any], body: Any, name: str | None = None,
    hostmem: Any = None, rewrite_with_while: bool | None = None,
) -> list[Tensor]:  # fmt: skip
    """What is left of the inputs when a function was applied for each number of a range.

    Args:
        start: the first number, an int32 scalar.
        limit: where the range ends.
        delta: the step.
        inputs: what the loop starts from.
        body: a function of the library, of a number and of these.
        name: a name for the operation, which is a `While` in any case.
        hostmem: accepted for TF's signature.
        rewrite_with_while: whether names are those that a `While` has in TF.
    """
    first, end, step = (
        _scalar(v, n) for v, n in ((start, "start"), (limit, "limit"), (delta, "delta"))
    )
    count = len(body.function_graph.outputs)
    if count != len(inputs):
        raise errors.InvalidArgumentError(
            None, None, f"For loop body returned {count} arguments. Expected: {len(inputs)}"
        )
    turns = turns_of(first, end, step)
    kinds = [dtypes.int32] * 4 + list(body.declared_input_types)[1:]

    def goes_on(i: Any, turns: Any, *_: Any) -> Any:
        return i < turns

    def turn(i: Any, turns: Any, first: Any, step: Any, *values: Any) -> Any:
        return (i + 1, turns, first, step, *_results(body(first + i * step, *values)))

    cond, loop_body = (
        Defun(*kinds, func_name=f"{body.name}_{part}" if rewrite_with_while else None)(function)
        for part, function in (("Cond", goes_on), ("Body", turn))
    )
    name = name or ("While" if rewrite_with_while else "For")
    return While([0, turns, first, step, *inputs], cond, loop_body, name=name)[4:]


def remote_call(
    args: Sequence[Any], target: Any, f: Any, Tout: Sequence[Any], name: str | None = None
) -> list[Tensor]:
    """What a function makes of the arguments, on a device if TF had run it.

    Args:
        args: the arguments, with what the function uses from outside.
        target: a device's name, a string tensor. The function's operations go where placement has
            them: the name is not known before the step.
        f: a function of the library.
        Tout: the types of the results.
        name: a name for the operation.
    """
    found: list[Tensor] = remote_call_op(target, list(args), Tout=list(Tout), f=f, name=name)
    return found


def _scalar(value: Any, name: str) -> Tensor:
    found = convert_to_tensor(value, dtypes.int32)
    if found.shape.ndims not in (None, 0):
        raise errors.InvalidArgumentError(
            None, None, f"{name} must be a scalar, but has shape {found.shape}"
        )
    return found


def partitioned_call(
    args: Sequence[Any], f: Any, tout: Sequence[Any] | None = None,
    executing_eagerly: bool | None = None, config: Any = None, executor_type: str | None = None,
) -> Any:  # fmt: skip
    """A call of a function, each of whose operations runs where it was put.

    Args:
        args: the arguments, with what the function uses from outside.
        f: a function of the library.
        tout: the types of the results; by default those of `f`.
        executing_eagerly: must not be true.
        config: a serialized `ConfigProto`, kept with the node.
        executor_type: kept with the node.

    Returns:
        The results as a list, or the operation if there are none.
    """
    kinds = [t.dtype.base_dtype for t in f.function_graph.outputs] if tout is None else list(tout)
    call = stateful_partitioned_call_op if f.stateful_ops else partitioned_call_op
    return call(
        list(args), Tout=kinds, f=f, config_proto=config or b"", executor_type=executor_type or ""
    )
