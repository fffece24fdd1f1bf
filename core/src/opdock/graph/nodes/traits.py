"""Traits: what compiler and runtime know of an op type, declared where the op is defined.

No pass knows an op by its name, so an op of a plugin is treated like any other. What is not
declared is assumed to be as bad as it can be for an op with that signature: a stateful op has an
effect, an argument that is a reference or a handle is written, a result may depend on values in
ways that fail.
"""

from __future__ import annotations

import enum

from opdock.fields import check_fields
from opdock.late import record


class Control(enum.Enum):
    """How an op decides what runs: functions in its attributes, or nodes after it."""

    NONE = enum.auto()
    COND = enum.auto()
    """One of two branches, chosen by the first input."""
    LOOP = enum.auto()
    """A body, as long as a condition holds."""
    SWITCH = enum.auto()
    """What comes after it runs if it hands on a value: TF 1's first control flow. No program has
    such a node, for `prune` reads all that depends on it into functions."""
    TURN = enum.auto()
    """The same, and what takes its value has it in the next turn of a loop."""
    CALL = enum.auto()
    """A function, whose nodes `calls` puts in the place of the call before any pass looks."""

    @property
    def functions(self) -> tuple[str, ...]:
        """The attributes with the functions that a program runs for such a node."""
        return _FUNCTIONS.get(self, ())


_FUNCTIONS = {
    Control.COND: ("then_branch", "else_branch"),
    Control.LOOP: ("cond", "body"),
}


class Cost(enum.Enum):
    """How the work of an op grows."""

    BYTES = enum.auto()
    """With the bytes that it reads and writes."""
    PRODUCT = enum.auto()
    """As a product of matrices: each element of one factor meets many of the other."""
    WAIT = enum.auto()
    """It waits for something else than a processor: a file, a user's function, another step."""


class Fails(enum.Enum):
    """When a kernel of the op may raise."""

    NEVER = enum.auto()
    BY_SHAPE = enum.auto()
    """Where shapes do not fit, which shape inference finds out if it knows them."""
    BY_VALUE = enum.auto()


class Moves(enum.Enum):
    """What an op does with one element of its first argument, an array or a list."""

    READ = enum.auto()
    """(array, index, flow) -> element."""
    WRITE = enum.auto()
    """(array, index, element, flow) -> flow."""
    GRADIENT = enum.auto()
    """(array, flow) -> (the array of its gradients that the attribute `source` names, flow)."""
    PUSH = enum.auto()
    """(list, element) -> list."""
    POP = enum.auto()
    """(list, shape) -> (list, element)."""


# ---------------------------------------------------------------- layout
class _Checked:
    """A record of whoever writes an op: each field is of the type that it is annotated with."""

    __slots__ = ()

    def __post_init__(self) -> None:
        check_fields(self, f"{type(self).__name__}.")


@record(frozen=True, slots=True)
class Formatted(_Checked):
    """An op with a `data_format`: `NHWC` has the channels last, `NCHW` first.

    Attributes:
        data: the inputs that have the format.
        vectors: the inputs that have an entry for each dimension.
        results: the outputs that have the format.
        leads: whether the op is worth a change of format of its own; others follow their inputs.
    """

    data: tuple[int, ...]
    vectors: tuple[int, ...] = ()
    results: tuple[int, ...] = (0,)
    leads: bool = True


@record(frozen=True, slots=True)
class Elementwise(_Checked):
    """Each element of a result depends on those at its place alone.

    Attributes:
        scalar_or_full: the inputs for which broadcasting has rules of its own, so that anything
            between a scalar and the full rank cannot be turned.
    """

    scalar_or_full: tuple[int, ...] = ()


@record(frozen=True, slots=True)
class Reduction(_Checked):
    """The axes in an input go, or stay with size one if the attribute `keep_dims` is set."""

    axes: int = 1


@record(frozen=True, slots=True)
class DropsAxes(_Checked):
    """Axes of size one go: those in an attribute, or all if it is empty."""

    attr: str


@record(frozen=True, slots=True)
class PerAxis(_Checked):
    """Inputs hold a row for each dimension of the first input."""

    vectors: tuple[int, ...]


@record(frozen=True, slots=True)
class AlongAxis(_Checked):
    """The op works along the one axis in an input (-1: the last input)."""

    axis: int


Layout = Formatted | Elementwise | Reduction | DropsAxes | PerAxis | AlongAxis


# ---------------------------------------------------------------- traits
@record(frozen=True, kw_only=True, slots=True)
class Traits(_Checked):
    """The traits of an op type.

    Attributes:
        holds: the op is a variable, by reference or by handle: the runtime keeps its value for it
            (so it is `builtin`), by its attributes `shape` and `dtype`, and kernels get a `Cell`. A
            kernel that makes another resource needs nothing of this.
        local: the state that it names, or works on, ends with the step, and whoever traces a whole
            program knows how to tell it in arrays.
        reads: arguments, references or handles, whose state is left as it is. All others of these
            types are written.
        effect: whether a step without the op is another step, beyond what it writes: such ops
            keep their order. By default a stateful op has one, unless it is random, holds state
            or only reads it.
        random: results come from a random stream; equal nodes give unequal results.
        foreign: it runs code of the user's, whose errors are failures and no reason to try another
            kernel.
        checks: it hands its first input on, or fails: its error names what that is the result of.
        promised: the shapes of its results are what its attributes say, whatever they are.
        keeps: arguments and results whose memory may be held when the step is over; None for all of
            them, if the op is stateful. Only for ops without kernels: a kernel's record tells.
        repeats: the input whose elements, in another shape or several times, make up the result.
        reshapes: the result holds each element of that input once, in the same order.
        forwards: each output is the input in the same place, unchanged.
        own: of an update that does nothing but change variables, the arguments of which each
            variable has its own; updates that are alike in all others can be done in one call.
        validates: the attribute that, where it is false, lets an update give its first input, a
            variable, another shape.
        files: its first input names files, of which it makes something.
        captures: arguments that are the last parameters of a function of the op's, each with the
            attribute that names the function: where that takes a reference, so does the op.
        settled: the state that it reads is what an initializer made of it, and stays so.
        fold, merge, drop: whether a node with constant inputs may become a constant, equal ones
            become one, and one whose results nobody uses be left out, as far as effects allow it.
        fails: when a kernel may raise; an op that fails by value is computed even if only waited
            for.
        commutes: the order of its two inputs does not matter, although TF does not flag it.
        blocks: it may wait for what another step does. Whatever does not need it runs before.
        takes: it does nothing but take the next of what a handle, its first input, names, the shape
            of which may be known only then.
        placeholder: it stands for a value that the caller supplies, and computes nothing.
        builtin: the runtime carries it out on every device; no backend brings a kernel for it.
        on_host: its results are numbers in host memory, wherever it runs.
        pieces: the op types that together do the same a result at a time: the first takes the
            inputs and attributes of this one, finds out whether all results can be had, and gives
            a variant; the second makes of that the result of its attribute `index`.
        gathers: the op types that together do the same with one input of its last argument, a list,
            at a time: the first takes the inputs before those and the attributes, and gives a
            variant; the second takes that and the input of its attribute `index`, and hands the
            variant on; the third takes it, and what the op does is done.
        control: how it decides what runs.
        moves: what it does with one element of an array or a list, if that is all it does.
        cost: how its work grows.
        layout: what becomes of it when the dimensions of its inputs come in another order; None
            if it has to see them as they were. Ops with a scalar expression are elementwise.
    """

    holds: bool = False
    local: bool = False
    reads: tuple[str, ...] = ()
    effect: bool | None = None
    random: bool = False
    foreign: bool = False
    checks: bool = False
    promised: bool = False
    keeps: tuple[str, ...] | None = None
    validates: str = ""
    files: bool = False
    captures: tuple[tuple[str, str], ...] = ()
    repeats: int | None = None
    reshapes: bool = False
    forwards: bool = False
    own: tuple[str, ...] = ()
    settled: bool = False
    fold: bool = True
    merge: bool = True
    drop: bool = True
    fails: Fails = Fails.BY_VALUE
    commutes: bool = False
    blocks: bool = False
    takes: bool = False
    placeholder: bool = False
    builtin: bool = False
    on_host: bool = False
    pieces: tuple[str, str] | None = None
    gathers: tuple[str, str, str] | None = None
    control: Control = Control.NONE
    moves: Moves | None = None
    cost: Cost = Cost.BYTES
    layout: Layout | None = None


PLAIN = Traits()
"""Of an op that declares nothing."""
