"""The device over JAX: memory, types, 64 bits, what the probe says, and what the source imports."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import opdock as tf
from opdock.devices.pool import DevicePool
from opdock.plugins.manager import get_manager

SOURCE = Path(__file__).resolve().parents[3] / "plugins" / "jax" / "src" / "opdock_jax"


def probed():
    return [d for d in get_manager().devices() if d.spec.name == "jax"]


@pytest.fixture
def device():
    return get_manager().open(probed()[-1]).device


def run(build, *arrays, device="/device:JAX:0"):
    """What `build` gives on a device, without fallback."""
    with tf.Graph().as_default(), tf.device(device):
        fed = [tf.placeholder(tf.as_dtype(a.dtype), a.shape) for a in arrays]
        with tf.Session(config=tf.ConfigProto(allow_soft_placement=False)) as sess:
            return sess.run(build(*fed), dict(zip(fed, arrays, strict=True)))


def test_it_stays_short_and_stands_on_the_public_module_alone():
    lines = 0
    for path in SOURCE.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("opdock"):
                assert node.module == "opdock.plugin" or node.module.startswith("opdock_jax")
            if isinstance(node, ast.Import):
                assert not [a.name for a in node.names if a.name.startswith("opdock")]
        documented = [
            n.body[0].value
            for n in ast.walk(tree)
            if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(n)
        ]
        lines += sum(bool(line.strip()) for line in text.splitlines())
        lines -= sum(d.end_lineno - d.lineno + 1 for d in documented)
    assert lines < 600


def test_an_array_may_change_after_its_upload(device):
    # So large, and so aligned, that JAX would share the memory.
    array = np.arange(1 << 16, dtype=np.float32)
    buffer = device.upload(array)
    array[:] = -1
    fetched = device.download(buffer)
    fetched[:] = -2
    np.testing.assert_array_equal(device.download(buffer), np.arange(1 << 16))


@pytest.mark.parametrize(
    "kind",
    [np.float16, ml_dtypes.bfloat16, np.float64, np.complex128, np.bool_, np.uint8, np.uint32,
     np.int64, np.uint64],
)  # fmt: skip
def test_values_come_back_in_their_type(device, kind):
    array = np.array([[0, 1, 2], [3, 4, 5]]).astype(kind)[:, ::-1]
    back = device.download(device.upload(array))
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


def test_a_buffer_cannot_be_written(device):
    buffer = device.upload(np.ones(2))
    with pytest.raises(TypeError, match="immutable"):
        buffer[0] = 2.0
    assert device.duplicate(buffer) is not buffer


def test_types_that_jax_lacks_are_refused(device):
    with pytest.raises(tf.errors.UnimplementedError, match="JAX holds no"):
        device.upload(np.array([b"text"], object))


def test_too_much_memory_is_an_error_of_its_own(device):
    with pytest.raises(tf.errors.ResourceExhaustedError):
        device.empty((1 << 60,), tf.float32)


def test_64_bits_are_kept_and_the_users_jax_stays_as_it_was():
    big = np.array([1 << 40, 3], np.int64)
    total, mean = run(lambda x: [x * x + 1, tf.reduce_mean(tf.cast(x, tf.float64) / 7)], big)
    assert total.tolist() == [(1 << 80) % (1 << 64) + 1, 10]
    assert mean == np.mean(big / 7)
    assert not jax.config.jax_enable_x64
    assert jnp.arange(3).dtype == jnp.int32


def test_a_setting_of_the_users_stands():
    with jax.enable_x64(True):
        assert run(lambda x: x + 1, np.ones(2, np.float32)).tolist() == [2.0, 2.0]
        assert jnp.arange(3).dtype == jnp.int64


def test_arrays_are_made_on_the_node_s_own_device():
    kept = []
    for i, probe in enumerate(probed()):
        opened = get_manager().open(probe).device
        with opened.computing():
            kept.append(jnp.zeros(3).devices())
        made = run(lambda: tf.fill([2], 1.0) + tf.random.uniform([2]), device=f"/device:JAX:{i}")
        assert made.shape == (2,)
    assert len(set(map(frozenset, kept))) == len(kept) == 2


def test_one_device_passes_values_to_the_other():
    with tf.Graph().as_default() as graph:
        with tf.device("/device:JAX:0"):
            a = tf.square(tf.constant([1 << 20, 3], tf.int64))
        with tf.device("/device:JAX:1"):
            b = a + 1
        config = tf.ConfigProto()
        config.graph_options.optimizer_options.opt_level = -1
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        metadata = tf.RunMetadata()
        with tf.Session(graph=graph, config=config) as sess:
            assert sess.run(b, None, options, metadata).tolist() == [(1 << 40) + 1, 10]
    labels = [n.timeline_label for d in metadata.step_stats.dev_stats for n in d.node_stats]
    assert any("JAX0 to JAX1 by " in label for label in labels), labels


def test_memory_is_shared_through_dlpack_where_jax_can():
    device = get_manager().open(probed()[0]).device
    # JAX takes memory as it is if it is aligned for vector instructions, and else copies.
    room = np.zeros(64 * 9, np.uint8)
    aligned = room[-room.ctypes.data % 64 :][: 64 * 8].view(np.float64)
    shared = device.from_dlpack(aligned)
    assert shared.dtype == np.float64
    assert shared.unsafe_buffer_pointer() == aligned.ctypes.data
    assert np.from_dlpack(shared).ctypes.data == aligned.ctypes.data
    with pytest.raises(BufferError, match="strid"):
        device.from_dlpack(np.arange(4.0)[::-1])


@pytest.mark.parametrize("kind", [tf.float32, tf.bfloat16, tf.complex64, tf.bool])
def test_reversed_and_shared_values_pass_between_host_and_device(kind):
    with tf.Graph().as_default() as graph:
        with tf.device("/cpu:0"):
            a = tf.reverse(tf.cast(tf.constant([[0, 1], [1, 0], [0, 0]]), kind), [0, 1])[::-1]
        with tf.device("/device:JAX:0"):
            b = tf.transpose(tf.identity(a))
        with tf.device("/cpu:0"):
            c = tf.cast(tf.transpose(b), tf.int32)
        config = tf.ConfigProto()
        config.graph_options.optimizer_options.opt_level = -1
        with tf.Session(graph=graph, config=config) as sess:
            assert sess.run(c).tolist() == [[1, 0], [0, 1], [0, 0]]


def test_a_cpu_is_no_gpu_and_not_chosen_unasked():
    cpus = [d for d in DevicePool.build(get_manager().devices()) if d.own_type == "JAX"]
    assert len(cpus) == 2
    assert all(d.device_type == "JAX" and not d.automatic for d in cpus)


@pytest.mark.parametrize(
    ("prepare", "says"),
    [
        ("os.environ['JAX_PLATFORMS'] = 'tpu'", "JAX finds no device: "),
        ("importlib.util.find_spec = lambda name: None", "JAX is not installed"),
    ],
)
def test_a_probe_without_devices_says_why(prepare, says):
    code = f"""
import importlib.util, os
{prepare}
from opdock_jax.probe import probe
found = probe()
print([d.kind for d in found.devices], found.reason)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert says in done.stdout


def test_importing_the_plugin_does_not_import_jax():
    code = "import sys, opdock_jax; print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


BARE = {
    k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_", "PJRT_", "TPU_"))
}  # fmt: skip


def in_a_process(code, environ=BARE):
    """What a program prints where nothing is set for JAX but `environ`."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environ, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_what_the_probe_tells_without_jax_is_what_jax_says():
    told = in_a_process("""
import sys
from opdock_jax.probe import probe
print(probe(), "jax" in sys.modules)
import jax
print(probe(), True)
""")
    assert told[0] == told[1].replace(" True", " False")


@pytest.mark.parametrize(
    ("environ", "count"),
    [({"XLA_FLAGS": "--xla_force_host_platform_device_count=3"}, 3),
     ({"JAX_NUM_CPU_DEVICES": "2"}, 2), ({"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "2"}, 2)],
)  # fmt: skip
def test_jax_is_asked_where_the_environment_tells_it_of_devices(environ, count):
    code = """
import sys
from opdock_jax.probe import probe
print(len(probe().devices), "jax" in sys.modules)
"""
    assert in_a_process(code, BARE | environ) == [f"{count} True"]
    assert in_a_process(code, BARE | {"JAX_PLATFORMS": "cpu"}) == ["1 False"]


@pytest.mark.parametrize(
    "plugin",
    ["jax_plugins/acme/__init__.py", "libtpu/__init__.py", "acme-1.0.dist-info/entry_points.txt"],
)
def test_jax_is_asked_where_it_has_plugins(plugin, tmp_path):
    file = tmp_path / plugin
    file.parent.mkdir(parents=True)
    (tmp_path / "acme_plugin.py").write_text("")
    file.write_text("[jax_plugins]\nacme = acme_plugin\n" if file.suffix == ".txt" else "")
    if file.suffix == ".txt":
        file.with_name("METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    told = in_a_process(f"""
import importlib.abc, sys
sys.path.insert(0, {str(tmp_path)!r})
class Asked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "jax" and "made" in globals():
            raise ImportError("JAX is asked")
sys.meta_path.insert(0, Asked())
from opdock_jax.probe import find_spec, probe
import opdock_jax.probe
there = find_spec("jax")
opdock_jax.probe.find_spec = lambda name: there if name == "jax" else find_spec(name)
made = True
try:
    print(probe())
except ImportError as e:
    print(e)
""")
    assert told == ["JAX is asked"]


def test_a_session_that_computes_elsewhere_does_not_import_jax():
    told = in_a_process("""
import sys
import opdock as tf
with tf.Session() as sess:
    print(sess.run(tf.constant(1.0) + 1.0), [d.name for d in sess.list_devices()])
    print("jax" in sys.modules)
    with tf.device("/device:JAX:0"):
        print(sess.run(tf.constant(2.0) + 1.0), "jax" in sys.modules)
""")
    assert "device:JAX:0'" in told[0]
    assert told[1:] == ["False", "3.0 True"]


def test_a_device_that_is_not_there_when_it_is_needed_is_a_fallback_or_an_error():
    told = in_a_process("""
import opdock as tf
with tf.device("/device:JAX:0"):
    x = tf.placeholder(tf.float32, [2])
    y = x * 2.0
moves, stays = (tf.ConfigProto(allow_soft_placement=soft) for soft in (True, False))
with tf.Session(config=moves) as soft, tf.Session(config=stays) as hard:
    import jax
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 1)
    jax.local_devices = lambda backend: []
    print(soft.run(y, {x: [1.0, 2.0]}))
    for _ in range(2):
        try:
            hard.run(y, {x: [1.0, 2.0]})
        except tf.errors.InvalidArgumentError as e:
            print("cannot be opened: RuntimeError: JAX has [], and no jax:cpu:0 now" in str(e))
""")
    assert told == ["[2. 4.]", "True", "True"]
