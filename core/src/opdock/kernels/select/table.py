"""Kernel records, and the table that a backend's kernel modules fill."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, fields
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeVar

from opdock.dtypes import DType
from opdock.fields import check_fields, check_value
from opdock.kernels.select.signature import NodeSig
from opdock.late import record

_F = TypeVar("_F", bound=Callable[..., Any])

PORTABLE: Final = "portable"
"""The label of core's portable kernels: the one label that needs no request."""


@record(frozen=True, kw_only=True, eq=False)
class Kernel:
    """An op's computation on one backend.

    Give either `bind` or `fn`. Kernels are functional: an input is never written, and an output is
    a view of an input only where `may_alias` says so.

    Attributes:
        op: the op type, e.g. "MatMul".
        bind: called once when a program is prepared, with the `NodeSig`; returns `fn(*inputs)`, or
            `fn(*inputs, out)` with `out=True`.
        fn: a plain function `fn(ctx, *inputs)`; `ctx` is a `KernelContext`.
        dtypes: admitted element types by type attribute; an attribute that is absent admits all.
        computes_in: element types that it makes arrays of, whatever its arguments' are; without
            one of them a device does without the kernel.
        when: True, or the reason why the kernel declines this node. Unknown dimensions are None:
            decline rather than guess. Nodes that differ in their names alone are asked about once.
        priority: the higher wins among kernels of one device that admit a node.
        label: a kernel with a label is used only for nodes whose `_kernel` attribute asks for it.
        out: whether the bound callable takes a trailing positional `out`: a buffer or None; for
            several results None, or a tuple with a buffer or None for each. The buffer of an
            elementwise op may be an input's.
        host_inputs: names of arguments that arrive as NumPy arrays in host memory.
        traced: names of `host_inputs` that the kernel also takes as arrays without values, from
            a tracer: what depends on them may be part of a program. `NotImplementedError` says
            that the rest of the arguments does not allow it.
        host_outputs: names of results that are NumPy arrays in host memory.
        may_alias: output index -> index of the input whose buffer or view it may be.
        over: output index -> index of the input whose buffer `out` may be, if nobody reads the
            input any more, without the op being elementwise.
        keeps: names of the arguments and results whose buffers a stateful kernel may hold on to
            after the call. None: all of them. A stateless kernel never keeps any.
        unfold: asked where the device has kernels for clusters, for a node that this kernel would
            compute: True if what the op decomposes into is faster there.
        refused: why the device does without the kernel: it is never taken, and this is the reason.
        since: the plugin API version for which the record was written.

    Raises:
        TypeError: a field has the wrong type.
        ValueError: both or neither of `bind` and `fn` are given.
    """

    op: str
    bind: Callable[[NodeSig], Callable[..., Any]] | None = None
    fn: Callable[..., Any] | None = None
    dtypes: Mapping[str, frozenset[DType]] = field(default_factory=dict)
    computes_in: frozenset[DType] = frozenset()
    when: Callable[[NodeSig], bool | str] | None = None
    priority: int = 0
    label: str = ""
    out: bool = False
    host_inputs: frozenset[str] = frozenset()
    traced: frozenset[str] = frozenset()
    host_outputs: frozenset[str] = frozenset()
    may_alias: Mapping[int, int] = field(default_factory=dict)
    over: Mapping[int, int] = field(default_factory=dict)
    keeps: frozenset[str] | None = None
    unfold: Callable[[NodeSig], bool | str] | None = None
    refused: str = ""
    since: tuple[int, int] = (1, 0)

    def __post_init__(self) -> None:
        if not isinstance(self.op, str) or not self.op:
            raise TypeError(f"Kernel.op must be an op type, got {self.op!r}")
        if (self.bind is None) == (self.fn is None):
            raise ValueError(f"Kernel for {self.op}: give exactly one of bind= and fn=")
        if not callable(self.bind or self.fn):
            raise TypeError(f"Kernel for {self.op}: bind/fn must be callable")
        check_fields(self, f"Kernel for {self.op}: ")
        if self.out and self.bind is None:
            raise ValueError(f"Kernel for {self.op}: out=True needs a binder")
        types = {attr: _dtype_set(self.op, attr, v) for attr, v in self.dtypes.items()}
        object.__setattr__(self, "dtypes", MappingProxyType(types))
        if self.computes_in:
            inner = _dtype_set(self.op, "computes_in", self.computes_in)
            object.__setattr__(self, "computes_in", inner)
        for name in ("may_alias", "over"):
            inputs: Mapping[int, int] = getattr(self, name)
            for pair in inputs.items():
                check_value(f"Kernel for {self.op}: {name}", pair, "tuple[int, int]")
            object.__setattr__(self, name, MappingProxyType(dict(inputs)))
        for name in ("host_inputs", "traced", "host_outputs"):
            object.__setattr__(self, name, _names(self.op, name, getattr(self, name)))
        if self.keeps is not None:
            object.__setattr__(self, "keeps", _names(self.op, "keeps", self.keeps))

    @property
    def is_portable(self) -> bool:
        """Whether core wrote the kernel on the array API rather than the backend."""
        return self.label == PORTABLE

    @property
    def specificity(self) -> int:
        """How many type attributes are constrained: of equal kernels the more specific one wins."""
        return len(self.dtypes)

    @property
    def code(self) -> Any:
        """The function that somebody wrote, without `functools.partial` and wrappers around it."""
        target: Any = self.bind or self.fn
        while True:
            inner = getattr(target, "__wrapped__", None)
            if inner is None and isinstance(target, functools.partial):
                inner = target.func
            if inner is None:
                return target
            target = inner

    @property
    def qualname(self) -> str:
        """Where the kernel's code lives, "package.module.function"."""
        return qualname(self.code)

    def __repr__(self) -> str:
        extra = f" [{self.label}]" if self.label else ""
        return f"<Kernel {self.op}{extra} {self.qualname}>"


def qualname(function: Any) -> str:
    """Where a function's code lives, "package.module.function"."""
    target = getattr(function, "func", function)  # functools.partial
    name = getattr(target, "__qualname__", None) or getattr(target, "__name__", repr(target))
    module = getattr(target, "__module__", None)
    return f"{module}.{name}" if module else str(name)


def _dtype_set(op: str, attr: str, value: Any) -> frozenset[DType]:
    if isinstance(value, DType):
        value = (value,)
    try:
        found = frozenset(value)
    except TypeError:
        found = frozenset((None,))
    if not found or not all(isinstance(t, DType) for t in found):
        raise TypeError(f"Kernel for {op}: {attr}= must be a set of DType, got {value!r}")
    return found


def _names(op: str, what: str, value: Any) -> frozenset[str]:
    try:
        names = frozenset((value,) if isinstance(value, str) else value)
    except TypeError:
        names = frozenset((None,))
    if not all(isinstance(n, str) for n in names):
        raise TypeError(f"Kernel for {op}: {what} must hold argument names, got {value!r}")
    return names


_FIELDS: Final = frozenset(f.name for f in fields(Kernel)) - {"op", "bind", "fn", "dtypes"}


def split_fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """Decorator keywords as `Kernel` fields: what is no field constrains the attribute so named."""
    known = {k: v for k, v in options.items() if k in _FIELDS}
    known["dtypes"] = {k: v for k, v in options.items() if k not in _FIELDS}
    return known


class Kernels(Protocol):
    """Where a device gets kernels from: a table, or what stands for one that is not loaded yet."""

    def ops(self) -> list[str]:
        """The op types that may have a kernel here, sorted."""

    def for_op(self, op: str) -> tuple[Kernel, ...]:
        """The kernels for one op type, in order; the same records each time."""


class KernelTable:
    """The kernels of one family on one backend, in the order in which they were added."""

    def __init__(self, kernels: Iterable[Kernel] = ()) -> None:
        self._kernels: list[Kernel] = []
        for kernel in kernels:
            self.add(kernel)

    def add(self, kernel: Kernel) -> Kernel:
        """Appends one record and returns it; TypeError for anything else."""
        if not isinstance(kernel, Kernel):
            raise TypeError(f"KernelTable.add takes a Kernel, got {kernel!r}")
        self._kernels.append(kernel)
        return kernel

    def kernel(self, *ops: str, **options: Any) -> Callable[[_F], _F]:
        """Decorator for a plain function `fn(ctx, *inputs)` that computes the given ops.

        Keywords are `Kernel` fields; any other keyword constrains the type attribute of that name:
        `@table.kernel("Sort", T=FLOATS | INTS, host_inputs=("k",))`.
        """
        return self._decorator(ops, "fn", options)

    def binder(self, *ops: str, **options: Any) -> Callable[[_F], _F]:
        """Decorator for a binder `bind(sig)`, called once per prepared program; see `kernel`."""
        return self._decorator(ops, "bind", options)

    def _decorator(
        self, ops: tuple[str, ...], role: str, options: Mapping[str, Any]
    ) -> Callable[[_F], _F]:
        if not ops:
            raise TypeError("name at least one op type")
        record = split_fields(options)

        def attach(function: _F) -> _F:
            for op in ops:
                self.add(Kernel(**{"op": op, role: function, **record}))
            return function

        return attach

    def for_op(self, op: str) -> tuple[Kernel, ...]:
        """The table's kernels for one op type."""
        return tuple(k for k in self._kernels if k.op == op)

    def ops(self) -> list[str]:
        """The op types that have a kernel here, sorted."""
        return sorted({k.op for k in self._kernels})

    def __iter__(self) -> Iterator[Kernel]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def __repr__(self) -> str:
        return f"<KernelTable of {len(self._kernels)} kernels>"
