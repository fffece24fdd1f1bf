"""`Session.make_callable`: a step with its feeds in a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opdock import errors
from opdock.graph.nodes.operation import Tensor
from opdock.runtime.fetch import feed_array, feed_items

if TYPE_CHECKING:
    from opdock.runtime.cache.programs import Call
    from opdock.runtime.cache.variants import Key
    from opdock.runtime.session import BaseSession


def make_callable(
    session: BaseSession, fetches: Any, feed_list: Sequence[Any], any_shape: bool = False
) -> Callable[..., Any]:
    """A function of values for `feed_list` that runs `fetches`.

    Arrays of the right types go to the step as they are; all else goes through `Session.run`.

    Args:
        session: the session.
        fetches: as for `Session.run`.
        feed_list: what is fed.
        any_shape: whether values may be of other shapes than the graph says.
    """
    graph, cache, step = session._graph, session._cache, session._step
    feeds = tuple([graph.as_graph_element(f, allow_operation=False) for f in feed_list])
    wanted = [_plain_type(t) for t in feeds]
    count, array = len(feeds), np.ndarray
    if len(set(feeds)) < count:
        wanted = [None] * count
    alone, first = (feeds[0], wanted[0]) if feeds else (None, None)
    ready: Call | None = None

    def slow(args: tuple[Any, ...], options: Any, run_metadata: Any) -> Any:
        nonlocal ready
        found = cache.find(fetches)
        # As in TF: what is missing is not fed, and what is too much is not looked at.
        named = dict(zip(feeds, args, strict=False))
        if any_shape:
            result = as_given(named, options, run_metadata)
        else:
            result = session.run(fetches, named, options, run_metadata)
        # By now the feeds are known to be allowed, unless there was a change in between.
        if found is not None and found.version is cache.kept.version and None not in wanted:
            ready = found
        return result

    def as_given(named: dict[Tensor, Any], options: Any, run_metadata: Any) -> Any:
        values: list[Any] = []
        parts: list[Any] = []
        for tensor, value in feed_items(graph, named):
            values.append(feed_array(tensor, value, any_shape=True))
            parts += (tensor, getattr(values[-1], "shape", ()))
        key: Key = tuple(parts)
        prepared = cache.find(fetches) or session._prepare(fetches)
        session._entry(prepared, values, key, any_shape=True)
        return step(prepared, values, key, options, run_metadata)

    def call(*args: Any, options: Any = None, run_metadata: Any = None) -> Any:
        now = ready
        if now is None or now.version is not cache.kept.version or len(args) != count:
            return slow(args, options, run_metadata)
        key: Key
        if count == 1:
            value = args[0]
            if type(value) is not array or value.dtype is not first:
                return slow(args, options, run_metadata)
            key = (alone, value.shape)
        else:
            parts: list[Any] = []
            for tensor, dtype, value in zip(feeds, wanted, args):
                if type(value) is not array or value.dtype is not dtype:
                    return slow(args, options, run_metadata)
                parts += (tensor, value.shape)
            key = tuple(parts)
        if any_shape and key not in now.programs:
            return slow(args, options, run_metadata)
        return step(now, args, key, options, run_metadata)

    return call


def _plain_type(tensor: Tensor) -> np.dtype[Any] | None:
    """The type of arrays that can be fed as they are."""
    base = tensor._dtype.base_dtype
    plain = base.is_numpy_compatible and base.name != "string" and not base.is_quantized
    return base.np if plain else None


def callable_of_options(session: BaseSession, options: Any) -> Callable[..., Any]:
    """A function of arrays that runs what a `CallableOptions` names.

    Where it connects tensors, the values of the sources are computed first and then fed. As in TF,
    no shape is looked at before a kernel has to: Keras feeds targets of other ranks than it said.

    Args:
        session: the session.
        options: the `CallableOptions`.

    Returns:
        A function of a value for each feed, which gives a list of a value for each fetch.

    Raises:
        InvalidArgumentError: there is nothing to run; a tensor is fed twice, or fed and fetched.
        NotFoundError: a name is none of the graph's.
    """
    _check(session, options)
    connections = options.tensor_connection
    fed = [*options.feed, *(c.to_tensor for c in connections)]
    sources = [c.from_tensor for c in connections]
    step = make_callable(session, [list(options.fetch), list(options.target)], fed, True)
    before = make_callable(session, sources, list(options.feed), True)
    run_options = options.run_options if options.HasField("run_options") else None

    def call(*args: Any, run_metadata: Any = None) -> Any:
        if len(args) != len(options.feed):
            raise errors.InvalidArgumentError(
                None, None, f"Expected {len(options.feed)} feed tensors, but got {len(args)}"
            )
        connected = before(*args) if sources else ()
        return step(*args, *connected, options=run_options, run_metadata=run_metadata)[0]

    return call


def _check(session: BaseSession, options: Any) -> None:
    """What TF says of a `CallableOptions` before anything runs."""
    if not options.fetch and not options.target:
        raise errors.InvalidArgumentError(
            None, None, "Must specify at least one target to fetch or execute."
        )
    connected = options.tensor_connection
    for text, names in (
        ("FeedInputs: unable to find feed output {}", options.feed),
        ("FetchOutputs node {}: not found", options.fetch),
        ("PruneForTargets: Some target nodes not found: {}", options.target),
        ("FetchOutputs node {}: not found", [c.from_tensor for c in connected]),
        ("FeedInputs: unable to find feed output {}", [c.to_tensor for c in connected]),
    ):
        for name in names:
            try:
                session._graph.as_graph_element(name)
            except (KeyError, ValueError):
                raise errors.NotFoundError(None, None, text.format(name)) from None
    fed = [*options.feed, *(c.to_tensor for c in connected)]
    for i, name in enumerate(fed):
        if name in fed[:i]:
            raise errors.InvalidArgumentError(None, None, f'Endpoint "{name}" fed more than once.')
    for name in options.fetch:
        if name in fed:
            raise errors.InvalidArgumentError(None, None, f"{name} is both fed and fetched.")
