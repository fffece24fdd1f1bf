"""Numbers on which the graphs of several workers agree without talking: they count alike."""

from __future__ import annotations

from collections.abc import Sequence

from opdock.graph.nodes.devicespec import DeviceSpec
from opdock.graph.nodes.graph import get_default_graph

__all__ = ["CollectiveKeys"]


class CollectiveKeys:
    """Counts in the default graph: workers that build the same graph get the same numbers.

    Args:
        group_key_start: the first group.
        op_instance_key_start: the first op.
        variable_instance_key_start: the first variable.
    """

    def __init__(
        self, group_key_start: int = 1, op_instance_key_start: int = 100,
        variable_instance_key_start: int = 1_000_000,
    ) -> None:  # fmt: skip
        self._group, self._op = group_key_start, op_instance_key_start
        self._variable = variable_instance_key_start

    def get_group_key(self, devices: Sequence[str]) -> int:
        """The number of a group of devices, whatever their tasks."""
        specs = [DeviceSpec.from_string(name) for name in devices]
        group = ",".join(sorted(f"{s.device_type}:{s.device_index}" for s in specs))
        groups = get_default_graph()._scoped_state.setdefault("collective_groups", {})
        found: int = groups.setdefault(group, self._group + len(groups))
        return found

    def get_op_instance_key(self) -> int:
        """The number of a further op."""
        return self._next("collective_ops", self._op)

    def get_variable_instance_key(self) -> int:
        """The number of a further variable."""
        return self._next("collective_variables", self._variable)

    def _next(self, kind: str, start: int) -> int:
        state = get_default_graph()._scoped_state
        found: int = state.get(kind, start)
        state[kind] = found + 1
        return found
