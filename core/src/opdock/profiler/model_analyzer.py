"""`tf.profiler.profile` and `Profiler`: a graph's figures by scope, op type, inputs or line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from opdock import errors
from opdock.graph.nodes.graph import Graph, get_default_graph
from opdock.io import files
from opdock.profiler import trees
from opdock.profiler.advice import ALL_ADVICE, advice
from opdock.profiler.items import Item
from opdock.profiler.model import Model
from opdock.profiler.op_log import merge_default_with_oplog
from opdock.profiler.op_types import op_type_list
from opdock.profiler.operations import measured_shapes
from opdock.profiler.options import ProfileOptionBuilder
from opdock.profiler.pprof import write_pprof
from opdock.profiler.printing import meaning, op_type_lines, tree_lines
from opdock.profiler.results import as_message
from opdock.profiler.settings import Settings
from opdock.profiler.timelines import write_timelines

__all__ = ["ALL_ADVICE", "Profiler", "advise", "profile"]

_TREES: Final[dict[str, Callable[[Model], Item]]] = {
    "code": trees.code_tree,
    "graph": trees.graph_tree,
    "scope": trees.scope_tree,
}
_OUTPUT_OF: Final = {"pprof": "code", "timeline": "graph"}
_VIEWS: Final = ("code", "graph", "op", "scope")


class Profiler:
    """Figures of a graph, and of steps that were traced as it ran.

    Args:
        graph: the graph, the default graph when None.
        op_log: an OpLogProto with types of its nodes.
    """

    def __init__(self, graph: Graph | None = None, op_log: Any = None) -> None:
        self._graph = get_default_graph() if graph is None else graph
        self._model = Model()
        self._model.add_graph(self._graph, {})
        self._model.add_log(merge_default_with_oplog(self._graph, op_log))

    def add_step(self, step: int, run_meta: Any) -> None:
        """Adds what a traced step took.

        Args:
            step: a number by which options may ask for it; RunMetadata of one number are added up.
            run_meta: the RunMetadata of a step that ran with `trace_level=FULL_TRACE`.
        """
        self._model.add_graph(self._graph, measured_shapes(self._graph, run_meta))
        self._model.add_step(step, run_meta)
        self._model.add_log(merge_default_with_oplog(self._graph, run_meta=run_meta))

    @property
    def _coverage(self) -> float:
        return self._model.coverage

    def profile_python(self, options: Mapping[str, Any]) -> Any:
        """Figures by line of code, as a MultiGraphNodeProto; gradients stand with their lines."""
        return _shown(self._model, "code", options)

    def profile_operations(self, options: Mapping[str, Any]) -> Any:
        """Figures by op type, as a MultiGraphNodeProto in which each type is below the last."""
        return _shown(self._model, "op", options)

    def profile_name_scope(self, options: Mapping[str, Any]) -> Any:
        """Figures by name scope, as a GraphNodeProto."""
        return _shown(self._model, "scope", options)

    def profile_graph(self, options: Mapping[str, Any]) -> Any:
        """Figures by what nodes are made from, as a GraphNodeProto."""
        return _shown(self._model, "graph", options)

    def advise(self, options: Mapping[str, Any] | None = None) -> Any:
        """What the steps show at a glance, printed and as an AdviceProto.

        Args:
            options: the names of checkers, of which `ALL_ADVICE` has all, each with a dictionary.
        """
        return _advised(self._model, options)

    def serialize_to_string(self) -> bytes:
        """All that is known, as the bytes of a ProfileProto, which TF's tfprof reads."""
        serialized: bytes = self._model.as_proto().SerializeToString()
        return serialized

    def _write_profile(self, filename: str) -> None:
        files.write_file(files.as_path(filename), self.serialize_to_string())


def profile(
    graph: Graph | None = None,
    run_meta: Any = None,
    op_log: Any = None,
    cmd: str = "scope",
    options: Mapping[str, Any] | int | None = None,
) -> Any:
    """Figures of a graph, printed as the options want and returned.

    Args:
        graph: the graph, the default graph when None.
        run_meta: the RunMetadata of a traced step, for times, memory and shapes.
        op_log: an OpLogProto with types of nodes, which options may choose by.
        cmd: how they are put in order: by name "scope", by what nodes are made from ("graph"), by
            "op" type or by line of "code".
        options: a dictionary, as `ProfileOptionBuilder` makes it; the parameters of trainable
            variables when there is none.

    Returns:
        A GraphNodeProto for "scope" and "graph", a MultiGraphNodeProto for "op" and "code".

    Raises:
        InvalidArgumentError: there is no such view, output or step.
        UnimplementedError: the output is not one of this view.
    """
    if cmd not in _VIEWS:
        raise errors.InvalidArgumentError(None, None, f"unknown cmd: {cmd}")
    model = _model_of(graph, run_meta, op_log, add_trace=cmd == "code")
    return _shown(model, cmd, options or ProfileOptionBuilder.trainable_variables_parameter())


def _model_of(graph: Graph | None, run_meta: Any, op_log: Any, add_trace: bool) -> Model:
    graph = get_default_graph() if graph is None else graph
    model = Model()
    model.add_graph(graph, {} if run_meta is None else measured_shapes(graph, run_meta))
    if run_meta is not None and run_meta.HasField("step_stats"):
        model.add_step(0, run_meta)
    model.add_log(merge_default_with_oplog(graph, op_log, run_meta, add_trace=add_trace))
    return model


def _shown(model: Model, cmd: str, options: Any) -> Any:
    settings = Settings.of(options)
    if settings.step >= 0 and settings.step not in model.steps:
        raise errors.InvalidArgumentError(
            None, None, f"Step {settings.step} is not among the traced steps {sorted(model.steps)}"
        )
    wanted = _OUTPUT_OF.get(settings.output, cmd)
    if cmd != wanted:
        raise errors.UnimplementedError(
            None, None, f"Only the view {wanted!r} has {settings.output} output here, not {cmd!r}"
        )
    if cmd == "op":
        root = op_type_list(model, settings)
        lines = op_type_lines(root, model, settings)
    else:
        root = trees.shown(_TREES[cmd](model), settings, skips=cmd == "graph")
        lines = tree_lines(root, model, settings)
    if settings.output == "file":
        text = "".join((*meaning(cmd, settings), *lines))
        files.write_file(files.as_path(settings.outfile), text.encode())
    elif settings.output == "timeline":
        steps = [settings.step] if settings.step >= 0 else sorted(model.steps)
        write_timelines(root, model, steps, files.as_path(settings.outfile))
    elif settings.output == "pprof":
        write_pprof(root, settings)
    elif settings.output == "stdout":
        sys.stdout.write(f"\n{_ruled('Options', 25, 29)}{settings.as_text()}")
        sys.stdout.write(f"\n{_ruled('Model Analysis Report', 18, 22)}")
        sys.stdout.writelines(meaning(cmd, settings))
        sys.stdout.writelines(lines)
        sys.stdout.write(f"\n{_ruled('End of Report', 22, 26)}")
        sys.stdout.flush()
    return as_message(root, model, settings)


def _ruled(title: str, before: int, after: int) -> str:
    return f"{'=' * before}{title}{'=' * after}\n"


def advise(
    graph: Graph | None = None, run_meta: Any = None, options: Mapping[str, Any] | int | None = None
) -> Any:
    """What a graph and a traced step show at a glance, printed and as an AdviceProto.

    Args:
        graph: the graph, the default graph when None.
        run_meta: the RunMetadata of a traced step.
        options: the names of checkers, each with a dictionary; all when there are none.
    """
    return _advised(_model_of(graph, run_meta, None, add_trace=True), options)


def _advised(model: Model, options: Any) -> Any:
    from opdock.io import protos

    told = protos.AdviceProto()
    for name, reports in sorted(advice(model, options or ALL_ADVICE).items()):
        told.checkers[name].reports.extend(reports)
        sys.stdout.write("".join(f"{line}\n" for line in (f"\n{name}:", *reports)))
    sys.stdout.flush()
    return told
