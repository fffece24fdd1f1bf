"""Which exports of `tf.contrib.learn` are written, kept and worked on."""

from __future__ import annotations

import os

import pytest

import opdock as tf
from opdock.contrib.learn import export_choices as choices
from opdock.contrib.learn.exporting import ExportPath, ExportStrategy


class Exported:
    """An estimator that writes down where it is exported to."""

    def __init__(self, model_dir=None):
        self.model_dir = model_dir
        self.written = []

    def export_savedmodel(self, export_dir_base, serving_input_fn, **settings):
        folder = os.path.join(export_dir_base, "1234567890")
        tf.gfile.MakeDirs(folder)
        self.written.append((export_dir_base, settings["checkpoint_path"]))
        return folder


def test_a_checkpoint_is_exported_where_it_is_the_best(tmp_path):
    estimator = Exported(str(tmp_path))
    strategy = choices.make_best_model_export_strategy(lambda: None)
    for step, loss in enumerate([5.0, 7.0, 3.0, 3.0]):
        strategy.export(estimator, str(tmp_path), f"model/ckpt-{step}", {"loss": loss})
    assert estimator.written == [
        (str(tmp_path / f"ckpt-{step}"), f"model/ckpt-{step}") for step in (0, 2)
    ]
    for checkpoint, result in ((None, {"loss": 1.0}), ("ckpt", None), ("ckpt", {"auc": 1.0})):
        with pytest.raises(ValueError, match=r"empty|no loss"):
            strategy.export(estimator, str(tmp_path), checkpoint, result)


def test_what_was_the_best_before_a_restart_still_is(tmp_path):
    with tf.Graph().as_default(), tf.summary.FileWriter(str(tmp_path / "eval")) as writer:
        for auc in (0.5, 0.75):
            writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="auc", simple_value=auc)]))
    strategy = choices.make_best_model_export_strategy(
        lambda: None, model_dir=str(tmp_path), event_file_pattern="eval/*.tfevents.*",
        compare_fn=lambda best, other: other["auc"] > best["auc"],
    )  # fmt: skip
    estimator = Exported()
    for auc in (0.6, 0.8):
        strategy.export(estimator, str(tmp_path), f"ckpt-{auc}", {"auc": auc})
    assert [checkpoint for _, checkpoint in estimator.written] == ["ckpt-0.8"]


def test_another_function_works_on_what_was_exported(tmp_path):
    def base(estimator, folder, checkpoint_path=None):
        made = os.path.join(folder, "first")
        os.mkdir(made)
        return made

    def rewritten(source, folder):
        target = os.path.join(folder, "second")
        os.rename(source, target)
        return target

    strategy = choices.extend_export_strategy(ExportStrategy("plain", base), rewritten, "more")
    assert strategy.name == "more"
    assert strategy.export(None, str(tmp_path)) == str(tmp_path / "second")
    assert os.listdir(tmp_path) == ["second"]
    astray = choices.extend_export_strategy(ExportStrategy("plain", base), lambda a, b: a)
    assert astray.name == "plain"
    with pytest.raises(ValueError, match="sub-directory"):
        astray.export(None, str(tmp_path / "other"))


def test_filters_of_versions():
    paths = [ExportPath(f"/{v}", v) for v in (0, 4, 3, 9, 10, 12)]

    def kept(keep, given=paths):
        return sorted(path.export_version for path in keep(given))

    assert kept(choices.largest_export_versions(2)) == [10, 12]
    assert kept(choices.largest_export_versions(9)) == [0, 3, 4, 9, 10, 12]
    assert kept(choices.one_of_every_n_export_versions(3)) == [3, 4, 9, 12]
    assert kept(choices.mod_export_version(3)) == [0, 3, 9, 12]
    both = choices.union(choices.largest_export_versions(1), choices.mod_export_version(5))
    assert kept(both) == [0, 10, 12]
    assert kept(choices.negation(both)) == [3, 4, 9]
    assert kept(choices.largest_export_versions(2), [ExportPath("/a", None)]) == []


def test_paths_are_what_a_function_makes_of_names(tmp_path):
    for name in ("2", "10", "notes"):
        (tmp_path / name).mkdir()

    def versioned(path):
        name = os.path.basename(path.path)
        return path._replace(export_version=int(name)) if name.isdigit() else None

    found = choices.get_paths(str(tmp_path), versioned)
    assert sorted(found, key=lambda path: path.export_version) == [
        (str(tmp_path / "2"), 2), (str(tmp_path / "10"), 10),
    ]  # fmt: skip
