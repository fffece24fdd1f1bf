"""Which exports of estimators of `tf.contrib.learn` are written, kept, and worked on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import opdock as tf
from opdock.contrib.learn.exporting import ExportPath, ExportStrategy, make_export_strategy

__all__ = [
    "BestModelSelector", "extend_export_strategy", "get_paths", "largest_export_versions",
    "make_best_model_export_strategy", "mod_export_version", "negation",
    "one_of_every_n_export_versions", "union",
]  # fmt: skip

Better = Callable[[dict[str, Any], dict[str, Any]], bool]
Keep = Callable[[list[ExportPath]], list[ExportPath]]


# ---------------------------------------------------------------------------- the best model
def _has_less_loss(best: dict[str, Any], candidate: dict[str, Any]) -> bool:
    for which, given in (("best", best), ("current", candidate)):
        if not given or "loss" not in given:
            raise ValueError(f"The {which} evaluation has no loss to compare: {given}")
    return bool(best["loss"] > candidate["loss"])


class BestModelSelector:
    """Says of each evaluation whether it is the best so far.

    Args:
        event_file_pattern: event files of evaluations before, of which the best counts.
        compare_fn: a function of the best and another evaluation: whether that is better; which
            has less loss if None.
    """

    def __init__(
        self, event_file_pattern: str | None = None, compare_fn: Better | None = None
    ) -> None:
        self._is_better = compare_fn or _has_less_loss
        self._best: dict[str, Any] | None = None
        for file in tf.gfile.Glob(event_file_pattern) if event_file_pattern else ():
            for event in tf.train.summary_iterator(file):
                values = event.summary.value if event.HasField("summary") else ()
                told = {v.tag: v.simple_value for v in values if v.HasField("simple_value")}
                if told:
                    self._take(told)

    def _take(self, told: dict[str, Any]) -> bool:
        if self._best is not None and not self._is_better(self._best, told):
            return False
        self._best = told
        return True

    def update(
        self, checkpoint_path: str | None, eval_result: dict[str, Any] | None
    ) -> tuple[str, dict[str, Any] | None]:
        """The checkpoint and its evaluation if it is the best, else an empty text and None.

        Raises:
            ValueError: one of both is missing.
        """
        if not checkpoint_path:
            raise ValueError("Checkpoint path is empty.")
        if eval_result is None:
            raise ValueError(f"{checkpoint_path} has empty evaluation results.")
        return (checkpoint_path, eval_result) if self._take(eval_result) else ("", None)


def make_best_model_export_strategy(
    serving_input_fn: Callable[[], Any], exports_to_keep: int | None = 1,
    model_dir: str | None = None, event_file_pattern: str | None = None,
    compare_fn: Better | None = None, default_output_alternative_key: str | None = None,
    strip_default_attrs: bool | None = None,
) -> ExportStrategy:  # fmt: skip
    """A strategy that exports a checkpoint where its evaluation is the best so far.

    Args:
        model_dir, event_file_pattern: where the event files of evaluations before are, of a
            training that goes on; no evaluation counts but those to come if one is None.
        compare_fn: see `BestModelSelector`.
        serving_input_fn, exports_to_keep, default_output_alternative_key, strip_default_attrs: see
            `make_export_strategy`.
    """
    base = make_export_strategy(
        serving_input_fn, default_output_alternative_key, exports_to_keep=exports_to_keep,
        strip_default_attrs=strip_default_attrs,
    )  # fmt: skip
    events = None
    if model_dir and event_file_pattern:
        events = os.path.join(model_dir, event_file_pattern)
    selector = BestModelSelector(events, compare_fn)

    def export_fn(
        estimator: Any, export_dir_base: str, checkpoint_path: str | None, eval_result: Any = None
    ) -> Any:
        latest = checkpoint_path or tf.train.latest_checkpoint(estimator.model_dir)
        chosen, result = selector.update(latest, eval_result)
        if not chosen:
            return ""
        folder = os.path.join(os.fsdecode(export_dir_base), os.path.basename(chosen))
        return base.export(estimator, folder, chosen, result)

    return ExportStrategy("best_model", export_fn)


def extend_export_strategy(
    base_export_strategy: ExportStrategy, post_export_fn: Callable[[str, str], str],
    post_export_name: str | None = None,
) -> ExportStrategy:  # fmt: skip
    """A strategy whose exports another function works on.

    Args:
        base_export_strategy: what exports.
        post_export_fn: a function of what that wrote and of an empty folder, below which it
            writes another; it returns where.
        post_export_name: what the strategy is called; as the base if None.
    """

    def export_fn(estimator: Any, export_dir_base: str, checkpoint_path: str | None = None) -> str:
        above = os.fsdecode(export_dir_base)
        first, second = (_fresh(above, f"temp-{which}-export") for which in ("base", "post"))
        written = base_export_strategy.export(estimator, first, checkpoint_path)
        made = os.fsdecode(post_export_fn(os.fsdecode(written), second))
        if not made.startswith(os.path.join(second, "")):
            raise ValueError(f"post_export_fn must return a sub-directory of {second}")
        final = os.path.join(above, os.path.relpath(made, second))
        if tf.gfile.Exists(final):
            raise RuntimeError(f"Failed to obtain final export directory: {final} exists")
        tf.gfile.Rename(made, final)
        for folder in (first, second):
            tf.gfile.DeleteRecursively(folder)
        return final

    return ExportStrategy(post_export_name or base_export_strategy.name, export_fn)


def _fresh(above: str, name: str) -> str:
    folder = os.path.join(above, f"{name}-{int(time.time())}")
    if tf.gfile.Exists(folder):
        raise RuntimeError(f"Failed to obtain an export directory: {folder} exists")
    tf.gfile.MakeDirs(folder)
    return folder


# ------------------------------------------------------------------------- which are kept
def largest_export_versions(n: int) -> Keep:
    """A filter that keeps the n newest versions."""

    def keep(paths: list[ExportPath]) -> list[ExportPath]:
        known = sorted(_versioned(paths), key=lambda path: path.export_version)
        return sorted(known[max(len(known) - n, 0) :])

    return keep


def one_of_every_n_export_versions(n: int) -> Keep:
    """A filter that keeps the newest of versions 0 to n, of n + 1 to 2 n, and so on."""

    def keep(paths: list[ExportPath]) -> list[ExportPath]:
        newest: dict[int, ExportPath] = {}
        for path in _versioned(paths):
            interval = max(path.export_version - 1, 0) // n
            known = newest.get(interval)
            if known is None or known.export_version < path.export_version:
                newest[interval] = path
        return sorted(newest.values())

    return keep


def mod_export_version(n: int) -> Keep:
    """A filter that keeps the versions that n divides."""
    return lambda paths: sorted(path for path in _versioned(paths) if path.export_version % n == 0)


def union(lf: Keep, rf: Keep) -> Keep:
    """A filter that keeps what one of two keeps."""
    return lambda paths: sorted({*lf(paths), *rf(paths)})


def negation(f: Keep) -> Keep:
    """A filter that keeps what another does not."""
    return lambda paths: sorted({*paths} - {*f(paths)})


def _versioned(paths: Iterable[ExportPath]) -> list[ExportPath]:
    return [path for path in paths if path.export_version is not None]


def get_paths(base_dir: Any, parser: Callable[[ExportPath], ExportPath | None]) -> list[ExportPath]:
    """What is in a folder, as a function says.

    Args:
        base_dir: the folder.
        parser: a function of a path without a version that gives one with it, or None for what
            is left out.
    """
    above = os.fsdecode(base_dir)
    names = [name.rstrip("/") for name in tf.gfile.ListDirectory(above)]
    parsed = [parser(ExportPath(os.path.join(above, name), None)) for name in names]
    return sorted(path for path in parsed if path)
