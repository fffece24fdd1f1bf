"""`Program`: a straight line of bound callables, generated as one Python function.

The hot path holds nothing but calls: no graph, no look-up by name. When a call fails, the line
number of the traceback says which step it was, and the frame's locals hold every value computed
so far, so a step can be resumed on another device without running anything twice.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from opdock import errors, shapes
from opdock.compiler.emit.arena import allocate
from opdock.compiler.emit.memory import MemoryPlan
from opdock.compiler.emit.overlap import Overlap
from opdock.compiler.emit.schedule import Schedule, Step
from opdock.compiler.ir.block import FEED, HOST, Block, Node, Value
from opdock.compiler.ir.state import cell_inputs
from opdock.compiler.place.ladder import node_sig
from opdock.runtime.program.builtin import BUILTINS, variable_cell
from opdock.runtime.program.replay import Replayer
from opdock.runtime.recover.lost import RestartError, has_effect, homewards
from opdock.runtime.resources import CellProxy, ResourceManager

if TYPE_CHECKING:
    from opdock.runtime.recover.fallback import Fallback

Copier = Callable[[Node], Callable[[Any], Any]]
Observer = Callable[[Step, float, float, "Sequence[Any]"], None]
Run = Callable[["Sequence[Any]"], "Sequence[Any]"]
_FREE_ABOVE: Final = 1 << 16


class NoBuffersError(errors.ResourceExhaustedError):
    """The buffers that the memory plan wants cannot be had."""


class KernelContext:
    """What a plain kernel `fn(ctx, *inputs)` gets."""

    __slots__ = ("attrs", "device", "resources", "sig", "stream")

    def __init__(self, sig: Any, resources: ResourceManager) -> None:
        self.sig = sig
        self.attrs = sig.attrs
        self.device = sig.device
        self.resources = resources
        self.stream = None


class Program:
    """A bound program.

    Attributes:
        block: the IR it was made from, for `explain` and traces.
        schedule: the steps.
        plan: the memory plan.
        overlap: how its steps run on several threads, where that pays.
    """

    def __init__(
        self,
        block: Block,
        schedule: Schedule,
        plan: MemoryPlan,
        resources: ResourceManager,
        copier: Copier,
        control: Callable[[Node], Callable[..., Any]],
        decline: Fallback | None = None,
        replays: bool = True,
    ) -> None:
        self.block = block
        self.schedule = schedule
        self.plan = plan
        self._resources = resources
        self._copier = copier
        self._control = control
        self._decline = decline
        self._busy = threading.Lock()
        self._presets = {s: self._preset(n) for s, n in schedule.presets.items()}
        self._fns = [self._bind(step) for step in schedule.steps]
        self._buffers = self._allocate()
        self._code: CodeType
        self._plain = self._generate()
        self._step = _quiet(self._plain)
        self.steps_run = 0
        self.replay = Replayer.of(self) if replays else None
        self.overlap: Overlap | None = None

    # ------------------------------------------------------------ binding
    def _preset(self, node: Node) -> Any:
        if node.op != "Const":
            return variable_cell(node, self._resources)
        value = node.attrs["value"]
        if node.target is None or node.target.is_host or value.dtype.hasobject:
            return value
        try:
            return node.target.device.upload(value)
        except errors.OpError as e:
            found = as_op_error(e, node)
            lost = None if self._decline is None else self._decline.losses.meet(node, found)
            raise lost or found from e

    def _allocate(self) -> list[Any]:
        """The planned buffers.

        Raises:
            NoBuffersError: they do not fit, or their device refuses for another reason.
        """
        try:
            return allocate(self.plan.buffers, self.plan.blocks)
        except (errors.OpError, MemoryError) as e:
            raise NoBuffersError(None, None, f"The planned buffers do not fit: {e}") from e

    def _bind(self, step: Step) -> Callable[..., Any]:
        node = step.node
        if step.kind == "read":
            return lambda cell: cell.read()
        if step.kind == "alias":
            return lambda value: value
        if step.kind == "copy":
            return self._copier(node)
        if step.kind == "control":
            return self._control(node)
        if step.kind == "builtin":
            return BUILTINS[node.op](node, self._resources)
        return self._proxied(node, bind_kernel(node, self._resources))

    def _proxied(self, node: Node, fn: Callable[..., Any]) -> Callable[..., Any]:
        """`fn` with copying stand-ins for variables that live on another device."""
        remote = {
            i: node.inputs[i].node.target
            for i in cell_inputs(node)
            if not _same_memory(node.inputs[i].node.target, node.target)
        }
        if not remote or node.target is None:
            return fn
        here = node.target
        proxies = {}
        for i, home in remote.items():
            name = node.inputs[i].node.name
            copy, place = self._between(here, home, name), HOST if home is None else home.name
            back = homewards(copy, place, node, where(node))
            proxies[i] = self._between(home, here, name), back

        def call(*inputs: Any) -> Any:
            args = list(inputs)
            for i, (to_local, to_home) in proxies.items():
                args[i] = CellProxy(args[i], to_local, to_home)
            result = fn(*args)
            return result.home if isinstance(result, CellProxy) else result

        return call

    def _between(self, source: Any, destination: Any, name: str) -> Callable[[Any], Any]:
        node = Node("_Copy", name, spec=None, attrs={
            "from": HOST if source is None or source.is_host else source.name,
            "to": HOST if destination is None or destination.is_host else destination.name,
        }, inputs=[], out_dtypes=[], out_shapes=[])  # fmt: skip
        return self._copier(node)

    # ------------------------------------------------------------ code
    def _generate(self) -> Callable[..., Any]:
        """One Python function; its source holds slot numbers only, nothing from the graph."""
        presets = self._presets
        scope: dict[str, Any] = {f"v{s}": v for s, v in presets.items()}
        scope.update({f"b{i}": b for i, b in enumerate(self._buffers)})
        scope.update({f"k{i}": f for i, f in enumerate(self._fns)})
        params = ", ".join(f"v{s}" for s in self.schedule.params)
        lines = [f"def step({params}):"]
        self._shared = {f"v{s}" for s in presets}
        # A planned result is its buffer: no local is needed for it.
        name = {s: f"v{s}" for s in range(self.schedule.n_slots)}
        for i, step in enumerate(self.schedule.steps):
            lines.append("    " + self._line(i, step, name))
        fetches = "".join(f"{name[s]}, " for s in self.schedule.fetches)
        lines.append(f"    return ({fetches})")
        code = compile("\n".join(lines), "<opdock program>", "exec")
        exec(code, scope)  # noqa: S102 - generated from slot numbers above
        function: Callable[..., Any] = scope["step"]
        self._code = function.__code__
        self._names = name
        return function

    def _line(self, i: int, step: Step, name: dict[int, str]) -> str:
        args = ", ".join(name[s] for s in step.inputs)
        if step.kind == "alias":
            name[step.outputs[0]] = name[step.inputs[0]]
            # Two slots under one name: neither's last use is the value's.
            self._shared.add(name[step.inputs[0]])
            return "pass"
        if step.out is not None:
            name[step.outputs[0]] = f"b{step.out}"
            return f"k{i}({args}, b{step.out})"
        if step.kind == "kernel" and step.node.kernel is not None and step.node.kernel.out:
            out = ", ".join("None" if b is None else f"b{b}" for b in step.outs)
            args += (", " if args else "") + (f"({out})" if out else "None")
        for slot, buffer in zip(step.outputs, step.outs, strict=False):
            if buffer is not None:
                name[slot] = f"b{buffer}"
        if not step.outputs:
            return f"k{i}({args})"
        left = ", ".join("_" if name[s][0] == "b" else name[s] for s in step.outputs)
        line = f"{left} = k{i}({args})"
        dead = [
            name[s] for s in self._big(step) if name[s][0] == "v" and name[s] not in self._shared
        ]
        if dead:
            line += "; " + " = ".join(dict.fromkeys(dead)) + " = None"
        return line

    def _big(self, step: Step) -> list[int]:
        """The slots that the step is the last to use and that are worth freeing at once."""
        if not step.frees or step.kind == "read":
            return []
        values = dict(zip(step.inputs, step.node.inputs, strict=True))
        return [s for s in step.frees if s not in step.outputs and self._is_big(values.get(s))]

    def _is_big(self, value: Value | None) -> bool:
        # A slot that aliases another may share its memory; only kernels' results are freed early.
        if value is None or value.node.traits.forwards or value.node.op == FEED:
            return False
        if value.dtype._is_ref_dtype or value.dtype.name == "resource":
            return False
        shape = value.shape
        if shape is None or None in shape:
            return True
        size = (shapes.num_elements(shape) or 0) * value.dtype.size
        return size > _FREE_ABOVE

    # ------------------------------------------------------------ running
    def run(self, feeds: Sequence[Any]) -> Sequence[Any]:
        """Runs one step and returns the raw fetched buffers.

        Raises:
            OpError: a kernel failed; the error names the op and the user's line.
        """
        # The planned buffers belong to one step at a time; a concurrent step allocates its own.
        if not self._busy.acquire(blocking=False):
            return self.interpret(feeds, planned=False)
        try:
            self.steps_run += 1
            if self.replay is not None:
                results = self.replay.run(feeds)
                if results is not None:
                    return results
            return self._step(*feeds)  # type: ignore[no-any-return]
        except Exception as e:
            return self._rescue(e)
        finally:
            self._busy.release()

    @contextlib.contextmanager
    def straight(self) -> Iterator[Run]:
        """`run` for many steps in a row, as of a loop: what each begins with is done once.

        NumPy's warnings are off already: a program that is running runs this one.
        """
        if self.replay is not None or not self._busy.acquire(blocking=False):
            yield self.run
            return
        try:
            yield self._turn
        finally:
            self._busy.release()

    def _turn(self, feeds: Sequence[Any]) -> Sequence[Any]:
        try:
            return self._plain(*feeds)  # type: ignore[no-any-return]
        except Exception as e:
            return self._rescue(e)

    def initial(self, feeds: Sequence[Any] | None) -> dict[int, Any]:
        """The values by slot before the first step: constants, variables and feeds."""
        values: dict[int, Any] = dict(self._presets)
        if feeds is not None:
            values.update(zip(self.schedule.params, feeds, strict=True))
        return values

    def perform(self, indices: Sequence[int], values: dict[int, Any]) -> None:
        """Runs some of the steps on values by slot, and adds theirs.

        Raises:
            OpError: a kernel failed; nothing stands in for it.
        """
        for i in indices:
            step = self.schedule.steps[i]
            try:
                results = self._call(i, step, [values[s] for s in step.inputs], planned=True)
            except Exception as e:
                raise as_op_error(e, step.node) from e
            values.update(zip(step.outputs, results, strict=False))

    def interpret(
        self,
        feeds: Sequence[Any],
        observer: Observer | None = None,
        planned: bool = True,
    ) -> Sequence[Any]:
        """Runs one step call by call: for traces, and beside a step that holds the buffers."""
        values = self.initial(feeds)
        planned = planned and self._busy.acquire(blocking=False)
        try:
            return self._continue(0, values, observer, planned)
        finally:
            if planned:
                self._busy.release()

    def _continue(
        self, start: int, values: dict[int, Any], observer: Observer | None, planned: bool
    ) -> Sequence[Any]:
        for i in range(start, len(self.schedule.steps)):
            step = self.schedule.steps[i]
            inputs = [values[s] for s in step.inputs]
            begin = time.perf_counter()
            try:
                results = self._call(i, step, inputs, planned)
            except Exception as e:
                results = self._instead(e, step, inputs)
            if observer is not None:
                if step.node.target is not None and not step.node.target.is_host:
                    step.node.target.device.synchronize()
                observer(step, begin, time.perf_counter(), results)
            values.update(zip(step.outputs, results, strict=False))
        return tuple(values[s] for s in self.schedule.fetches)

    def _call(self, i: int, step: Step, inputs: list[Any], planned: bool) -> tuple[Any, ...]:
        kernel = step.node.kernel
        with np.errstate(all="ignore"):
            if step.kind == "kernel" and kernel is not None and kernel.out:
                result = self._fns[i](*inputs, self._out(step) if planned else None)
            else:
                result = self._fns[i](*inputs)
        if len(step.outputs) == 1:
            return (result,)
        return tuple(result) if step.outputs else ()

    def _out(self, step: Step) -> Any:
        """What a call gets as `out`: the planned buffer, or a tuple of them, or None."""
        if step.outs:
            return tuple(None if b is None else self._buffers[b] for b in step.outs)
        return None if step.out is None else self._buffers[step.out]

    # ------------------------------------------------------------ failure
    def _locate(self, error: Exception) -> tuple[int | None, dict[int, Any]]:
        """The step that raised, and the slot values at that moment."""
        tb = error.__traceback__
        while tb is not None and tb.tb_frame.f_code is not self._code:
            tb = tb.tb_next
        if tb is None:
            return None, {}
        return tb.tb_lineno - 2, self._values_of(tb.tb_frame)

    def _values_of(self, frame: FrameType) -> dict[int, Any]:
        names = frame.f_locals
        values: dict[int, Any] = dict(self._presets)
        for slot, name in self._names.items():
            if name[0] == "b":
                values[slot] = self._buffers[int(name[1:])]
            elif name in names:
                values[slot] = names[name]
            elif int(name[1:]) in self._presets:
                values[slot] = self._presets[int(name[1:])]
        return values

    def _rescue(self, error: Exception) -> Sequence[Any]:
        """What the step that failed returns in the end, if something can stand in for its op."""
        index, values = self._locate(error)
        if index is None:
            raise error
        step = self.schedule.steps[index]
        results = self._instead(error, step, [values[s] for s in step.inputs])
        values.update(zip(step.outputs, results, strict=False))
        return self._continue(index + 1, values, None, planned=True)

    def _instead(self, error: Exception, step: Step, inputs: list[Any]) -> tuple[Any, ...]:
        """Another kernel's results for a step that declined; raises what cannot be helped."""
        found = as_op_error(error, step.node)
        if isinstance(found, (errors.UnavailableError, errors.ResourceExhaustedError)):
            self._restart(found, step, error)
        declined = isinstance(found, (errors.UnimplementedError, errors.ResourceExhaustedError))
        # A user's function that raises has failed, not declined: it must not run a second time.
        declined = declined and not step.node.traits.foreign
        if declined and self._decline is not None and step.kind == "kernel":
            try:
                results = self._decline(step, inputs, found)
            except errors.OpError as e:
                self._restart(e, step, e)
                raise
            if results is not None:
                return results
        raise found from (None if found is error else error)

    def _restart(self, found: errors.OpError, step: Step, error: Exception) -> None:
        """Raises a `RestartError` when other placement is what may help."""
        if self._decline is None:
            return
        restart: Any = found if isinstance(found, RestartError) else None
        if restart is None:
            losses = self._decline.losses
            restart = losses.meet(step.node, found) or losses.no_room(step, self.block.nodes, found)
        if restart is not None:
            done = self.schedule.steps[: self.schedule.steps.index(step) + (step.kind == "control")]
            restart.again = restart.again and not any(has_effect(s) for s in done)
            raise restart from (None if restart is error else error)


def _quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """Infinities and NaNs are results here, as in TF, not occasions for a warning."""
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        return np.errstate(all="ignore")(function)

    # NumPy 1 keeps the state to go back to in the decorator, which threads would share.
    def step(*feeds: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*feeds)

    return step


def _same_memory(a: Any, b: Any) -> bool:
    return a is b or a is None or b is None or (a.is_host and b.is_host)


def bind_kernel(node: Node, resources: ResourceManager) -> Callable[..., Any]:
    """The callable of a placed node.

    Raises:
        OpError: the kernel's binder failed.
    """
    kernel = node.kernel
    if kernel is None:
        raise errors.InternalError(
            None, node.origin, f"Node {node.name} ({node.op}) has no kernel."
        )
    sig = node_sig(node, node.target, resources)
    try:
        if kernel.bind is not None:
            return kernel.bind(sig)
    except Exception as e:
        raise as_op_error(e, node) from e
    assert kernel.fn is not None
    return functools.partial(kernel.fn, KernelContext(sig, resources))


_TRANSLATED: Final[tuple[tuple[type[Exception], type[errors._CodedError]], ...]] = (
    (MemoryError, errors.ResourceExhaustedError),
    (NotImplementedError, errors.UnimplementedError),
    (ValueError, errors.InvalidArgumentError),
    (IndexError, errors.InvalidArgumentError),
    (OverflowError, errors.InvalidArgumentError),
    (ZeroDivisionError, errors.InvalidArgumentError),
)


def as_op_error(error: Exception, node: Node) -> errors.OpError:
    """`error` as an OpError that names the node and the user's line."""
    if isinstance(error, errors.OpError):
        if "[[node " in error.message:
            return error
        same: Any = type(error)
        located: errors.OpError = same(None, node.origin, error.message + where(node))
        return located
    for kind, cls in _TRANSLATED:
        if isinstance(error, kind):
            return cls(None, node.origin, f"{error}{where(node)}")
    text = f"{type(error).__name__}: {error}"
    return errors.InternalError(None, node.origin, f"Op {node.op} failed: {text}{where(node)}")


def where(node: Node) -> str:
    """TF's suffix that names a node, with the user's line."""
    line = node.origin.user_line if node.origin is not None else ""
    name = node.origin.name if node.origin is not None else node.name
    at = f" (defined at {line})" if line else ""
    return f"\n\t [[node {name}{at}]] (op {node.op})"
