"""A resolver for the TPUs of a cloud, which knows that this process uses none."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from opdock import errors
from opdock.distribute.cluster_resolver.resolver import ClusterResolver, format_master_url

__all__ = ["TPUClusterResolver"]

# Where the environment names a TPU: in Google's Kubernetes, and elsewhere.
_VARIABLES = ("KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS", "TPU_NAME")
_NONE = ("", "local")  # what programs give for a TPU where they run without one


class TPUClusterResolver(ClusterResolver):
    """What programs make whether they use a TPU or not, and hand to a `RunConfig`.

    Args:
        tpu: "" or "local" where no TPU is used, or a list of one of them; by default what the
            environment says.
        zone: where TPUs are; ignored, as are all that follow but the job's name.
        project: who pays for them.
        job_name: the job of the workers.
        coordinator_name: the job of who leads them.
        coordinator_address: where that one is.
        credentials: who asks.
        service: who knows.
        discovery_url: where that one is.

    Raises:
        ValueError: no TPU is named, not even "".
        NotImplementedError: several are.
        UnimplementedError: one is.
    """

    def __init__(
        self, tpu: str | Sequence[str] | None = None, zone: str | None = None,
        project: str | None = None, job_name: str = "worker", coordinator_name: str | None = None,
        coordinator_address: str | None = None, credentials: Any = "default", service: Any = None,
        discovery_url: str | None = None,
    ) -> None:  # fmt: skip
        self._tpu = _named(tpu)
        self.task_type, self.task_id, self.rpc_layer = job_name, 0, None

    @property
    def environment(self) -> str:
        """What kind of place this is, in TensorFlow's words for one without the cloud's service."""
        return "google"

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """The target for sessions: those of this process."""
        return format_master_url(self._tpu, rpc_layer)

    def get_master(self) -> str:
        """The same."""
        return self.master()

    def get_job_name(self) -> None:
        """The job that TPUs have in a cluster: there is none."""

    def cluster_spec(self) -> Any:
        """The tasks: None, as there are none."""

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """How many cores a task has."""
        return {"TPU": 0}


def _named(tpu: str | Sequence[str] | None) -> str:
    """What was given for a TPU, if it means that there is none."""
    if isinstance(tpu, list):
        if not tpu:
            raise ValueError("At least one TPU must be specified.")
        if len(tpu) != 1:
            raise NotImplementedError(
                "Using multiple TPUs in a single session is not yet implemented"
            )
        (tpu,) = tpu
    if tpu is None:
        tpu = next((os.environ[name] for name in _VARIABLES if name in os.environ), None)
    if tpu is None:
        raise ValueError("Please provide a TPU Name to connect to.")
    if tpu not in _NONE:
        raise errors.UnimplementedError(
            None, None,
            f"There is no way to the TPU {tpu!r} from here: where use_tpu is False, give '' for it",
        )  # fmt: skip
    return str(tpu)
