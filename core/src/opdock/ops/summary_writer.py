"""Ops that write summaries by themselves, to the file behind a writer's handle."""

from __future__ import annotations

from opdock.ops.registry import Cost, Traits, define_op
from opdock.ops.support.common_shapes import no_outputs, scalar

__all__: list[str] = []

summary_writer_op = define_op(
    "SummaryWriter", "-> writer: resource", 'shared_name: string = "", container: string = ""',
    stateful=True,
)  # fmt: skip
create_summary_file_writer_op = define_op(
    "CreateSummaryFileWriter",
    "writer: resource, logdir: string, max_queue: int32, flush_millis: int32,"
    " filename_suffix: string ->",
    stateful=True,
)
flush_summary_writer_op = define_op("FlushSummaryWriter", "writer: resource ->", stateful=True)
close_summary_writer_op = define_op("CloseSummaryWriter", "writer: resource ->", stateful=True)
write_summary_op = define_op(
    "WriteSummary",
    "writer: resource, step: int64, tensor: T, tag: string, summary_metadata: string ->",
    "T: type", stateful=True,
)  # fmt: skip
write_scalar_summary_op = define_op(
    "WriteScalarSummary", "writer: resource, step: int64, tag: string, value: T ->",
    "T: realnumbertype", stateful=True,
)  # fmt: skip
write_histogram_summary_op = define_op(
    "WriteHistogramSummary", "writer: resource, step: int64, tag: string, values: T ->",
    "T: realnumbertype = float", stateful=True,
)  # fmt: skip
write_image_summary_op = define_op(
    "WriteImageSummary",
    "writer: resource, step: int64, tag: string, tensor: T, bad_color: uint8 ->",
    "max_images: int >= 1 = 3, T: {uint8, float, half} = float", stateful=True,
)  # fmt: skip
write_audio_summary_op = define_op(
    "WriteAudioSummary",
    "writer: resource, step: int64, tag: string, tensor: float, sample_rate: float ->",
    "max_outputs: int >= 1 = 3", stateful=True,
)  # fmt: skip
write_graph_summary_op = define_op(
    "WriteGraphSummary", "writer: resource, step: int64, tensor: string ->", stateful=True
)
write_raw_proto_summary_op = define_op(
    "WriteRawProtoSummary", "writer: resource, step: int64, tensor: string ->", stateful=True
)
import_event_op = define_op("ImportEvent", "writer: resource, event: string ->", stateful=True)

summary_writer_op.shape(scalar)
summary_writer_op.not_differentiable()
for _op in (
    create_summary_file_writer_op, flush_summary_writer_op, close_summary_writer_op,
    write_summary_op, write_scalar_summary_op, write_histogram_summary_op, write_image_summary_op,
    write_audio_summary_op, write_graph_summary_op, write_raw_proto_summary_op, import_event_op,
):  # fmt: skip
    _op.shape(no_outputs)
    _op.declare(Traits(effect=True, cost=Cost.WAIT))
    _op.not_differentiable()
