"""Place: a device and a kernel for every node, with the reasons on record."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any

from opdock import errors
from opdock.codes import coded
from opdock.compiler.ir.block import FEED, Block, Node, Value
from opdock.compiler.ir.state import cell_inputs, is_state
from opdock.compiler.ir.together import Together
from opdock.compiler.place.alike import Choices
from opdock.compiler.place.experience import Experience
from opdock.compiler.place.ladder import Choice, climb, decompose, expand
from opdock.compiler.place.target import Target, parsed
from opdock.dtypes import DType
from opdock.graph.nodes.devicespec import DeviceSpec
from opdock.graph.nodes.traits import Control
from opdock.kernels.select.selection import Rejection
from opdock.late import record
from opdock.nearest import near

_Offers = dict[str, tuple[Sequence[Target], bool]]  # for each request what `candidates` answers
PlaceHook = Callable[[Sequence[Node], Sequence[Target], "Placer"], "tuple[Target, str] | None"]


@record(slots=True)
class Placer:
    """What placement needs to know of the session.

    Attributes:
        targets: the session's devices, most preferred first.
        soft: `allow_soft_placement`.
        resources: handed to `when` and `bind` through the signature.
        experience: which kernels gave up and which devices were lost.
        unavailable: for a device type that no device has, why (a plugin's reason), or None.
        hook: the device that a plugin chooses for a group of nodes, and who chose it; or None.
    """

    targets: Sequence[Target]
    soft: bool = False
    resources: Any = None
    experience: Experience = field(default_factory=Experience)
    unavailable: Callable[[str], str | None] = lambda _: None
    hook: PlaceHook | None = None

    def climb(self, node: Node, target: Target) -> tuple[Choice | None, list[Rejection]]:
        """How a device would run a node, and why not otherwise."""
        return climb(node, target, self.resources, self.experience)

    def decompose(self, node: Node, target: Target) -> tuple[Choice | None, str]:
        """How a device would run what a node's op decomposes into, and why it would not."""
        return decompose(node, target, self.resources, self.experience)

    def serves(self, new: Node, old: Node) -> bool:
        """Whether the device that would compute `old` computes `new` in its place, too."""
        try:
            candidates, _ = self.candidates(old, old.requested)
        except errors.OpError:
            return True  # placement tells the user
        for target in candidates:
            if self.climb(old, target)[0] is not None:
                return self.climb(new, target)[0] is not None
        return True

    def home(self, node: Node) -> Target | None:
        """The device that holds the value of a variable, by its node or a body's argument."""
        if node.op == FEED:
            given: Target | None = node.attrs.get("home")
            return given
        if self.resources is None or not node.traits.holds:
            return None
        name = node.attrs.get("shared_name") or node.name
        cell = self.resources.get("variable", node.attrs.get("container", ""), name)
        if cell is None or not cell.initialized:
            return None
        return next((t for t in self.targets if t.name == cell.home), None)

    # ------------------------------------------------------------ candidates
    def candidates(self, node: Node, requested: str) -> tuple[list[Target], bool]:
        """The devices that satisfy `requested`, and whether the request had to be softened.

        Raises:
            InvalidArgumentError: no device satisfies it and soft placement does not help.
            UnavailableError: the device was lost, and soft placement is off.
        """
        if not requested:
            return [t for t in self.targets if t.automatic and self._alive(t)], False
        spec = parsed(requested)
        # Who names a job alone asks for no kind of device.
        asked = bool(spec.device_type)
        found = [t for t in self.targets if t.matches(spec) and (asked or t.automatic)]
        alive = [t for t in found if self._alive(t)]
        if alive:
            return alive, False
        if found and not self.soft:
            raise errors.UnavailableError(
                None, node.origin,
                coded(
                    "OPD-PLACE-003",
                    f"Cannot assign a device for operation {node.name}: it was explicitly assigned "
                    f"to {requested}, but {found[0].name} was lost: "
                    f"{self.experience.lost[found[0].name]}{_line(node)}",
                ),
            )  # fmt: skip
        job_only = DeviceSpec(job=spec.job, replica=spec.replica, task=spec.task)
        if not self.soft or not any(t.matches(job_only) for t in self.targets):
            raise errors.InvalidArgumentError(
                None, node.origin, self._unknown_device(node, requested, spec)
            )
        same_type = [
            t for t in self.targets
            if spec.device_type and t.matches(DeviceSpec(device_type=spec.device_type))
            and self._alive(t)
        ]  # fmt: skip
        return same_type + [t for t in self.downwards() if t not in same_type], True

    def downwards(self) -> list[Target]:
        """Soft placement's order: by priority down to the host."""
        alive = [t for t in self.targets if t.automatic and self._alive(t)]
        return sorted(alive, key=lambda t: -t.priority)

    def _alive(self, target: Target) -> bool:
        return target.name not in self.experience.lost

    def _unknown_device(self, node: Node, requested: str, spec: DeviceSpec) -> str:
        available = ", ".join(t.name for t in self.targets)
        text = (
            f"Cannot assign a device for operation {node.name}: {{{{node {node.name}}}}} was "
            f"explicitly assigned to {requested} but available devices are [ {available} ]. Make "
            "sure the device specification refers to a valid device."
        )
        why = self.unavailable(spec.device_type) if spec.device_type else None
        if why:
            text += f" No {spec.device_type} device: {why}."
        if spec.device_type:
            own = {parsed(t.name).device_type or "" for t in self.targets}
            text += near(spec.device_type, own - {spec.device_type})
        return coded("OPD-PLACE-001", text + _line(node))


def place(block: Block, placer: Placer) -> None:
    """Assigns `target`, `kernel` and `how` to every node; decompositions are expanded in place.

    Raises:
        InvalidArgumentError: a node has no kernel on any device that it may use; the message
            holds the table of rejections and the user's line.
    """
    offers: _Offers = {}
    choices = Choices(placer.resources, placer.experience)
    together = colocated(block)
    joined = groups(together, [n for n in block.nodes if n in together])
    for node in block.nodes:
        if node not in together:
            if not _place_alone(node, placer, offers, choices):
                _place_group([node], placer, offers, choices)
        elif members := joined.pop(together.root(node), None):
            _place_group(members, placer, offers, choices)
    expand_all(block)


# ---------------------------------------------------------------- colocation
def colocated(block: Block) -> Together[Node]:
    """Nodes that must share a device: `_class` attributes, and users of one variable.

    Those that may be anywhere are not in it.
    """
    together = Together[Node]()
    by_name: dict[str, Node] = {}
    here = object()
    for node in block.nodes:
        by_name.setdefault(node.name, node)
        node.mark = here
    for node in block.nodes:
        for group in node.attrs.get("_class") or ():
            if not isinstance(group, str) or not group.startswith("loc:@"):
                continue  # says something else, to someone else
            name = group.removeprefix("loc:@")
            if name in by_name:
                together.join(node, by_name[name])
            else:
                # The named node was pruned; those that follow it still belong together.
                by_name[name] = node
        if node.touches and node.traits.control is Control.NONE:
            for index in cell_inputs(node):
                holder = node.inputs[index].node
                if is_state(node.inputs[index]) and holder.mark is here:
                    together.join(node, holder)
    return together


def groups(together: Together[Node], nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """The nodes that belong together, by one of them."""
    found: dict[Node, list[Node]] = {}
    for node in nodes:
        found.setdefault(together.root(node), []).append(node)
    return found


def requested_by(members: list[Node]) -> tuple[str, Node]:
    """The merged request of a group. Conflicting requests: the state holder's wins, as it owns."""
    if not any(n.requested for n in members):
        return "", members[0]
    merged = DeviceSpec()
    asking = members[0]
    ordered = sorted(members, key=lambda n: (not n.traits.holds, n.id))
    for node in reversed(ordered):
        if node.requested:
            asked = parsed(node.requested)
            if asked.job is not None and asked.job != merged.job:
                merged.replica = merged.task = None  # those of another job
            merged.merge_from(asked)
            asking = node
    return merged.to_string(), asking


def _offered(
    asking: Node, requested: str, placer: Placer, offers: _Offers
) -> tuple[Sequence[Target], bool]:
    """What `candidates` answers, asked once for each request."""
    if requested not in offers:
        offers[requested] = placer.candidates(asking, requested)
    return offers[requested]


# ---------------------------------------------------------------- one node
def _place_alone(node: Node, placer: Placer, offers: _Offers, known: Choices) -> bool:
    """Places a node that is with no other where most end: on the first device that is offered.

    Returns:
        Whether that device takes it; nothing is changed if it does not.
    """
    if node.traits.holds or "home" in node.attrs or placer.hook is not None:
        return False
    requested = _own(node)
    candidates, softened = _offered(node, requested, placer, offers)
    if not candidates or not _holds(candidates[0], node):
        return False
    target = candidates[0]
    node.target = target
    if node.builtin:
        _take_builtin(node, placer)
    else:
        choice, rejections = known.climb(node, target)
        if choice is None:
            node.target = None
            return False
        node.rejections = tuple(rejections)
        take(node, choice)
    node.why = _why(node, requested, softened, target, target)
    return True


# ---------------------------------------------------------------- one group
def _place_group(
    members: list[Node], placer: Placer, offers: _Offers, known: Choices
) -> None:  # fmt: skip
    requested, asking = requested_by(members)
    candidates, softened = _offered(asking, requested, placer, offers)
    asked = candidates
    homes = {n: t for n in members if (t := placer.home(n)) is not None}
    chosen = None
    if homes:
        # The values are there already; what cannot work on them there gets copies.
        candidates, softened = [next(iter(homes.values()))], False
    elif placer.hook is not None and not requested and asking.op != FEED:
        chosen = placer.hook(members, list(_that_hold(members, candidates)), placer)
        if chosen is not None:
            candidates = [chosen[0]]
    able = _that_hold(members, candidates)
    preferred = next(able, None)
    if preferred is None and (placer.soft or not requested):
        able = _that_hold(members, placer.downwards())
        preferred = next(able, None)
        softened = softened or preferred is not None
    offered = candidates if preferred is None else itertools.chain((preferred,), able)
    working = [n for n in members if not n.builtin]
    lost: dict[Node, list[Rejection]] = {n: [] for n in working}
    best: tuple[int, Target, dict[Node, Choice]] | None = None
    for target in offered:
        choices = _choose(working, target, known, lost)
        missing = len(working) - len(choices)
        if missing == 0:
            best = (0, target, choices)
            break
        if best is None or missing < best[0]:
            best = (missing, target, choices)
    if best is None:
        raise errors.InvalidArgumentError(
            None, asking.origin, f"There is no device for operation {asking.name}."
        )
    missing, target, choices = best
    for node in members:
        # Programs group variables differently, so the values of a group may be apart.
        node.target = homes.get(node, target)
        node.rejections = tuple(lost.get(node, ()))
        if chosen is not None:
            node.why = f"chosen by plugin '{chosen[1]}'"
        elif homes and node.target not in asked:
            node.why = _why_at_home(node, placer, offers)
        else:
            node.why = _why(node, requested, softened, target, preferred or candidates[0])
        if node in choices:
            take(node, choices[node])
        elif node.builtin:
            _take_builtin(node, placer)
        else:
            _fall_back(node, target, requested, placer, lost)


def _that_hold(members: list[Node], targets: Iterable[Target]) -> Iterator[Target]:
    """The devices that can store what all members make.

    One at a time: the answer opens the device, and those after the one that is taken stay closed.
    """
    return (t for t in targets if all(_holds(t, n) for n in members))


def _holds(target: Target, node: Node) -> bool:
    """Whether the device can store what a structural node makes, keeps or passes on."""
    if not node.builtin or node.traits.on_host or not node.out_dtypes:
        return True
    held = [d.base_dtype for d in node.out_dtypes]
    if node.traits.holds and "dtype" in node.attrs:
        held = [node.attrs["dtype"].base_dtype]
    return _stores(target, held)


def _stores(target: Target, types: Iterable[DType]) -> bool:
    """Whether the device has arrays of all these types."""
    try:
        if target.is_host:
            return True
        supported = target.device.dtypes
    except errors.OpError:
        return False
    return all(
        d._is_handle or (not d.np.hasobject and (supported is None or d in supported))
        for d in types
    )


def _choose(
    working: list[Node], target: Target, known: Choices, lost: dict[Node, list[Rejection]]
) -> dict[Node, Choice]:
    choices: dict[Node, Choice] = {}
    for node in working:
        choice, rejections = known.climb(node, target)
        lost[node] += rejections
        if choice is not None:
            choices[node] = choice
    return choices


def _take_builtin(node: Node, placer: Placer) -> None:
    """What the runtime does itself is done on the host, where its results are, if it takes what the
    device cannot store: the shape of a string, say."""
    node.how = "feed" if node.op == FEED else "builtin"
    assert node.target is not None
    if node.traits.on_host and not _stores(node.target, (v.dtype.base_dtype for v in node.inputs)):
        node.target = next((t for t in placer.targets if t.is_host), node.target)


def take(node: Node, choice: Choice) -> None:
    """Has a node computed as the device chose."""
    node.how, node.kernel = choice.kind, choice.kernel
    if choice.kind == "decomposed":
        # Held until `expand_all`: expanding changes the list that placement walks.
        node.attrs = {**node.attrs, "__choice": choice}


def _why(node: Node, requested: str, softened: bool, target: Target, preferred: Target) -> str:
    if softened:
        return f"asked for {requested}, which cannot be had; moved by soft placement"
    if requested:
        own = _own(node)
        if own == requested:
            return f"asked for {requested}" + (f", by {node.asked_by}" if node.asked_by else "")
        together = f"placed with its group on {requested}"
        return f"asked for {own}; {together}" if own else together
    if target is preferred:
        return "the preferred device"
    return f"no kernel on {preferred.name}"


def _why_at_home(node: Node, placer: Placer, offers: _Offers) -> str:
    """The reason where the values of a group's variables are, but the group is not asked to be."""
    there = "placed with the variables of its group, which have their values there"
    own = _own(node)
    if not own:
        return there
    candidates, softened = _offered(node, own, placer, offers)
    if node.target is not None and node.target in candidates:
        return _why(node, own, softened, node.target, node.target)
    return f"asked for {own}; {there}"


def _own(node: Node) -> str:
    """What a node itself asks for, which its group may not."""
    return parsed(node.requested).to_string() if node.requested else ""


def _fall_back(
    node: Node, home: Target, requested: str, placer: Placer, lost: dict[Node, list[Rejection]]
) -> None:
    """The ladder's last rung: another device, with copies.

    Without soft placement it is open only to nodes that were not asked to be on a device.
    """
    tried = {r.device for r in lost[node]}
    if placer.soft or not requested:
        for target in placer.downwards():
            if target.name in tried:
                continue
            choice, rejections = placer.climb(node, target)
            lost[node] += rejections
            if choice is not None:
                node.target = target
                node.rejections = lost[node]
                node.why = f"no kernel on {home.name}; moved by soft placement"
                take(node, choice)
                return
    raise errors.InvalidArgumentError(
        None, node.origin, coded("OPD-PLACE-002", _no_kernel(node, home, requested, lost[node]))
    )


def _no_kernel(node: Node, home: Target, requested: str, lost: list[Rejection]) -> str:
    head = f"Cannot assign a device for operation {node.name}: "
    if requested:
        head += (
            f"Could not satisfy explicit device specification '{requested}' because no supported "
            f"kernel for {home.device_type} devices is available."
        )
    else:
        head += f"No device has a kernel for op {node.op}."
    types = ", ".join(
        f"{v.dtype.name}{list(v.shape) if v.shape is not None else '?'}" for v in node.inputs
    )
    made = ", ".join(d.name for d in node.out_dtypes)
    table = "\n".join(f"  {r}" for r in lost) or "  (no kernel is registered)"
    return f"{head}\nOp {node.op}({types}) to ({made}) was rejected by:\n{table}{_line(node)}"


def _line(node: Node) -> str:
    line = node.origin.user_line if node.origin is not None else ""
    made = f", made by {node.made_by}" if node.made_by else ""
    return f"\n\t [[node {node.name} (defined at {line}){made}]]" if line else made


def expand_all(block: Block) -> None:
    """Puts decompositions in the place of the nodes that they were taken for."""
    if not any("__choice" in n.attrs for n in block.nodes):
        return
    mapping: dict[Value, Value] = {}
    controls: dict[Node, list[Node]] = {}
    fresh: list[Node] = []
    for node in block.nodes:
        node.inputs = [mapping.get(v, v) for v in node.inputs]
        choice = node.attrs.pop("__choice", None)
        if choice is None:
            fresh.append(node)
            continue
        parts, outputs = expand(block, node, choice)
        fresh += parts
        mapping.update(outputs)
        controls[node] = [p for p in parts if p.stateful] or parts[-1:]
        block.folded.append(
            (node.name, node.op, f"decomposed into {len(parts)} ops on {node.target}")
        )
    block.nodes = fresh
    block.replace(mapping, controls)
