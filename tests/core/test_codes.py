"""Codes of opdock's own errors: each is raised somewhere, and each has its section."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import opdock as tf
from opdock import codes, nearest
from opdock.plugins import state

ROOT = Path(__file__).resolve().parents[2]
CODE = re.compile(r"OPD-[A-Z]+-\d{3}")


def test_each_code_is_used_and_known() -> None:
    sources = [
        p for f in ("core", "backends", "plugins") for p in (ROOT / f).glob("**/src/**/*.py")
    ]
    used = {
        code
        for p in sources
        if p.name != "codes.py"
        for code in CODE.findall(p.read_text(encoding="utf-8"))
    }
    assert used | set(codes.OF_KIND.values()) == set(codes.CODES)


def test_each_code_has_its_section() -> None:
    page = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)$", page, re.MULTILINE) == list(codes.CODES)
    for code, known in codes.CODES.items():
        assert CODE.fullmatch(code) and known.title and known.meaning and known.remedy


def test_a_code_stands_behind_the_first_line() -> None:
    assert codes.coded("OPD-PLACE-002", "no\nkernel") == "no [OPD-PLACE-002]\nkernel"
    assert codes.of_kind("duplicate", "twice") == "twice [OPD-PLUGIN-006]"
    assert codes.of_kind("else", "as it is") == "as it is"
    with pytest.raises(KeyError):
        codes.coded("OPD-NONE-001", "")


def test_each_kind_of_quarantine_has_a_code() -> None:
    assert set(state.KINDS) | {"open-failed"} == set(codes.OF_KIND)


def test_errors_of_sessions_have_codes() -> None:
    with tf.Graph().as_default(), tf.device("/device:GPUU:0"):
        tf.constant(1.0, name="a") + np.ones(1, np.float32)
    config = tf.ConfigProto(allow_soft_placement=False)
    graph = tf.Graph()
    with graph.as_default(), tf.device("/device:CPUU:0"):
        total = tf.placeholder(tf.float32, [], name="x") + 1.0
    with tf.Session(graph=graph, config=config) as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="OPD-PLACE-001") as found:
            session.run(total, {"x:0": 1.0})
    assert "Did you mean 'CPU'?" in str(found.value)


# ---------------------------------------------------------------- what was meant
def test_the_nearest_name() -> None:
    known = ["dense/kernel", "dense/bias", "Relu"]
    assert nearest.nearest("dense/kernal", known) == "dense/kernel"
    assert nearest.meant("RELU", known) == "; did you mean 'Relu'?"
    assert nearest.near("xyz", known) == ""


def test_names_that_a_graph_lacks() -> None:
    with tf.Graph().as_default() as graph:
        op = tf.constant(1.0, name="layer/weight").op
    with pytest.raises(KeyError, match="Did you mean 'layer/weight'") as found:
        graph.get_tensor_by_name("layer/weights:0")
    assert isinstance(pickle.loads(pickle.dumps(found.value)), KeyError)
    with pytest.raises(KeyError, match="not in the graph.*Did you mean 'layer/weight'"):
        graph.get_operation_by_name("layer/wieght")
    with pytest.raises(ValueError, match="no attr named 'dtyp'. Did you mean 'dtype'"):
        op.get_attr("dtyp")


def test_names_that_tensorflow_lacks() -> None:
    with pytest.raises(AttributeError, match=r"no tf.nn.rellu either; did you mean 'relu'\?"):
        tf.nn.rellu
    with pytest.raises(AttributeError, match=r"did you mean 'placeholder'\?"):
        tf.placholder


def test_names_that_a_checkpoint_lacks(tmp_path: Path) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("dense/kernel", initializer=1.0)
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver().save(session, str(tmp_path / "c"))
    with tf.Graph().as_default(), tf.Session() as session:
        saver = tf.train.Saver([tf.get_variable("dense/kernels", [])])
        with pytest.raises(tf.errors.NotFoundError, match="did you mean 'dense/kernel'"):
            saver.restore(session, path)
