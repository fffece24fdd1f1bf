"""Names that other libraries have removed since 2019, under `opdock run`."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from opdock.legacy import arrays, functions, names, restore

RUN = [sys.executable, "-m", "opdock.cli.main", "run"]


def run(source: str, cwd: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (cwd / "old.py").write_text(source)
    return subprocess.run(
        [*RUN, *options, "old.py"], capture_output=True, text=True, check=False, cwd=cwd
    )


def printed(source: str, cwd: Path) -> list[str]:
    done = run(source, cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # what Python will drop next
def test_every_name_has_something_that_stands_for_it() -> None:
    """Where the library is installed, and whether it still has the name or not."""
    absent = []
    for module, table in names.NAMES.items():
        if restore._at(module) is restore._MISSING:
            continue
        for name, place in table.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                there = hasattr(restore._at(module), name)
            if not there and restore._at(place) is restore._MISSING:
                root = place.partition(":")[0].partition(".")[0]
                if restore._at(root) is not restore._MISSING:
                    absent.append(f"{module}.{name} -> {place}")
    assert not absent


def test_numpy(tmp_path: Path) -> None:
    assert printed(
        "import numpy as np\n"
        "print(np.float is float, np.int is int, np.object is object)\n"
        "print(np.asscalar(np.array([3])), np.product([2, 3]), np.alltrue([1, 0]), np.Inf)\n"
        "print(np.cast['int32']([1.7]).dtype, np.rank([[1]]), np.in1d([1, 2], [2]))\n"
        "print(np.find_common_type([np.float32], [np.float64]), np.array([1], np.bool).dtype)\n"
        "print(hasattr(np, 'never_was'))\n",
        tmp_path,
    ) == [
        "True True True",
        "3 6 False inf",
        "int32 2 [False  True]",
        "float32 bool",
        "False",
    ]


def test_rows_that_differ_in_length(tmp_path: Path) -> None:
    done = run(
        "import numpy as np\n"
        "import tensorflow as tf\n"
        "a = np.array([[1, 2], [3]])\n"
        "print(a.dtype, a.shape, np.asarray(list(zip([[1, 2], [3, 4]], [[0], [1]]))).shape)\n"
        "rows = [[1, 2], [3]]\n"
        "for make in (lambda: np.array(rows, np.int32), lambda: tf.constant(rows)):\n"
        "    try:\n        print(make())\n"
        "    except ValueError as e:\n        print(e)\n",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "object (2,) (2, 2)"
    assert "inhomogeneous" in lines[1]
    assert "Argument must be a dense tensor" in lines[2]
    told = "  numpy.array of rows that differ in length -> dtype=object  (old.py:3)"
    assert told in done.stderr.splitlines()


def test_pythons_types_are_kinds_of_numbers(tmp_path: Path) -> None:
    assert printed(
        "import numpy as np\n"
        "print(np.issubdtype(np.float32, np.float), np.issubdtype(np.int16, int))\n"
        "print(np.issubdtype(np.float32, int), np.issubdtype(np.float32, np.float64))\n",
        tmp_path,
    ) == ["True True", "False False"]


def test_no_copy_without_need(tmp_path: Path) -> None:
    lines = printed(
        "import numpy as np\n"
        "a = np.zeros(2)\n"
        "print(np.array([1, 2], copy=False), np.array(a, copy=False) is a)\n"
        "print(np.array(a, np.float32, copy=False).dtype)\n",
        tmp_path,
    )
    assert lines == ["[1 2] True", "float32"]


def test_bytes_as_arrays_floats_as_counts_and_booleans_as_integers(tmp_path: Path) -> None:
    assert printed(
        "import numpy as np\n"
        "import tensorflow as tf\n"
        "read = np.fromstring(np.arange(3, dtype=np.int16).tostring(), np.int16)\n"
        "read[0] = 7\n"
        "print(read, np.fromstring('1 2', sep=' '), np.fromstring(b'abc', 'u1', 2, ''))\n"
        "print(np.linspace(0, 1, num=6 / 2), np.logspace(0, 2, 3))\n"
        "kept = tf.train.Int64List(value=[np.array([True])[0], 3])\n"
        "print(list(tf.train.Int64List(value=np.array([True, False])).value))\n"
        "print(list(tf.train.Feature(int64_list=kept).int64_list.value))\n"
        "try: tf.train.Int64List(value=['x'])\n"
        "except TypeError as e: print(e)\n",
        tmp_path,
    ) == [
        "[7 1 2] [1. 2.] [97 98]",
        "[0.  0.5 1. ] [  1.  10. 100.]",
        "[1, 0]",
        "[1, 3]",
        "'str' object cannot be interpreted as an integer",
    ]


def test_the_shape_of_reshape_has_its_old_name(tmp_path: Path) -> None:
    assert printed(
        "import numpy as np\n"
        "print(np.reshape([1, 2], newshape=[2, 1]).tolist())\n"
        "print(np.reshape(np.ones(4), [2, 2]).shape)\n",
        tmp_path,
    ) == ["[[1], [2]]", "(2, 2)"]


def test_what_iterators_give_is_stacked(tmp_path: Path) -> None:
    assert printed(
        "import numpy as np\n"
        "print(np.vstack(map(np.atleast_1d, [1, 2])).tolist(), np.hstack(iter([[1], [2]])))\n"
        "print(np.stack(([i] for i in range(2)), axis=1), np.vstack([[1], [2]]).shape)\n",
        tmp_path,
    ) == ["[[1], [2]] [1 2]", "[[0 1]] (2, 1)"]


def test_a_numpy_that_has_the_old_name_is_left_alone() -> None:
    def reshape(a: object, newshape: object) -> object:
        return newshape

    assert arrays._reshaping(reshape) is reshape


def test_parts_of_urllib_are_there_without_their_import(tmp_path: Path) -> None:
    assert printed(
        "import sys, urllib\n"
        "for name in ('request', 'error', 'parse', 'response'):\n"
        "    sys.modules.pop(f'urllib.{name}', None); vars(urllib).pop(name, None)\n"
        "print(urllib.parse.quote('a b'), urllib.request.Request('http://x/y').host)\n"
        "print(issubclass(urllib.error.URLError, OSError), hasattr(urllib, 'nothing'))\n",
        tmp_path,
    ) == ["a%20b x", "True False"]


def test_layers_of_keras_2_2_are_applied_too(tmp_path: Path) -> None:
    (tmp_path / "keras" / "engine").mkdir(parents=True)
    for folder in ("keras", "keras/engine"):
        (tmp_path / folder / "__init__.py").write_text("")
    (tmp_path / "keras" / "engine" / "base_layer.py").write_text(
        "class Layer:\n    def __call__(self, x): return x + 1\n"
    )
    assert printed(
        "from keras.engine.base_layer import Layer\nprint(Layer().apply(1))\n", tmp_path
    ) == ["2"]


def test_methods_that_numpys_arrays_have_lost(tmp_path: Path) -> None:
    assert printed(
        "import numpy as np\n"
        "a = np.array([1, 2], np.uint8)\n"
        "print(a.tostring(), np.uint8(3).tostring(), a.ptp())\n"
        "a.itemset(0, 7); b = a.reshape(1, 2); b.itemset((0, 1), 8); print(a)\n"
        "print(np.array([1], '<u2').newbyteorder())\n"
        "class Sub(np.ndarray): pass\n"
        "print(a.view(Sub).tostring())\n",
        tmp_path,
    ) == [
        "b'\\x01\\x02' b'\\x03' 1",
        "[7 8]",
        "[256]",
        "b'\\x07\\x08'",
    ]


def test_python(tmp_path: Path) -> None:
    assert printed(
        "import collections, inspect, time, fractions, threading, base64, warnings\n"
        "warnings.simplefilter('ignore')\n"
        "import imp\n"
        "from collections import Mapping, Iterable\n"
        "print(isinstance({}, Mapping), isinstance([], collections.Sequence))\n"
        "print(inspect.getargspec(lambda a, b=1, *c: 0))\n"
        "print(time.clock() > 0, fractions.gcd(6, 4), threading.Thread().isAlive())\n"
        "open('m.py', 'w').write('x = 1')\n"
        "print(imp.load_source('mm', 'm.py').x, base64.encodestring(b'a'))\n",
        tmp_path,
    ) == [
        "True True",
        "ArgSpec(args=['a', 'b'], varargs='c', keywords=None, defaults=(1,))",
        "True 2 False",
        "1 b'YQ==\\n'",
    ]


def test_old_assertions(tmp_path: Path) -> None:
    printed(
        "import unittest\n"
        "class T(unittest.TestCase):\n"
        "    def test(self):\n"
        "        self.assertItemsEqual([1, 2], [2, 1])\n"
        "        self.assertDictContainsSubset({1: 2}, {1: 2, 3: 4})\n"
        "        with self.assertRaises(AssertionError):\n"
        "            self.assertDictContainsSubset({1: 3}, {1: 2})\n"
        "unittest.main()\n",
        tmp_path,
    )


def test_images(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    assert printed(
        "import numpy as np, scipy\n"
        "from scipy import misc\n"
        "import scipy.misc\n"
        "from PIL import Image\n"
        "a = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)\n"
        "scipy.misc.imsave('a.png', a)\n"
        "print((misc.imread('a.png') == a).all(), misc.imread('a.png', mode='L').shape)\n"
        "print(misc.imread('a.png', flatten=True).dtype)\n"
        "print([misc.imresize(a, size).shape for size in ((2, 8), 50, 0.5)])\n"
        "print(misc.toimage(a.transpose(2, 0, 1)).size, misc.bytescale(np.array([0., 2.])))\n"
        "print(misc.comb(4, 2), misc.logsumexp([0, 0]), misc.factorial(3))\n"
        "print(Image.fromarray(a).resize((2, 2), Image.ANTIALIAS).size, scipy.zeros(2))\n"
        "try:\n    misc.imresize(a, 50, interp='odd')\n"
        "except Exception as e:\n    print(type(e).__name__, 'odd' in str(e))\n",
        tmp_path,
    ) == [
        "True (4, 4)",
        "float32",
        "[(2, 8, 3), (2, 2, 3), (2, 2, 3)]",
        "(4, 4) [  0 255]",
        "6.0 0.6931471805599453 6.0",
        "(2, 2) [0. 0.]",
        "InvalidArgumentError True",
    ]


def test_what_was_used_is_told_once_and_only_then(tmp_path: Path) -> None:
    done = run("import numpy as np\nfor _ in range(3):\n    np.float(1)\nnp.float(2)\n", tmp_path)
    assert done.stderr.splitlines()[1:] == ["  numpy.float -> float  (old.py:3, old.py:4)"]
    assert run("import numpy as np\nnp.zeros(1)\n", tmp_path).stderr == ""


def test_modules_in_what_was_a_package(tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    done = run("from scipy.sparse.linalg.eigen.arpack import eigsh\nprint(eigsh)\n", tmp_path)
    assert done.stdout.startswith("<function eigsh"), done.stderr
    moved = "scipy.sparse.linalg.eigen.arpack -> scipy.sparse.linalg._eigen.arpack"
    assert f"  module {moved}  (old.py:1)" in done.stderr.splitlines()


def test_it_can_be_left_out(tmp_path: Path) -> None:
    done = run("import collections\ncollections.Iterable\n", tmp_path, "--no-legacy")
    assert done.returncode == 1 and "AttributeError" in done.stderr


@pytest.mark.parametrize(("value", "status"), [("1", 1), ("0", 0)])
def test_the_environment_can_leave_it_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, status: int
) -> None:
    monkeypatch.setenv("OPDOCK_NO_LEGACY", value)
    done = run("import collections\ncollections.Iterable\n", tmp_path)
    assert done.returncode == status, done.stderr


def test_what_is_gone_as_ever_raises_the_librarys_own_error(tmp_path: Path) -> None:
    done = run("import numpy as np\nnp.never_was\n", tmp_path)
    assert "module 'numpy' has no attribute 'never_was'" in done.stderr


def test_texts_in_attributes_of_hdf5_files_can_be_decoded() -> None:
    text = functions.decodable("2.2.4")
    assert text == "2.2.4" and text.decode("utf8") == "2.2.4" and isinstance(text, str)
    import numpy as np

    names_ = functions.decodable(np.array(["a", "b"], dtype=object))
    assert [n.decode("utf8") for n in names_] == ["a", "b"]


def generated_by_an_old_protoc() -> str:
    """A module as protoc 3.5 wrote it: the file, then its message described once more."""
    from google.protobuf import descriptor_pb2

    file = descriptor_pb2.FileDescriptorProto(name="old_note.proto", syntax="proto3")
    field = file.message_type.add(name="Note").field.add(name="text", number=1, type=9, label=1)
    return f"""
import sys
_b=sys.version_info[0]<3 and (lambda x:x) or (lambda x:x.encode('latin1'))
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
DESCRIPTOR = _descriptor.FileDescriptor(
  name='old_note.proto', package='', syntax='proto3',
  serialized_pb=_b({file.SerializeToString().decode("latin1")!r}))
_NOTE = _descriptor.Descriptor(
  name='Note', full_name='Note', filename=None, file=DESCRIPTOR, containing_type=None,
  fields=[_descriptor.FieldDescriptor(name={field.name!r}, full_name='Note.text', index=0,
    number=1, type=9, cpp_type=9, label=1, has_default_value=False, default_value='',
    message_type=None, enum_type=None, containing_type=None, is_extension=False,
    extension_scope=None)],
  extensions=[], nested_types=[], enum_types=[])
"""


def test_messages_that_an_old_protoc_generated(tmp_path: Path) -> None:
    (tmp_path / "old_note_pb2.py").write_text(generated_by_an_old_protoc())
    source = """
from old_note_pb2 import Note
data = Note(text="a").SerializeToString()
print(Note.FromString(data).text, Note.__module__)
"""
    assert printed(source, tmp_path) == ["a old_note_pb2"]
    assert run(source, tmp_path, "--no-legacy").returncode == 1
