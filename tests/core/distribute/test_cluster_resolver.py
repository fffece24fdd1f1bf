"""Who knows which tasks a cluster has."""

from __future__ import annotations

import json
import os
import stat
from types import SimpleNamespace
from typing import Any

import pytest

import opdock as tf

resolvers = tf.distribute.cluster_resolver
SPEC = tf.train.ClusterSpec({"ps": ["p:1"], "worker": ["w:1", "w:2"]})


@pytest.fixture
def told(monkeypatch):
    """Sets TF_CONFIG."""
    return lambda **config: monkeypatch.setenv("TF_CONFIG", json.dumps(config))


def test_a_resolver_says_what_it_was_told():
    found = resolvers.SimpleClusterResolver(
        SPEC, "m:1", "worker", 1, "cloud", {"GPU": 8}, rpc_layer="grpc"
    )
    assert (found.task_type, found.task_id, found.environment) == ("worker", 1, "cloud")
    assert (found.master(), found.master("ps", 0)) == ("grpc://m:1", "grpc://p:1")
    assert found.master("worker", 1, rpc_layer="other") == "other://w:2"
    assert found.num_accelerators() == {"GPU": 8}
    found.task_type, found.task_id = "ps", 0
    assert (found.task_type, found.task_id) == ("ps", 0)
    assert resolvers.SimpleClusterResolver(SPEC).num_accelerators() == {}
    with pytest.raises(TypeError, match="must be a ClusterSpec"):
        resolvers.SimpleClusterResolver({"ps": ["p:1"]})
    with pytest.raises(TypeError, match="must be a string"):
        resolvers.SimpleClusterResolver(SPEC, master=1)


def test_a_resolver_of_a_program_needs_two_methods():
    class Mine(resolvers.ClusterResolver):
        def cluster_spec(self):
            return SPEC

        def master(self, task_type=None, task_id=None, rpc_layer=None):
            return ""

    mine = Mine()
    assert (mine.task_type, mine.task_id, mine.rpc_layer, mine.environment) == (None,) * 3 + ("",)
    assert mine.num_accelerators()["CPU"] >= 1
    assert mine.num_accelerators("worker", 7) == {}
    with pytest.raises(TypeError, match="abstract"):
        resolvers.ClusterResolver()


def test_the_environment_is_asked_anew_each_time(told, monkeypatch):
    found = resolvers.TFConfigClusterResolver()
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert (found.cluster_spec().as_dict(), found.master(), found.task_id) == ({}, "", None)
    told(cluster=SPEC.as_dict(), task={"type": "worker", "index": "1"}, rpc_layer="grpc")
    assert (found.task_type, found.task_id, found.rpc_layer) == ("worker", 1, "grpc")
    assert found.cluster_spec() == SPEC
    assert (found.master(), found.master("ps", 0)) == ("grpc://w:2", "grpc://p:1")
    other = resolvers.TFConfigClusterResolver("ps", 0, "http")
    assert (other.task_type, other.task_id, other.master()) == ("ps", 0, "http://p:1")
    told(cluster=SPEC.as_dict(), session_master="elsewhere:1")
    assert found.master() == "elsewhere:1"
    told(cluster={"worker": ["alone:1"]}, task={"type": "worker", "index": 0})
    assert found.master() == ""


def test_several_resolvers_are_one():
    simple = resolvers.SimpleClusterResolver
    more = tf.train.ClusterSpec({"worker": ["w:3"], "chief": ["c:1"]})
    both = resolvers.UnionResolver(simple(SPEC, "m:1", "ps", 0, rpc_layer="grpc"), simple(more))
    assert both.cluster_spec().as_dict() == {
        "ps": ["p:1"], "worker": ["w:1", "w:2", "w:3"], "chief": ["c:1"],
    }  # fmt: skip
    assert (both.task_type, both.task_id, both.rpc_layer) == ("ps", 0, "grpc")
    assert (both.master(), both.master("worker", 2)) == ("grpc://m:1", "grpc://w:3")
    own = resolvers.UnionResolver(simple(SPEC, task_id=3), task_id=0)
    assert own.task_id == 0
    numbered = simple(tf.train.ClusterSpec({"worker": {5: "w:5"}}))
    assert resolvers.UnionResolver(simple(SPEC), numbered).cluster_spec().as_dict()["worker"] == {
        0: "w:1", 1: "w:2", 5: "w:5",
    }  # fmt: skip
    with pytest.raises(KeyError, match="Duplicate keys"):
        resolvers.UnionResolver(numbered, numbered).cluster_spec()
    with pytest.raises(ValueError, match="At least one"):
        resolvers.UnionResolver()
    with pytest.raises(TypeError, match="sub-class"):
        resolvers.UnionResolver(SPEC)
    with pytest.raises(ValueError, match="Unexpected kwargs"):
        resolvers.UnionResolver(numbered, other=1)


@pytest.fixture
def allocated(monkeypatch, tmp_path):
    """An allocation of two nodes by Slurm, whose command is on the path."""
    command = tmp_path / "scontrol"
    command.write_text("#!/bin/sh\necho a\necho b\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("SLURM_PROCID", "2")
    monkeypatch.setenv("SLURM_NTASKS", "4")
    monkeypatch.delenv("SLURM_NTASKS_PER_NODE", raising=False)
    monkeypatch.delenv("OMPI_COMM_WORLD_RANK", raising=False)


def test_tasks_of_slurm(allocated, monkeypatch):
    jobs = {"ps": 1, "worker": 3}
    found = resolvers.SlurmClusterResolver(jobs, 1000, 4, 2, tasks_per_node=2)
    assert (found.get_task_info(), found.master()) == ((None, None), "")
    assert found.cluster_spec().as_dict() == {
        "ps": ["a:1000"], "worker": ["a:1001", "b:1000", "b:1001"],
    }  # fmt: skip
    assert (found.get_task_info(), found.master()) == (("worker", 1), "grpc://b:1000")
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "0,1"
    assert found.num_accelerators() == {"GPU": 4}
    with pytest.raises(RuntimeError, match="more GPUs per node"):
        resolvers.SlurmClusterResolver(jobs, tasks_per_node=2)
    with pytest.raises(RuntimeError, match="more tasks then assigned"):
        resolvers.SlurmClusterResolver({"ps": 1}, tasks_per_node=1)
    with pytest.raises(RuntimeError, match="SLURM_NTASKS_PER_NODE is set"):
        resolvers.SlurmClusterResolver(jobs)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(FileNotFoundError, match="scontrol"):
        found.cluster_spec()


class Pods:
    """Kubernetes' client, as far as it is asked: pods by selector, as (name, phase, address)."""

    def __init__(self, **pods: list[tuple[str, str, str]]) -> None:
        self._pods = pods

    def list_pod_for_all_namespaces(self, label_selector: str) -> Any:
        items = [
            SimpleNamespace(
                metadata=SimpleNamespace(name=name),
                status=SimpleNamespace(phase=phase, host_ip=address),
            )
            for name, phase, address in self._pods[label_selector]
        ]
        return SimpleNamespace(items=items)


def test_pods_of_kubernetes():
    pods = Pods(a=[("2", "Running", "ip2"), ("1", "Running", "ip1")], b=[("3", "Running", "ip3")])
    found = resolvers.KubernetesClusterResolver({"worker": ["a", "b"]}, 9, override_client=pods)
    assert found.cluster_spec().as_dict() == {"worker": ["ip1:9", "ip2:9", "ip3:9"]}
    assert (found.master(), found.master("worker", 2)) == ("", "grpc://ip3:9")
    waiting = Pods(a=[("1", "Pending", "ip1")])
    bad = resolvers.KubernetesClusterResolver({"worker": ["a"]}, override_client=waiting)
    with pytest.raises(RuntimeError, match='Pod "1" is not running; phase: "Pending"'):
        bad.cluster_spec()


class Machines:
    """Compute Engine's interface, as far as it is asked: two pages of machines by name."""

    def __init__(self, *pages: dict[str, str]) -> None:
        self._pages = pages

    def instanceGroups(self) -> Machines:
        return self

    instances = instanceGroups

    def listInstances(self, **asked: Any) -> Any:
        assert asked["body"] == {"instanceState": "RUNNING"}
        return self._page(0)

    def listInstances_next(self, previous_request: Any, previous_response: Any) -> Any:
        return self._page(previous_request.number + 1)

    def _page(self, number: int) -> Any:
        if number == len(self._pages):
            return None
        items = [{"instance": f"https://zone/{name}"} for name in self._pages[number]]
        return SimpleNamespace(number=number, execute=lambda: {"items": items})

    def get(self, project: str, zone: str, instance: str) -> Any:
        address = next(page[instance] for page in self._pages if instance in page)
        return SimpleNamespace(execute=lambda: {"networkInterfaces": [{"networkIP": address}]})


def test_machines_of_compute_engine():
    service = Machines({"x": "10.2", "y": "10.1"}, {"z": "10.3"})
    found = resolvers.GCEClusterResolver("project", "zone", "group", 9, service=service)
    assert found.cluster_spec().as_dict() == {"worker": ["10.1:9", "10.2:9", "10.3:9"]}
    assert (found.master(), found.master("worker", 2, "x")) == ("grpc://10.1:9", "x://10.3:9")
    found.task_id = 1
    assert found.master() == "grpc://10.2:9"
    with pytest.raises(RuntimeError, match="cannot reset the task_type"):
        found.task_type = "ps"


def test_programs_that_use_no_tpu_say_so_to_its_resolver(monkeypatch):
    monkeypatch.delenv("TPU_NAME", raising=False)
    monkeypatch.delenv("KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS", raising=False)
    for none in ("", [""], "local"):
        found = resolvers.TPUClusterResolver(none, zone="z", project="p")
        assert found.master() == found.get_master() == "".join(none)
        assert found.cluster_spec() is None and found.get_job_name() is None
        assert (found.task_type, found.environment) == ("worker", "google")
        assert found.num_accelerators() == {"TPU": 0}
    with pytest.raises(ValueError, match="Please provide a TPU Name to connect to"):
        resolvers.TPUClusterResolver()
    monkeypatch.setenv("TPU_NAME", "mine")
    with pytest.raises(tf.errors.UnimplementedError, match="no way to the TPU 'mine' from here"):
        resolvers.TPUClusterResolver()
    with pytest.raises(ValueError, match="At least one TPU"):
        resolvers.TPUClusterResolver([])
    with pytest.raises(NotImplementedError, match="multiple TPUs"):
        resolvers.TPUClusterResolver(["a", "b"])
