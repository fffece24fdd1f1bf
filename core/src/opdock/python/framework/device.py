"""TF's place of device specifications."""

from opdock.graph.nodes.devicespec import DeviceSpec, canonical_name, merge_device

check_valid = DeviceSpec.from_string

__all__ = ["DeviceSpec", "canonical_name", "check_valid", "merge_device"]
