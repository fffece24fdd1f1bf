"""The device over PyTorch: memory, types, what the probe says, and what the source imports."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import torch

import opdock as tf
from opdock.devices.pool import DevicePool
from opdock.plugins.manager import get_manager

SOURCE = Path(__file__).resolve().parents[3] / "plugins" / "torch" / "src" / "opdock_torch"


def probed():
    return [d for d in get_manager().devices() if d.spec.name == "torch"]


@pytest.fixture
def device():
    """The last one, which is a CPU."""
    return get_manager().open(probed()[-1]).device


def test_it_stays_short_and_stands_on_the_public_module_alone():
    lines = 0
    for path in SOURCE.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("opdock"):
                assert node.module == "opdock.plugin" or node.module.startswith("opdock_torch")
            if isinstance(node, ast.Import):
                assert not [a.name for a in node.names if a.name.startswith("opdock")]
        documented = [
            n.body[0].value
            for n in ast.walk(tree)
            if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(n)
        ]
        lines += sum(bool(line.strip()) for line in text.splitlines())
        lines -= sum(d.end_lineno - d.lineno + 1 for d in documented)
    assert lines < 500


def test_an_array_may_change_after_its_upload(device):
    array = np.arange(4.0)
    buffer = device.upload(array)
    array[:] = 0
    fetched = device.download(buffer)
    fetched[:] = -1
    assert device.download(buffer).tolist() == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("kind", [np.float16, np.complex64, np.bool_, np.uint8, ml_dtypes.bfloat16])
def test_values_come_back_in_their_type(device, kind):
    array = np.array([[0, 1, 2], [3, 4, 5]]).astype(kind)[:, ::-1]
    back = device.download(device.upload(array))
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


def test_views_with_pending_work_are_carried_out(device):
    values = torch.tensor([1 + 2j, 3 - 4j])
    assert device.download(values.conj()).tolist() == [1 - 2j, 3 + 4j]
    assert device.download(values.conj().imag).tolist() == [-2.0, 4.0]


def test_a_result_is_handed_over_and_what_others_see_is_copied(device):
    result = torch.arange(6.0)
    assert np.shares_memory(device.surrender(result), result.numpy())
    parts = (result[2:], result.reshape(2, 3).mT, result.expand(2, 6), result.to(torch.complex64))
    for part in (*parts[:3], parts[3].conj()):
        given = device.surrender(part)
        assert not np.shares_memory(given, part.resolve_conj().numpy())
        np.testing.assert_array_equal(given, part.resolve_conj().numpy())
    halves = torch.ones(3, dtype=torch.bfloat16)
    assert device.surrender(halves).dtype == ml_dtypes.bfloat16


def test_what_is_fed_is_borrowed_where_pytorch_may_write_to_it(device):
    array = np.arange(4.0)
    assert np.shares_memory(device.borrow(array).numpy(), array)
    locked = array.copy()
    locked.flags.writeable = False
    for other in (locked, array[::-1], array[::2]):
        taken = device.borrow(other)
        assert taken.tolist() == other.tolist()
        assert not np.shares_memory(taken.numpy(), other)
    with pytest.raises(tf.errors.UnimplementedError, match="cpu holds no uint32"):
        device.borrow(np.ones(2, np.uint32))


def test_conjugating_twice_is_a_copy_of_what_was_fed():
    fed = np.array([1 + 2j, 3 - 4j], np.complex64)
    with tf.Graph().as_default(), tf.device("/device:TORCH:0"), tf.Session() as sess:
        x = tf.placeholder(tf.complex64, [2])
        twice = tf.math.conj(tf.math.conj(x))
        found = sess.run(twice, {x: fed})
        found[:] = 0
        assert fed.tolist() == [1 + 2j, 3 - 4j]


def test_types_without_arithmetic_are_refused(device):
    with pytest.raises(tf.errors.UnimplementedError, match="cpu holds no uint32"):
        device.upload(np.ones(2, np.uint32))


def test_too_much_memory_is_an_error_of_its_own(device):
    with pytest.raises(tf.errors.ResourceExhaustedError):
        device.empty((1 << 60,), tf.float32)


def test_the_same_program_serves_two_devices():
    first, second = (get_manager().open(d).device for d in probed()[-2:])
    assert first is not second
    buffer = first.upload(np.ones(3, np.float32))
    moved = second.take(buffer, copy=True)
    buffer[:] = 0
    assert moved.tolist() == [1.0, 1.0, 1.0]


def test_memory_is_shared_through_dlpack_where_pytorch_can(device):
    array = np.arange(6.0)
    shared = device.from_dlpack(array)
    array[0] = 9
    assert shared.tolist() == [9.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    with pytest.raises(BufferError, match="negative strides"):
        device.from_dlpack(array[::-1])


@pytest.mark.parametrize("kind", [tf.float32, tf.bfloat16, tf.complex64, tf.bool])
def test_reversed_and_shared_values_pass_between_host_and_device(kind):
    with tf.Graph().as_default() as graph:
        with tf.device("/cpu:0"):
            a = tf.reverse(tf.cast(tf.constant([[0, 1], [1, 0], [0, 0]]), kind), [0, 1])[::-1]
        with tf.device("/device:TORCH:0"):
            b = tf.transpose(tf.identity(a))
        with tf.device("/cpu:0"):
            c = tf.cast(tf.transpose(b), tf.int32)
        config = tf.ConfigProto()
        config.graph_options.optimizer_options.opt_level = -1
        with tf.Session(graph=graph, config=config) as sess:
            assert sess.run(c).tolist() == [[1, 0], [0, 1], [0, 0]]


def test_a_cpu_is_no_gpu_and_not_chosen_unasked():
    cpus = [d for d in DevicePool.build(get_manager().devices()) if d.own_type == "TORCH"
            and d.probed.attributes.kind == "cpu"]  # fmt: skip
    assert len(cpus) == 2
    assert all(d.device_type == "TORCH" and not d.automatic for d in cpus)


@pytest.mark.parametrize(
    ("count", "says"), [("0", "there is no accelerator"), ("many", "takes a number, got 'many'")]
)
def test_a_probe_without_devices_says_why(count, says):
    code = f"""
import os, torch
os.environ["OPDOCK_TORCH_CPUS"] = {count!r}
torch.cuda.is_available = lambda: False
from opdock_torch.probe import probe
found = probe()
print([d.kind for d in found.devices], found.reason)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert says in done.stdout


def test_importing_the_plugin_does_not_import_pytorch():
    code = "import sys, opdock_torch; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("build", "says"),
    [
        ("cuda = None\nhip = None\nxpu = None", "['cpu of PyTorch 9.9'] False"),
        ("cuda = None\nhip = None", "['cpu of PyTorch 9.9'] False"),  # before there was XPU
        ("cuda = '12.8'\nhip = None", "['cuda:0 of PyTorch 9.9', 'cpu of PyTorch 9.9'] True"),
        ("hip = None", "['cuda:0 of PyTorch 9.9', 'cpu of PyTorch 9.9'] True"),
        ("raise ImportError", "['cuda:0 of PyTorch 9.9', 'cpu of PyTorch 9.9'] True"),
        (None, "['cuda:0 of PyTorch 9.9', 'cpu of PyTorch 9.9'] True"),
    ],
)
def test_a_probe_imports_pytorch_unless_its_build_is_for_the_processor_alone(build, says, tmp_path):
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text(
        "from types import SimpleNamespace\n__version__ = '9.9'\n"
        "cuda = SimpleNamespace(is_available=lambda: True, device_count=lambda: 1)\n"
    )
    if build is not None:
        (package / "version.py").write_text(f"__version__ = '9.9'\n{build}\n")
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
sys.platform = "linux"
from opdock_torch.probe import probe
print([d.description for d in probe().devices], "torch" in sys.modules)
"""
    environ = {k: v for k, v in os.environ.items() if k != "OPDOCK_TORCH_CPUS"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ
    )
    assert done.stdout.strip() == says
