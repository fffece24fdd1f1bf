"""`opdock run`: a program sees what Python would give it, and ends as it would there."""

from __future__ import annotations

import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PROBE = """
import os, sys, json
print(json.dumps([
    sys.argv, __name__, __file__, __package__, __spec__ and __spec__.name, sys.path[0], __doc__,
    sys.modules["__main__"].__dict__ is globals(), sorted(k for k in globals() if k < "_z"),
    __import__("inspect").getsourcefile(sys.modules["__main__"]),
]))
"""
RUN = [sys.executable, "-m", "opdock.cli.main", "run"]


def start(command: list[str], cwd: Path, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=cwd, **options
    )  # fmt: skip


def both(arguments: list[str], cwd: Path, **options: object) -> None:
    """Python and `opdock run` print, say and end the same."""
    python = start([sys.executable, *arguments], cwd, **options)
    ours = start([*RUN, *arguments], cwd, **options)
    assert ours.stdout == python.stdout, ours.stderr
    assert ours.stderr == python.stderr
    assert ours.returncode == python.returncode


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "probe.py").write_text('"""Its text."""' + PROBE)
    (tmp_path / "link.py").symlink_to(tmp_path / "sub" / "probe.py")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "__main__.py").write_text(PROBE)
    (tmp_path / "package" / "inner.py").write_text("from package import __main__ as m\n" + PROBE)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "__main__.py").write_text(PROBE)
    with zipfile.ZipFile(tmp_path / "app.pyz", "w") as archive:
        archive.writestr("__main__.py", "import sys; print(sys.argv, __name__, sys.path[0])")
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ["sub/probe.py", "--help", "-m", "x", "--no-legacy", "--"],
        ["link.py"],
        ["-m", "package", "-x", "--help"],
        ["-m", "package.inner"],
        ["folder", "a"],
        ["app.pyz", "a"],
    ],
    ids=["script", "link", "package", "module", "folder", "zip"],
)
def test_a_program_sees_what_python_gives_it(programs: Path, arguments: list[str]) -> None:
    both(arguments, programs)


ENDS = {
    "value": "print(1)\n",
    "error": "def f():\n    raise ValueError('told')\n\nf()\n",
    "chained": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('k') from e\n",
    "syntax": "print(1)\nif\n",
    "exit": "import sys\nsys.exit(7)\n",
    "exit_text": "import sys\nsys.exit('why')\n",
    "hook": "import sys\nsys.excepthook = lambda t, e, b: print('seen', t)\nraise OSError\n",
    "atexit": "import atexit\natexit.register(lambda: print(data))\ndata = 'kept'\n",
    "thread": "import threading\nmain = threading.main_thread()\n"
    "threading.Thread(target=lambda: (main.join(), print(x))).start()\nx = 'later'\n",
    "pickle": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)\n",
    "input": "print(input())\n",
}


@pytest.mark.parametrize("name", ENDS)
def test_a_program_ends_as_in_python(tmp_path: Path, name: str) -> None:
    (tmp_path / "program.py").write_text(ENDS[name])
    both(["program.py"], tmp_path, input="typed\n")


def test_ctrl_c_ends_with_the_signal(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("raise KeyboardInterrupt\n")
    done = start([*RUN, "program.py"], tmp_path)
    assert done.returncode == -signal.SIGINT and "KeyboardInterrupt" in done.stderr


def test_what_cannot_be_run(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for arguments, said in (
        (["absent.py"], "can't open file"),
        (["-m", "absent_module"], "No module named absent_module"),
        (
            ["-m", "tensorflow.python.tools.print_selective_registration_header"],
            "no program of opdock's: kernels are not linked into one binary",
        ),
        (["-m", "tensorflow.python.ops.array_ops"], "its names are there to be imported"),
        (["empty"], "can't find '__main__' module in 'empty'"),
        ([], "name a script"),
    ):
        done = start([*RUN, *arguments], tmp_path)
        assert done.returncode == 2 and said in done.stderr, done.stderr


def test_a_program_and_its_library_get_tensorflow(tmp_path: Path) -> None:
    (tmp_path / "library.py").write_text(
        "from tensorflow.python.framework import ops\n"
        "from tensorflow.contrib import layers\n"
        "def double(x):\n    return ops.convert_to_tensor(x) * 2\n"
    )
    (tmp_path / "train.py").write_text(
        "import tensorflow as tf\nimport library\nimport numpy as np\n"
        "tf.app.flags.DEFINE_float('x', 1.0, 'a number')\n"
        "def main(_):\n"
        "    with tf.Session() as sess:\n"
        "        print(sess.run(library.double(tf.flags.FLAGS.x)).astype(np.float))\n"
        "if __name__ == '__main__':\n    tf.app.run()\n"
    )
    done = start([*RUN, "train.py", "--x=2.5"], tmp_path)
    assert (done.returncode, done.stdout) == (0, "5.0\n"), done.stderr
    assert "numpy.float -> float  (train.py:7)" in done.stderr
    done = start([*RUN, "--no-legacy", "train.py", "--x=2.5"], tmp_path)
    assert done.returncode == 1 and "AttributeError" in done.stderr


def test_a_spawned_process_gets_tensorflow_too(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import multiprocessing\n"
        "import tensorflow as tf\n"
        "import numpy as np\n"
        "def work(queue):\n"
        "    with tf.Session() as sess:\n"
        "        queue.put((tf.__version__, np.float(sess.run(tf.constant(2.0)))))\n"
        "if __name__ == '__main__':\n"
        "    context = multiprocessing.get_context('spawn')\n"
        "    queue = context.Queue()\n"
        "    process = context.Process(target=work, args=(queue,))\n"
        "    process.start()\n"
        "    print(queue.get(timeout=300))\n"
        "    process.join()\n"
    )
    done = start([*RUN, "program.py"], tmp_path)
    assert done.stdout == "('1.15.0', 2.0)\n", done.stderr


def test_pytest_runs_a_librarys_tests(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import tensorflow as tf\n"
        "class T(tf.test.TestCase):\n"
        "    def test_it(self):\n"
        "        with self.test_session():\n"
        "            self.assertAllClose(tf.ones([2]).eval(), [1, 1])\n"
    )
    done = start([*RUN, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"], tmp_path)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr
