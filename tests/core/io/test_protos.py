"""TF's messages: lazy, the generated ones as they are, the built ones with TF's wire format."""

from __future__ import annotations

import subprocess
import sys

import pytest

from opdock.io import protos


def test_importing_opdock_loads_no_protobuf() -> None:
    code = (
        "import sys, opdock, opdock.io.protos; "
        "sys.exit(any(m.startswith(('google.protobuf', 'tensorboard')) for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", dir(protos))
def test_every_listed_message_exists(name: str) -> None:
    assert getattr(protos, name) is not None


def test_unknown_messages_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="NoSuchMessage"):
        protos.NoSuchMessage


def test_config_proto_as_in_tf1() -> None:
    config = protos.ConfigProto(allow_soft_placement=True, log_device_placement=True)
    config.gpu_options.allow_growth = True
    config.gpu_options.per_process_gpu_memory_fraction = 0.5
    config.device_count["GPU"] = 0
    config.graph_options.optimizer_options.global_jit_level = protos.OptimizerOptions.ON_1
    assert protos.ConfigProto.FromString(config.SerializeToString()) == config
    assert protos.RunOptions.FULL_TRACE == 3
    assert protos.RunOptions(trace_level=protos.RunOptions.FULL_TRACE).trace_level == 3


def test_built_messages_have_tensorflows_bytes() -> None:
    slice_proto = protos.TensorSliceProto()
    slice_proto.extent.add(start=3, length=2)
    slice_proto.extent.add()
    assert slice_proto.SerializeToString() == b"\n\x04\x08\x03\x10\x02\n\x00"
    assert not slice_proto.extent[1].HasField("length")
    feature = protos.Feature(int64_list=protos.Int64List(value=[1, 300]))
    assert feature.SerializeToString() == b"\x1a\x05\n\x03\x01\xac\x02"
    assert feature.WhichOneof("kind") == "int64_list"
    example = protos.Example(features=protos.Features(feature={"k": feature}))
    assert protos.Example.FromString(example.SerializeToString()).features.feature["k"] == feature
    entry = protos.BundleEntryProto(dtype=1, crc32c=7)
    assert entry.SerializeToString() == b"\x08\x01\x35\x07\x00\x00\x00"
    context = protos.ControlFlowContextDef()
    context.while_ctxt.values_def.external_values["a"] = "b"
    assert context.WhichOneof("ctxt") == "while_ctxt"


def test_checkpoint_state_reads_as_text() -> None:
    from google.protobuf import text_format

    state = text_format.Parse(
        'model_checkpoint_path: "m"\nall_model_checkpoint_paths: "m"\n', protos.CheckpointState()
    )
    assert state.model_checkpoint_path == "m"
    assert list(state.all_model_checkpoint_paths) == ["m"]
