"""Names of TF 1.15 that tell or keep settings."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

import opdock as tf
from opdock.runtime import process_settings


@pytest.fixture
def settings():
    """The process's settings, as nobody has set them; afterwards as they were."""
    before = dict(vars(process_settings.settings))
    process_settings.settings.__init__()
    yield process_settings.settings
    vars(process_settings.settings).update(before)


def test_devices_of_the_configuration(settings):
    cpus = tf.config.experimental.list_physical_devices("CPU")
    assert cpus and cpus[0].name == "/physical_device:CPU:0"
    assert tf.config.experimental.list_logical_devices("CPU")[0].name == "/device:CPU:0"
    tf.config.experimental.set_memory_growth(cpus[0], True)
    assert tf.config.experimental.get_memory_growth(cpus[0])
    with pytest.raises(ValueError, match="Unrecognized device"):
        tf.config.experimental.set_memory_growth("/gpu:7", True)
    tf.config.experimental.set_visible_devices([], "GPU")
    assert tf.config.experimental.get_visible_devices("GPU") == []


def test_a_session_without_a_config_takes_the_settings(settings):
    assert tf.Session(graph=tf.Graph()).config is None
    tf.config.set_soft_device_placement(True)
    tf.config.threading.set_inter_op_parallelism_threads(3)
    tf.config.optimizer.set_jit(True)
    tf.config.optimizer.set_experimental_options({"remapping": False, "min_graph_nodes": -1})
    assert tf.config.get_soft_device_placement()
    assert tf.config.optimizer.get_jit()
    assert tf.config.threading.get_inter_op_parallelism_threads() == 3
    assert tf.config.optimizer.get_experimental_options() == {
        "remapping": False, "min_graph_nodes": -1,
        "disable_model_pruning": False, "disable_meta_optimizer": False,
    }  # fmt: skip
    graph = tf.Graph()
    with graph.as_default(), tf.device("/device:GPU:9"):
        one = tf.constant(1)
    with tf.Session(graph=graph) as session:
        assert session.run(one) == 1
        rewrites = session.config.graph_options.rewrite_options
    assert (rewrites.remapping, rewrites.min_graph_nodes) == (rewrites.OFF, -1)
    with tf.Session(graph=graph, config=tf.ConfigProto()) as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="GPU:9"):
            session.run(one)


def test_log_device_placement_of_all_sessions(settings, capfd):
    assert not tf.debugging.get_log_device_placement()
    tf.debugging.set_log_device_placement(True)
    assert tf.debugging.get_log_device_placement()
    with tf.Graph().as_default(), tf.Session() as session:
        session.run(tf.constant(1, name="told"))
    assert "told" in capfd.readouterr().out


def test_a_hidden_type_of_devices_is_not_in_sessions(settings):
    cpu = tf.config.experimental.list_physical_devices("CPU")
    hidden = {d.device_type for d in tf.config.experimental.list_physical_devices()} - {"CPU"}
    for kind in hidden:
        tf.config.experimental.set_visible_devices([], kind)
    assert {d.device_type for d in tf.config.experimental.list_logical_devices()} == {"CPU"}
    assert tf.config.experimental.get_visible_devices() == cpu
    assert len(tf.config.experimental.list_physical_devices()) > len(cpu) or not hidden


def test_a_processor_that_is_several_devices(settings):
    experimental = tf.config.experimental
    (cpu,) = experimental.list_physical_devices("CPU")
    assert experimental.get_virtual_device_configuration(cpu) is None
    halves = [experimental.VirtualDeviceConfiguration()] * 2
    experimental.set_virtual_device_configuration(cpu, halves)
    assert experimental.get_virtual_device_configuration(cpu) == halves
    assert experimental.list_physical_devices("CPU") == [cpu]
    listed = [d.name for d in experimental.list_logical_devices("CPU")]
    assert listed == ["/device:CPU:0", "/device:CPU:1"]
    with tf.Graph().as_default(), tf.device("/device:CPU:1"):
        one = tf.constant(1) + 1
        with tf.Session() as session:
            assert session.run(one) == 2
    with pytest.raises(ValueError, match="memory limit on CPU"):
        experimental.set_virtual_device_configuration(
            cpu, [experimental.VirtualDeviceConfiguration(memory_limit=10)]
        )
    with pytest.raises(ValueError, match="Unrecognized device"):
        experimental.get_virtual_device_configuration("/gpu:7")


class _Gpus:
    """A session that finds GPUs of 1 GB, of 2 GB, and of nobody knows how much."""

    def __init__(self, graph=None, config=None):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def list_devices(self):
        sizes = (2**30, 2**31, 0)
        return [
            SimpleNamespace(
                name=f"/job:localhost/replica:0/task:0/device:GPU:{i}", device_type="GPU",
                memory_limit_bytes=size,
            )
            for i, size in enumerate(sizes)
        ]  # fmt: skip


def test_limits_of_the_memory_of_gpus(settings, monkeypatch):
    monkeypatch.setattr("opdock.api.config.Session", _Gpus)
    experimental = tf.config.experimental
    one, two, unknown = experimental.list_physical_devices("GPU")

    def limit(gpu, *megabytes):
        given = [experimental.VirtualDeviceConfiguration(memory_limit=m) for m in megabytes]
        experimental.set_virtual_device_configuration(gpu, given)

    limit(one, 256)
    assert process_settings.asked().gpu_options.per_process_gpu_memory_fraction == 0.25
    assert not process_settings.asked().device_count
    limit(one, 4096)
    assert settings.fraction == 1.0
    limit(one, 512)
    limit(two, 1024)
    assert settings.fraction == 0.5
    with pytest.raises(tf.errors.UnimplementedError, match="for all GPUs"):
        limit(two, 512)
    with pytest.raises(tf.errors.UnimplementedError, match="a GPU is one device"):
        limit(one, 100, 100)
    with pytest.raises(tf.errors.UnimplementedError, match="not known how much memory"):
        limit(unknown, 100)
    with pytest.raises(ValueError, match="limit is required"):
        limit(one, None)


def test_what_is_said_of_eager_operations(monkeypatch):
    monkeypatch.setattr("opdock.api.config._eager", type(config_of_eager())())
    experimental = tf.config.experimental
    assert experimental.get_device_policy() == "silent"
    experimental.set_device_policy("warn")
    assert experimental.get_device_policy() == "warn"
    with pytest.raises(ValueError, match="not a valid device policy"):
        experimental.set_device_policy("loud")
    assert experimental.get_synchronous_execution()
    experimental.set_synchronous_execution(False)
    assert not experimental.get_synchronous_execution()


def config_of_eager():
    from opdock.api import config

    return config._eager


def test_loop_options_are_kept_for_later():
    assert tf.autograph.experimental.set_loop_options(maximum_iterations=1) is None


def test_xla_changes_nothing():
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.xla.experimental.jit_scope():
            x = tf.constant(1.0)
        assert x.op.get_attr("_XlaCompile") is True
        (y,) = tf.xla.experimental.compile(lambda a: a + 1.0, [x])
        assert session.run(y) == 2.0


def test_small_names():
    with tf.Graph().as_default():
        assert tf.get_static_value(tf.constant([1, 2])).tolist() == [1, 2]
        assert tf.dtypes.cast(1.5, tf.int32).dtype == tf.int32
    assert tf.dimension_at_index(tf.TensorShape([3, None]), 0).value == 3
    assert tf.dimension_at_index(tf.TensorShape(None), 5).value is None
    assert Path(tf.sysconfig.get_lib()).name == "opdock"
    assert tf.resource_loader.get_path_to_datafile("x") == str(Path(__file__).parent / "x")
    tf.enable_control_flow_v2()
    assert tf.control_flow_v2_enabled()
    tf.disable_control_flow_v2()
    assert tf.no_gradient is tf.NotDifferentiable
