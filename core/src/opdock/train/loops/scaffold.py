"""`tf.train.Scaffold`: what a program needs to start, found in the graph's collections or made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opdock.api import logging
from opdock.graph.nodes.collections import GraphKeys, add_to_collection, get_collection
from opdock.graph.nodes.graph import get_default_graph
from opdock.graph.variables.variable_lists import (
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
    report_uninitialized_variables,
)
from opdock.lookup.initialization import tables_initializer
from opdock.ops.composed.resources import (
    initialize_resources,
    local_resources,
    report_uninitialized_resources,
    shared_resources,
)
from opdock.ops.control import group
from opdock.ops.joining import concat
from opdock.ops.summary import merge_all
from opdock.train.saver import Saver
from opdock.train.tracking.object_graph import ObjectGraphView
from opdock.train.tracking.util import Checkpoint

__all__ = ["Scaffold", "saver_or_default"]


class Scaffold:
    """The operations and the saver with which a session starts.

    What is not given is looked up in the graph's collections by `finalize`, which makes what is not
    there either.

    Args:
        init_op: initializes the variables.
        init_feed_dict: what to feed to it.
        init_fn: called with the scaffold and the session after `init_op`.
        ready_op: a string tensor, empty when all is initialized, else the names of what is not.
        ready_for_local_init_op: a string tensor, empty when `local_init_op` may run.
        local_init_op: initializes what each process has of its own.
        summary_op: a serialized Summary as a string tensor.
        saver: saves and restores the variables; of a `tf.train.Checkpoint` one is made.
        copy_from_scaffold: has what is not given here.

    Raises:
        TypeError: `copy_from_scaffold` is no scaffold.
    """

    def __init__(
        self,
        init_op: Any = None,
        init_feed_dict: Any = None,
        init_fn: Callable[[Any, Any], Any] | None = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        local_init_op: Any = None,
        summary_op: Any = None,
        saver: Any = None,
        copy_from_scaffold: Any = None,
    ) -> None:
        if copy_from_scaffold is not None and not isinstance(copy_from_scaffold, Scaffold):
            raise TypeError("copy_from_scaffold is not a Scaffold instance.")

        def either(given: Any, attribute: str) -> Any:
            return getattr(copy_from_scaffold, attribute, None) if given is None else given

        self._user_init_fn = either(init_fn, "_user_init_fn")
        self._init_op = either(init_op, "init_op")
        self._init_feed_dict = either(init_feed_dict, "init_feed_dict")
        self._ready_op = either(ready_op, "ready_op")
        self._ready_for_local_init_op = either(ready_for_local_init_op, "ready_for_local_init_op")
        self._local_init_op = either(local_init_op, "local_init_op")
        self._summary_op = either(summary_op, "summary_op")
        self._saver = either(saver, "saver")

    def finalize(self) -> Scaffold:
        """Finds or makes what was not given, and makes the graph final.

        Raises:
            RuntimeError: a collection has several, of which one is needed.
        """
        keys, find = GraphKeys, self.get_or_default
        if self._init_op is None:
            self._init_op = find("init_op", keys.INIT_OP, _default_init_op)
        if self._ready_op is None:
            self._ready_op = find("ready_op", keys.READY_OP, _default_ready_op)
        if self._ready_for_local_init_op is None:
            self._ready_for_local_init_op = find(
                "ready_for_local_init_op", keys.READY_FOR_LOCAL_INIT_OP,
                _default_ready_for_local_init_op,
            )  # fmt: skip
        if self._local_init_op is None:
            self._local_init_op = find(
                "local_init_op", keys.LOCAL_INIT_OP, self.default_local_init_op
            )
        if self._summary_op is None:
            self._summary_op = find("summary_op", keys.SUMMARY_OP, merge_all)
        if self._saver is None:
            self._saver = saver_or_default()
        elif isinstance(self._saver, Checkpoint):
            objects = ObjectGraphView(self._saver).frozen_saveable_objects()
            self._saver = Saver(objects, sharded=True)
        self._saver.build()
        get_default_graph().finalize()
        logging.info("Graph was finalized.")
        return self

    @property
    def init_fn(self) -> Callable[[Any], Any] | None:
        """What to call with the session after `init_op`, or None."""
        given = self._user_init_fn
        return None if given is None else lambda sess: given(self, sess)

    @property
    def init_op(self) -> Any:
        """What initializes the variables."""
        return self._init_op

    @property
    def ready_op(self) -> Any:
        """What says whether all is initialized."""
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        """What says whether `local_init_op` may run."""
        return self._ready_for_local_init_op

    @property
    def local_init_op(self) -> Any:
        """What initializes the things that each process has of its own."""
        return self._local_init_op

    @property
    def summary_op(self) -> Any:
        """The summaries, or None."""
        return self._summary_op

    @property
    def saver(self) -> Any:
        """What saves and restores the variables."""
        return self._saver

    @property
    def init_feed_dict(self) -> Any:
        """What to feed to `init_op`."""
        return self._init_feed_dict

    @staticmethod
    def get_or_default(
        arg_name: str, collection_key: str, default_constructor: Callable[[], Any]
    ) -> Any:
        """What a collection has, or what `default_constructor` makes, which is put there.

        Args:
            arg_name: the argument of `Scaffold`, for the message.
            collection_key: the collection.
            default_constructor: called if the collection is empty.

        Raises:
            RuntimeError: the collection has several.
        """
        found = get_collection(collection_key)
        if len(found) > 1:
            raise RuntimeError(
                f'More than one item in the collection "{collection_key}". Please indicate which '
                "one to use by passing it to the tf.Scaffold constructor as:  "
                f"tf.Scaffold({arg_name}=item to use)"
            )
        if found:
            return found[0]
        made = default_constructor()
        if made is not None:
            add_to_collection(collection_key, made)
        return made

    @staticmethod
    def default_local_init_op() -> Any:
        """Initializes local variables, tables and local resources."""
        return group(
            local_variables_initializer(),
            tables_initializer(),
            initialize_resources(local_resources()),
        )


def _default_init_op() -> Any:
    return group(global_variables_initializer(), initialize_resources(shared_resources()))


def _default_ready_op() -> Any:
    return concat([report_uninitialized_variables(), report_uninitialized_resources()], 0)


def _default_ready_for_local_init_op() -> Any:
    variables = report_uninitialized_variables(global_variables())
    return concat([variables, report_uninitialized_resources(shared_resources())], 0)


def saver_or_default() -> Any:
    """The saver in the collection SAVERS, or one of all variables, which is put there.

    Raises:
        RuntimeError: there are several.
    """
    return Scaffold.get_or_default(
        "saver", GraphKeys.SAVERS, lambda: Saver(sharded=True, allow_empty=True)
    )
