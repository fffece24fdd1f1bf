"""Checks of what plugins give, for debugging: results of kernels, uploads, downloads and routes.

On with `OPDOCK_CHECK=1`. A check is a function around the call that it checks, put there when a
program is bound: programs that are bound without checks run the bare calls.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any, Final, NoReturn

import numpy as np

from opdock import errors, shapes
from opdock.codes import coded
from opdock.compiler.ir.block import COPY, HOST, Node
from opdock.compiler.place.target import Target
from opdock.devices.answers import unchecked
from opdock.devices.router import DLPACK_REFUSALS, HOST_MEMORY, Hop
from opdock.devices.segment import Loan
from opdock.dtypes import DType
from opdock.failures import failures
from opdock.late import record
from opdock.runtime.program.segment import misfit
from opdock.runtime.recover.located import as_op_error, culprit, where

__all__ = ["Checks"]

Call = Callable[..., Any]
_HOST_TYPES: Final = (np.ndarray, np.generic)
_NOT_LATE: Final = (
    errors.UnavailableError,
    errors.ResourceExhaustedError,
    errors.UnimplementedError,
)
"""What a copy itself may raise, which is the device's way to say that it should go elsewhere."""
_TRIPS: Final = 4096  # as many kinds of copies are remembered of a device
_STRINGS: Final = (bytes, str)
"""An element of a string tensor is a scalar string tensor, on the host."""


@record(frozen=True, slots=True)
class _Form:
    """What a result must be: instance of a class, of an element type and of a static shape."""

    types: tuple[type, ...]
    dtypes: tuple[Any, ...]
    shape: shapes.Shape

    def wrong(self, value: Any) -> str:
        """What is not as it must be, with what was expected; empty when all is."""
        kind = type(value)
        if not issubclass(kind, self.types):
            wanted = " or ".join(dict.fromkeys(map(_class, self.types)))
            return f"is of type {_class(kind)}, expected {wanted}"
        if kind in _STRINGS:
            return ""
        if not hasattr(value, "shape") or not hasattr(value, "dtype"):
            return f"is of type {_class(kind)}, expected a buffer"
        if self.dtypes and value.dtype not in self.dtypes:
            return f"has dtype {value.dtype}, expected {self.dtypes[0]}"
        shape = tuple(value.shape)
        if self.shape is not None and not shapes.is_compatible(self.shape, shape):
            return f"has shape {shapes.text(shape)}, expected {shapes.text(self.shape)}"
        return ""


class Checks:
    """The checks of one session.

    Args:
        targets: gives the session's devices.
    """

    def __init__(self, targets: Callable[[], Sequence[Target]]) -> None:
        self._targets = targets

    # ------------------------------------------------------------ kernels
    def kernel(self, node: Node, fn: Call) -> Call:
        """`fn`, whose results are looked at, and whose inputs must be as they were."""
        kernel = node.kernel
        assert kernel is not None
        forms = [self._form(node, i) for i in range(len(node.out_dtypes))]
        single = len(forms) == 1

        def call(*args: Any) -> Any:
            inputs, out = (args[:-1], args[-1]) if kernel.out else (args, None)
            outs = (out,) if single else (out or ())
            kept = [self._before(node, i, x, outs) for i, x in enumerate(inputs)]
            result = fn(*args)
            for i, (x, before) in enumerate(zip(inputs, kept, strict=True)):
                if before is not None and before != self._image(node, x, outs):
                    _fail(node, f"input {i}", "was changed by the kernel, and inputs are read-only")
            results = self._results(node, result, single, len(forms))
            for i, (form, value) in enumerate(zip(forms, results, strict=True)):
                if form is not None and (wrong := form.wrong(value)):
                    _fail(node, f"output {i}", wrong)
            for i, (buffer, value) in enumerate(zip(outs, results, strict=False)):
                if buffer is not None and not self._filled(node, buffer, value):
                    _fail(node, f"output {i}", "is not in the buffer that the kernel got as `out`")
            self._fresh(node, inputs, outs, results)
            return result

        return call

    def segment(self, node: Node, executable: Call) -> Call:
        """An executable, whose results and new values of variables are looked at."""
        segment, target = node.attrs["segment"], node.target
        assert target is not None
        forms = [(f"output {i}", self._form(node, i)) for i in range(len(node.out_dtypes))]
        # Whoever assigns without a look at the shape may change it.
        free = any(n.attrs.get("validate_shape") is False for n in segment.nodes)
        for v in segment.variables:
            if v.written:
                form = self._device_form(target, v.dtype.base_dtype, None if free else v.shape)
                forms.append((f"the new value of variable {v.name}", form))

        def call(inputs: Any, state: Any, places: Any) -> Any:
            answer = executable(inputs, state, places)
            if misfit(node, answer):
                return answer  # whoever called has words for it
            for (what, form), value in zip(forms, [*answer[0], *answer[1]], strict=True):
                given = value.buffer if isinstance(value, Loan) else value
                if form is not None and (wrong := form.wrong(given)):
                    _fail(node, what, wrong)
            return answer

        return call

    def _results(self, node: Node, result: Any, single: bool, count: int) -> Sequence[Any]:
        if single:
            return (result,)
        if not count:
            return ()
        if not isinstance(result, (tuple, list)) or len(result) != count:
            got = f"{len(result)}" if isinstance(result, (tuple, list)) else _class(type(result))
            _fail(node, "the result", f"is {got}, expected a tuple of {count} outputs")
        return result

    def _form(self, node: Node, i: int) -> _Form | None:
        dtype = node.out_dtypes[i]
        if dtype._is_ref_dtype or dtype._is_handle or node.target is None:
            return None
        shape = node.out_shapes[i]
        if node.target.is_host or i in node.host_outputs:
            return _host_form(dtype, shape)
        form = self._device_form(node.target, dtype, shape)
        if any(issubclass(kind, np.ndarray) for kind in form.types):
            # Many of NumPy's functions drop a subclass, and every such device reads plain arrays.
            return _Form((*form.types, *_HOST_TYPES), form.dtypes, shape)
        return form

    def _fresh(
        self, node: Node, inputs: Sequence[Any], outs: Sequence[Any], results: Sequence[Any]
    ) -> None:
        """A result may be an input's memory only where the record says so."""
        assert node.kernel is not None
        for i, value in enumerate(results):
            for j, given in enumerate(inputs):
                if node.kernel.may_alias.get(i) == j or any(given is b for b in outs):
                    continue
                if _shared(value, given) and not any(_shared(value, b) for b in outs):
                    _fail(node, f"output {i}", f"is memory of input {j}, which may_alias denies")

    def _filled(self, node: Node, buffer: Any, value: Any) -> bool:
        if value is buffer:
            return True
        return bool(self._bytes(node, value) == self._bytes(node, buffer))

    def _before(self, node: Node, i: int, value: Any, outs: Sequence[Any]) -> Any:
        """The contents of an input; what cannot be read is the fault of who made it."""
        try:
            return self._image(node, value, outs)
        except _NOT_LATE:
            raise
        except failures(Exception) as e:
            raise _blamed(e, node, i) from e

    def _image(self, node: Node, value: Any, outs: Sequence[Any]) -> Any:
        """The contents of an input that the kernel may not change, or None."""
        if not hasattr(value, "shape") or not hasattr(value, "dtype"):
            return None
        for buffer in outs:
            # The planned buffer of an elementwise op may be that of an input.
            alike = buffer is not None and tuple(buffer.shape) == tuple(value.shape)
            if alike and (_shared(buffer, value) or not isinstance(value, np.ndarray)):
                return None
        return self._bytes(node, value)

    def _bytes(self, node: Node, value: Any) -> Any:
        if not isinstance(value, _HOST_TYPES):
            assert node.target is not None
            value = node.target.device.download(value)
        value = np.asarray(value)
        return value.tolist() if value.dtype.hasobject else value.tobytes()

    # ------------------------------------------------------------ copies
    def copy(self, node: Node, carry: Call) -> Call:
        """A copy that is a node."""
        return self.hop(carry, node.attrs["from"], node.attrs["to"], node.attrs["how"], node)

    def guarded(self, hop: Hop, node: Node) -> Hop:
        """A step of a route with a check around it."""
        return replace(hop, carry=self.hop(hop.carry, hop.src, hop.dst, hop.how, node))

    def hop(self, carry: Call, src: str, dst: str, how: str, node: Node) -> Call:
        """One step of a route.

        Args:
            carry: the step.
            src, dst: names of devices, or `HOST`.
            how: "upload", "download", or another way.
            node: whose value it is.
        """
        carry = unchecked(carry)
        dtype = node.out_dtypes[0].base_dtype if node.out_dtypes else None
        end = next((t for t in self._targets() if t.name == (src if dst == HOST else dst)), None)
        told = f"{how} from {src} to {dst}"
        if end is not None:
            told += f" by {end.owner}"

        forms: dict[tuple[int, ...], _Form] = {}

        def call(value: Any) -> Any:
            try:
                result = carry(value)
            except _NOT_LATE:
                raise
            except failures(Exception) as e:
                if src == HOST or not node.inputs:
                    raise
                raise _blamed(e, node, 0) from e
            shape = tuple(np.shape(value) if src == HOST else value.shape)
            form = forms.get(shape)
            if form is None:
                forms.clear()
                form = forms[shape] = self._end_form(end, dst, dtype, shape)
            wrong = form.wrong(result)
            if not wrong and dst != HOST and end is not None:
                wrong = _back(end.device, result, dtype, shape, (src, how, _order(value)))
            if wrong:
                _raise(node, f"the result of the {told} {wrong}")
            return result

        return call

    def _end_form(
        self, end: Target | None, dst: str, dtype: DType | None, shape: shapes.Shape
    ) -> _Form:
        """What a copy must give."""
        if dst == HOST:
            return _Form(_HOST_TYPES, () if dtype is None else _host_dtypes(dtype), shape)
        if end is None or dtype is None:
            return _Form((object,), (), shape)
        return self._device_form(end, dtype, shape)

    def _device_form(self, target: Target, dtype: DType, shape: shapes.Shape) -> _Form:
        known, dtype = _known(target.device), dtype.base_dtype
        if dtype not in known.buffers:
            known.buffers[dtype] = _own(target.device, dtype)
        types, dtypes = known.buffers[dtype]
        return _Form(types, dtypes, shape)


# ---------------------------------------------------------------- what is known of a device
@record(slots=True)
class _Known:
    """What was found out about a device that is the same each time.

    Attributes:
        buffers: by element type the classes of its buffers, and what they call the type.
        round_trips: ways, element types and shapes of copies that came back as they went.
    """

    buffers: dict[DType, tuple[tuple[type, ...], tuple[Any, ...]]] = field(default_factory=dict)
    round_trips: set[Any] = field(default_factory=set)


_devices: weakref.WeakKeyDictionary[Any, _Known] = weakref.WeakKeyDictionary()


def _known(device: Any) -> _Known:
    try:
        return _devices.setdefault(device, _Known())
    except TypeError:  # one that cannot be referred to weakly is asked anew
        return _Known()


def _back(
    device: Any,
    result: Any,
    dtype: DType | None,
    shape: tuple[int, ...],
    way: tuple[str, str, bool],
) -> str:
    """What is wrong with a copy once it is downloaded again.

    What it was compared with before came from the same device, and may be as wrong. Class, type and
    shape are the same for each value of a kind, so one of a kind is looked at: a download waits.
    """
    key = way, dtype, shape
    trips = _known(device).round_trips
    if key in trips:
        return ""
    form = _Form((np.ndarray,), () if dtype is None else _host_dtypes(dtype), shape)
    wrong = form.wrong(device.download(result))
    if wrong:
        return f"{wrong}, once it is downloaded again"
    if len(trips) >= _TRIPS:
        trips.clear()
    trips.add(key)
    return ""


def _order(value: Any) -> bool:
    """Whether a host array stands in C order, which a device may copy in another way."""
    return bool(isinstance(value, np.ndarray) and value.flags.c_contiguous)


def _own(device: Any, dtype: DType) -> tuple[tuple[type, ...], tuple[Any, ...]]:
    """The classes of a device's buffers, and what they call an element type."""
    try:
        sample = device.upload(np.zeros((1,), dtype.np))
    except errors.OpError:
        return (object,), ()  # it has no buffers of this type to compare with
    types = [type(sample)]
    namespace = getattr(device, "namespace", None)
    if namespace is not None:
        # What portable kernels make anew is an array of the namespace, which takes all buffers.
        # Of the buffers' own type: what the namespace makes unasked may be no type of the device's.
        types.append(type(namespace.zeros((1,), dtype=sample.dtype)))
    if np.ndarray in types:
        types.append(np.generic)  # what NumPy computes of arrays without dimensions
    return tuple(dict.fromkeys(types)), (sample.dtype,)


def _host_form(dtype: DType, shape: shapes.Shape) -> _Form:
    types = _HOST_TYPES + _STRINGS if dtype.np.hasobject else _HOST_TYPES
    return _Form(types, _host_dtypes(dtype), shape)


def _host_dtypes(dtype: DType) -> tuple[Any, ...]:
    """Arrays of quantized values may be arrays of the integers that store them."""
    return (dtype.np, dtype.np[0]) if dtype.is_quantized else (dtype.np,)


def _shared(a: Any, b: Any) -> bool:
    a, b = _in_host_memory(a), _in_host_memory(b)
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return bool(a.size and b.size and np.may_share_memory(a, b))
    # Equal scalars of NumPy's may be one object, which nobody can change.
    return a is b and hasattr(a, "shape") and not isinstance(a, np.generic)


def _in_host_memory(value: Any) -> Any:
    """A NumPy array over a buffer that DLPack finds in the host's memory; all else as it is."""
    where = getattr(value, "__dlpack_device__", None)
    if isinstance(value, np.ndarray) or where is None or tuple(where()) != HOST_MEMORY:
        return value
    try:
        return np.from_dlpack(value)
    except DLPACK_REFUSALS:
        return value


def _class(kind: type) -> str:
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _blamed(error: BaseException, node: Node, i: int) -> Exception:
    """An error that came when an input of `node` was read, as one of the node that made it."""
    maker = node.inputs[i].node
    while maker.inputs and (maker.op == COPY or maker.is_alias):
        maker = maker.inputs[0].node
    return as_op_error(error, maker, "the queued work")


def _fail(node: Node, what: str, wrong: str) -> NoReturn:
    _raise(node, f"{what} of {culprit(node)} {wrong}")


def _raise(node: Node, text: str) -> NoReturn:
    told = f"OPDOCK_CHECK: {node.name} ({node.op}): {text}{where(node)}"
    raise errors.InternalError(None, node.origin, coded("OPD-KERNEL-002", told))
