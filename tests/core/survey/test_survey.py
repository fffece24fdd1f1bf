"""`opdock check`: uses are found by syntax, and each has its verdict."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import opdock as tf
from opdock import survey
from opdock.cli.check import command
from opdock.survey.outdated import outdated_of
from opdock.survey.uses import reading_of
from opdock.syntax import tree_of

TF = frozenset({"tensorflow", "numpy"})


def names(source: str) -> list[str]:
    return [u.name for u in reading_of(tree_of(source), TF).uses]


@pytest.mark.parametrize(
    "source, found",
    [
        ("import tensorflow as tf\ntf.nn.relu(1).shape", ["tensorflow.nn.relu"]),
        ("import tensorflow\ntensorflow.add", ["tensorflow.add"]),
        ("import tensorflow.contrib.slim as s\ns.conv2d",
         ["tensorflow.contrib.slim", "tensorflow.contrib.slim.conv2d"]),
        ("import tensorflow.python.ops\ntensorflow.x",
         ["tensorflow.python.ops", "tensorflow.x"]),
        ("from tensorflow.python.ops import math_ops as m\nm.add",
         ["tensorflow.python.ops.math_ops", "tensorflow.python.ops.math_ops.add"]),
        ("import tensorflow as tf\nslim = tf.contrib.slim\nl, m = tf.layers, 1\nslim.a\nl.b",
         ["tensorflow.contrib.slim", "tensorflow.layers", "tensorflow.contrib.slim.a",
          "tensorflow.layers.b"]),
        ("import tensorflow as tf\ndef f(tf): return tf.a\ndef g(x=tf.b): return tf.c",
         ["tensorflow.b", "tensorflow.c"]),
        ("def f(): return tf.a\nimport tensorflow as tf", ["tensorflow.a"]),
        ("import tensorflow as tf\nclass A(tf.B):\n    tf = 1\n    def m(self): return tf.c",
         ["tensorflow.B", "tensorflow.c"]),
        ("import tensorflow as tf\ntf = 3\ntf.a", []),
        ("import tensorflow as tf\nx = [tf.a for _ in tf.b]\nf = lambda tf: tf.c",
         ["tensorflow.a", "tensorflow.b"]),
        ("try:\n    import tensorflow.compat.v1 as tf\nexcept ImportError:\n    pass\ntf.a",
         ["tensorflow.compat.v1", "tensorflow.compat.v1.a"]),
        ("from . import tensorflow as tf\ntf.a", []),
        ("import other as tf\ntf.a", []),
    ],
)  # fmt: skip
def test_what_a_name_stands_for(source: str, found: list[str]) -> None:
    assert names(source) == found


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text(
        "import tensorflow as tf\n"
        "import numpy as np\n"
        "x = tf.matmul(tf.ones([1, 1]), tf.zeros([1, 1]))\n"
        "y = tf.train.Saver.save, tf.float32.as_numpy_dtype, tf.GraphKeys.LOSSES\n"
        "tf.reduce_median(x)\n"
        "tf.nn.seq2seq.rnn(x)\n"
        "np.float(np.zeros(1))\n"
        "tf.GraphKeys.NEVER\n"
    )
    (tmp_path / "old.py").write_text("print 'two'\n")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "b.py").write_text("import tensorflow as tf\ntf.nothing\n")
    return tmp_path


def test_a_report_by_file_and_line(program: Path) -> None:
    found = CliRunner().invoke(command, [str(program)])
    assert found.exit_code == 1
    lines = found.output.splitlines()
    assert lines[0].startswith(f"{program}/old.py:1: cannot be read: SyntaxError")
    assert lines[1].startswith(f"{program}/a.py:5: tf.reduce_median: TensorFlow 1.15 has no")
    assert lines[2].startswith(f"{program}/a.py:6: tf.nn.seq2seq.rnn: TensorFlow 1 has tf.contrib")
    assert lines[3].startswith(f"{program}/a.py:8: tf.GraphKeys.NEVER")
    assert lines[4].startswith(f"{program}/a.py:7: numpy.float: removed") and "float" in lines[4]
    assert "1 files, 9 uses of TensorFlow's names: 6 covered (66.7%), 3 names" in found.output


def test_what_a_program_sets_on_tensorflow_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import tensorflow as tf\n"
        "tf.model = tf.Session()\n"
        "tf.model.run(tf.no_op())\n"
        "tf.modal.run(tf.no_op())\n"
    )
    assert [found.name for found in survey.check(str(tmp_path)).missing] == ["tf.modal.run"]


def test_names_whose_call_always_raises(tmp_path: Path) -> None:
    (tmp_path / "eager.py").write_text(
        "import tensorflow as tf\n"
        "import tensorflow.contrib.eager as tfe\n"
        "tfe.enable_eager_execution()\n"
        "tf.load_op_library('ops.so')\n"
        "tf.contrib.tpu.cross_replica_sum(tf.train.Saver().save)\n"
    )
    report = survey.check(str(tmp_path))
    assert report.share == 1.0 and report.broken
    assert [(f.line, f.name) for f in report.refused] == [
        (4, "tf.load_op_library"),
        (5, "tf.contrib.tpu.cross_replica_sum"),
    ]
    assert all(f.why.startswith("raises UnimplementedError: ") for f in report.refused)
    assert "C++ interface" in report.refused[0].why


LEANING = "from collections import Iterable\n"  # which Python 3.10 has removed


@pytest.mark.parametrize("source, why", [
    (LEANING, ""),
    (f"{LEANING}import no_such_module_at_all\n", "what has it cannot be imported: ModuleNotFound"),
])  # fmt: skip
def test_a_library_that_leans_on_what_is_gone(tmp_path: Path, source: str, why: str) -> None:
    """Its names are those it has under `opdock run`; where it has none, the others are judged."""
    (tmp_path / "library" / "tf_slim").mkdir(parents=True)
    (tmp_path / "library" / "tf_slim" / "__init__.py").write_text(
        f"from tf_slim import part\npart.begin()\n{source}conv = 1\n"
    )
    # What an import that fails has imported stays, so a second one finds half of the library.
    (tmp_path / "library" / "tf_slim" / "part.py").write_text(
        "imports = []\n"
        "def begin():\n"
        "    imports.append(1)\n"
        "    if len(imports) == 2:\n"
        "        raise ImportError('half of it is there')\n"
    )
    (tmp_path / "library" / "tf_slim-1.1.0.dist-info").mkdir()
    (tmp_path / "library" / "tf_slim-1.1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: tf-slim\nVersion: 1.1.0\n"
    )
    (tmp_path / "uses.py").write_text(
        "import collections, tensorflow as tf\ntf.contrib.slim.conv\ncollections.Iterable\ntf.add\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "opdock.cli.main", "check", "uses.py", "--json"],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "library")},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    report = json.loads(done.stdout)
    assert [f["line"] for f in report["removed"]] == [3]
    assert report["uses"] == 2 and len(report["missing"]) == bool(why)
    assert all(f["name"] == "tf.contrib.slim.conv" for f in report["missing"])
    assert all(f["why"].startswith(why) for f in report["missing"])


def test_flags_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "flags.py").write_text(
        "import tensorflow as tf\n"
        "tf.flags.FLAGS.verbosity, tf.app.flags.FLAGS.of_the_program\n"
        "tf.app.flags.FLAGS.verbosity.real\n"
    )
    before = tf.flags.FLAGS.is_parsed()
    assert survey.check(str(tmp_path)).share == 1.0
    assert tf.flags.FLAGS.is_parsed() == before


def test_json(program: Path) -> None:
    found = CliRunner().invoke(command, [str(program / "a.py"), "--json"])
    report = json.loads(found.output)
    assert (report["uses"], report["covered"], report["files"]) == (9, 6, 1)
    assert {f["name"] for f in report["missing"]} >= {"tf.reduce_median"}
    assert report["removed"][0]["line"] == 7 and not report["unreadable"]


def test_exit_status(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text("import tensorflow as tf\ntf.reduce_sum\n")
    assert CliRunner().invoke(command, [str(tmp_path)]).exit_code == 0
    assert CliRunner().invoke(command, ["no_such_library_at_all"]).exit_code == 2


def test_an_installed_library_is_read_and_not_run(tmp_path: Path, monkeypatch) -> None:
    package = tmp_path / "library_on_tf"
    package.mkdir()
    (package / "__init__.py").write_text("import tensorflow as tf\nraise SystemExit(tf.add)\n")
    monkeypatch.syspath_prepend(tmp_path)
    report = survey.check("library_on_tf")
    assert (report.files, report.uses, report.covered) == (1, 1, 1)
    assert survey.check("timeit").files == 1  # a module of one file
    assert survey.check("absl-py").files > 10  # a distribution of another name
    assert survey.check("click").share == 1.0


@pytest.mark.parametrize(
    "source, found",
    [
        ("for i in xrange(3): pass", ["xrange"]),
        ("import cPickle as p, urllib2\nfrom itertools import izip\np.load(1)",
         ["cPickle", "urllib2", "itertools.izip"]),
        ("import urllib\nurllib.urlopen('x')", ["urllib.urlopen"]),
        ("{}.has_key(1)\nd.iteritems()", [".has_key()", ".iteritems()"]),
        ("import tensorflow as tf\nf = tf.nn.softmax_cross_entropy_with_logits\nf(a, b)",
         ["tf.nn.softmax_cross_entropy_with_logits"]),
        ("import tensorflow as tf\ntf.concat(1, [a, b])\ntf.split(0, 3, a)",
         ["tf.concat", "tf.split"]),
        # What the program sees to itself, and what only looks alike.
        ("try:\n    xrange\nexcept NameError:\n    xrange = range\nxrange(3)", []),
        ("from six.moves import xrange, cPickle\nxrange(3)", []),
        ("try:\n    import cPickle\nexcept ImportError:\n    import pickle as cPickle", []),
        ("import six, sys\nif six.PY2: unicode\nif sys.version_info[0] < 3: reload(sys)", []),
        ("import six.moves.urllib_request as urllib\nurllib.urlopen('x')", []),
        ("def f(file, reduce=None): return file, reduce", []),
        ("import tensorflow as tf\ntf.concat([a, b], 1)\ntf.split(a, 3, 0)", []),
        ("import tensorflow.nn as n\nn.sigmoid_cross_entropy_with_logits(labels=a, logits=b)", []),
    ],
)  # fmt: skip
def test_what_python_2_and_tensorflow_before_1_0_had(source: str, found: list[str]) -> None:
    tree = tree_of(source)
    outdated = outdated_of(tree, reading_of(tree, TF).calls)
    assert [o.name for o in outdated] == found


def test_a_program_of_python_2_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import tensorflow as tf\nfor i in xrange(3): tf.add(i, i)\n")
    (tmp_path / "b.py").write_text("print 'two'\n")
    found = CliRunner().invoke(command, [str(tmp_path)])
    assert found.exit_code == 1
    assert "b.py:1: cannot be read" in found.output and "of Python 2" in found.output
    assert "a.py:2: xrange: Python 2's; Python 3 has range" in found.output
    report = json.loads(CliRunner().invoke(command, [str(tmp_path), "--json"]).output)
    assert [f["name"] for f in report["outdated"]] == ["xrange"]
