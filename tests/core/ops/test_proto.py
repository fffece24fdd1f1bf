"""Protocol buffers as tensors: fields, defaults, descriptors from anywhere, hostile bytes."""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

import opdock as tf

Field = descriptor_pb2.FieldDescriptorProto
KINDS = {
    "d": ("double", tf.float64), "f": ("float", tf.float32), "i": ("int32", tf.int64),
    "l": ("int64", tf.int64), "u": ("uint64", tf.uint64), "b": ("bool", tf.bool),
    "s": ("string", tf.string), "y": ("bytes", tf.string),
}  # fmt: skip


def described():
    """A file with one message type: a field of each kind, single and repeated, and itself."""
    file = descriptor_pb2.FileDescriptorProto(name="given.proto", package="given", syntax="proto2")
    message = file.message_type.add(name="Given")
    for n, (name, (kind, _)) in enumerate(KINDS.items()):
        number = getattr(Field, f"TYPE_{kind.upper()}")
        message.field.add(name=name, number=2 * n + 1, type=number, label=Field.LABEL_OPTIONAL)
        message.field.add(name=name * 2, number=2 * n + 2, type=number, label=Field.LABEL_REPEATED)
    message.field.add(
        name="more", number=90, type=Field.TYPE_MESSAGE, type_name=".given.Given",
        label=Field.LABEL_REPEATED,
    )  # fmt: skip
    message.field.add(
        name="nine", number=91, type=Field.TYPE_INT32, label=Field.LABEL_OPTIONAL,
        default_value="9",
    )  # fmt: skip
    return descriptor_pb2.FileDescriptorSet(file=[file])


FILES = described()
SOURCE = b"bytes://" + FILES.SerializeToString()
POOL = descriptor_pool.DescriptorPool()
POOL.Add(FILES.file[0])
Given = message_factory.GetMessageClass(POOL.FindMessageTypeByName("given.Given"))


def decode(messages, names, types, **kwargs):
    """Evaluates the op on serialized messages."""
    kwargs = {"descriptor_source": SOURCE, "message_type": "given.Given", **kwargs}
    with tf.Session() as session:
        return session.run(
            tf.io.decode_proto(messages, field_names=names, output_types=types, **kwargs)
        )


def test_fields_and_what_stands_for_none():
    one = Given(d=1.5, ss=["a", "bc"], ii=[1, -2, 3], more=[Given(l=-7)])
    two = Given(b=True, y=b"\0\xff", ff=[0.5])
    names = ["d", "ss", "ii", "more", "b", "y", "ff", "nine"]
    types = [tf.float64, tf.string, tf.int64, tf.string, tf.bool, tf.string, tf.float64, tf.int32]
    batch = [[one.SerializeToString(), two.SerializeToString(), b""]]
    sizes, values = decode(batch, names, types)
    assert sizes.tolist() == [[[1, 2, 3, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 1, 1, 0], [0] * 8]]
    got = dict(zip(names, values, strict=True))
    assert got["d"].tolist() == [[[1.5], [0], [0]]]
    assert got["ss"].tolist() == [[[b"a", b"bc"], [b"", b""], [b"", b""]]]
    assert got["ii"].tolist() == [[[1, -2, 3], [0, 0, 0], [0, 0, 0]]]
    assert Given.FromString(got["more"][0, 0, 0]).l == -7
    assert got["b"].ravel().tolist() == [False, True, False]
    assert got["y"].ravel().tolist() == [b"", b"\0\xff", b""]
    assert got["ff"].dtype == np.float64
    assert got["nine"].ravel().tolist() == [9, 9, 9]


def test_there_and_back(tmp_path):
    rng = np.random.default_rng(1)
    names = [n * 2 for n in KINDS]
    types = [dtype for _, dtype in KINDS.values()]
    messages = []
    for count in (0, 1, 3):
        m = Given()
        m.dd.extend(rng.normal(size=count))
        m.ff.extend(rng.normal(size=count).astype(np.float32))
        m.ii.extend(rng.integers(-9, 9, count).tolist())
        m.ll.extend(rng.integers(-(2**60), 2**60, count).tolist())
        m.uu.extend([2**64 - 1] * count)
        m.bb.extend([True] * count)
        m.ss.extend(["ä"] * count)
        m.yy.extend([b"\xff"] * count)
        messages.append(m.SerializeToString())
    path = tmp_path / "given.pb"
    path.write_bytes(FILES.SerializeToString())
    sizes, values = tf.io.decode_proto(
        messages, "given.Given", names, types, descriptor_source=str(path)
    )
    back = tf.io.encode_proto(sizes, values, names, "given.Given", descriptor_source=SOURCE)
    assert back.shape == (3,)
    with tf.Session() as session:
        again = session.run(back)
    assert [Given.FromString(b) for b in again] == [Given.FromString(b) for b in messages]


def test_messages_within_messages_and_text():
    inner = Given(i=4).SerializeToString()
    with tf.Session() as session:
        out = session.run(
            tf.io.encode_proto(
                [[2, 1]], [[[inner, inner]], [["x"]]], ["more", "s"], "given.Given",
                descriptor_source=SOURCE,
            )
        )  # fmt: skip
    assert [m.i for m in Given.FromString(out[0]).more] == [4, 4]
    sizes, (values,) = decode(["ii: 3 ii: 4"], ["ii"], [tf.int64], message_format="text")
    assert sizes.tolist() == [[2]] and values.tolist() == [[3, 4]]


def test_types_of_this_process():
    example = tf.train.Example()
    example.features.feature["a"].int64_list.value.append(3)
    sizes, (features,) = decode(
        [example.SerializeToString()], ["features"], [tf.string],
        message_type=type(example).DESCRIPTOR.full_name, descriptor_source="local://",
    )  # fmt: skip
    assert sizes.tolist() == [[1]]
    assert type(example.features).FromString(features[0, 0]) == example.features


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"message_type": "given.None"}, "InvalidArgumentError", "No descriptor found for message"),
        ({"names": ["what"]}, "InvalidArgumentError", "Unknown field: what in message type"),
        ({"types": [tf.string]}, "InvalidArgumentError", "Unexpected output type for given.Given"),
        ({"types": []}, "InvalidArgumentError", "must have the same length"),
        ({"message_format": "json"}, "InvalidArgumentError", "must be one of binary or text"),
        ({"messages": [b"\x09"]}, "DataLossError", "Unable to parse binary protobuf"),
        ({"messages": [b"\xa2\x05\xff"]}, "DataLossError", "Unable to parse binary protobuf"),
        ({"messages": np.zeros(0, "S1")}, "InvalidArgumentError", "at least one value"),
        ({"descriptor_source": b"bytes://\xff"}, "InvalidArgumentError",
         "invalid FileDescriptorSet"),
        ({"descriptor_source": "/nowhere/at/all"}, "NotFoundError", "nowhere"),
    ],
)  # fmt: skip
def test_what_is_no_message_or_no_field_is_refused(change, error, message):
    call = {"messages": [b""], "names": ["ii"], "types": [tf.int64], **change}
    with pytest.raises(getattr(tf.errors, error), match=message):
        decode(**call)


@pytest.mark.parametrize(
    ("sizes", "values", "message"),
    [
        ([[3]], [[[1, 2]]], "is 3, but there are 2 values"),
        ([[-1]], [[[1, 2]]], "is -1, but there are 2 values"),
        ([[1, 1]], [[[1, 2]]], "sizes should be batch_size"),
        ([[1], [1]], [[[1, 2]]], "does not fit sizes of shape"),
    ],
)
def test_what_makes_no_message_is_refused(sizes, values, message):
    given = [tf.constant(v, tf.int64) for v in values]
    op = tf.io.encode_proto(sizes, given, ["ii"], "given.Given", descriptor_source=SOURCE)
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(op)


def with_default(change=None):
    """The file, with a default value where a field may come several times; again, if changed."""
    first, second = described().file[0], described().file[0]
    first.message_type[0].field[13].default_value = "m:1"  # "ss"
    return [first] if change is None else [first, change(second)]


def unnamed(file):
    file.ClearField("name")
    return file


def with_map(change):
    """The file, with a map whose entry is not as maps have it."""
    file = described().file[0]
    message = file.message_type[0]
    entry = message.nested_type.add(name="MapEntry", options={"map_entry": True})
    entry.field.add(name="key", number=1, type=Field.TYPE_STRING, label=1)
    entry.field.add(name="value", number=2, type=Field.TYPE_INT32, label=1)
    message.field.add(
        name="map", number=95, type=Field.TYPE_MESSAGE, type_name="MapEntry", label=3
    )  # fmt: skip
    change(message, entry)
    return [file]


REPEATED = "given.proto: given.Given.ss is repeated, and so can't have a default value"
NO_ENTRY = "given.Given.MapEntry has the option map_entry, but not the fields of an entry alone"
NO_MAP = "has the type of an entry of a map, but is no map"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (with_default(), REPEATED),
        # Both have broken protobuf: a file that comes again, the same or another, with or without
        # a name, where a default value stands at a field that has none.
        ([unnamed(f) for f in with_default(lambda f: with_default()[0])],
         "FileDescriptorProto: : given.Given.ss is repeated"),
        (with_default(lambda f: f), REPEATED),
        ([described().file[0], with_default()[0]], "another file of the set has the same name"),
        (with_map(lambda m, e: setattr(e.field[0], "name", "kay")), NO_ENTRY),
        (with_map(lambda m, e: setattr(e.field[1], "number", 3)), NO_ENTRY),
        (with_map(lambda m, e: setattr(e.field[1], "label", Field.LABEL_REQUIRED)), NO_ENTRY),
        (with_map(lambda m, e: setattr(e.field[0], "type", Field.TYPE_BYTES)), NO_ENTRY),
        (with_map(lambda m, e: e.oneof_decl.add(name="o")), NO_ENTRY),
        (with_map(lambda m, e: setattr(m.field[-1], "label", Field.LABEL_OPTIONAL)),
         f"given.Given.map {NO_MAP}"),
        (with_map(lambda m, e: m.nested_type.add(name="In").field.add(
            name="a", number=1, type=Field.TYPE_MESSAGE, type_name="MapEntry", label=3)),
         f"given.Given.In.a {NO_MAP}"),
        (with_map(lambda m, e: m.options.uninterpreted_option.add().name.add()),
         "invalid FileDescriptorSet: it lacks .*uninterpreted_option"),
    ],
)  # fmt: skip
def test_descriptors_that_no_compiler_writes_are_refused(files, message):
    described = descriptor_pb2.FileDescriptorSet(file=files).SerializePartialToString()
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        decode([b""], ["ii"], [tf.int64], descriptor_source=b"bytes://" + described)


def test_a_file_that_comes_twice_and_maps_of_parts_of_messages():
    def of_messages(message, entry):
        part = message.nested_type.add(name="Part")
        part.field.add(name="must", number=1, type=Field.TYPE_INT32, label=Field.LABEL_REQUIRED)
        part.field.add(name="may", number=2, type=Field.TYPE_INT32, label=Field.LABEL_OPTIONAL)
        entry.field[1].type, entry.field[1].type_name = Field.TYPE_MESSAGE, "Part"

    files = descriptor_pb2.FileDescriptorSet(file=with_map(of_messages) * 2)
    source = b"bytes://" + files.SerializeToString()
    given = b"\xfa\x05\x07\x0a\x01k\x12\x02\x10\x05"  # map { key: "k" value { may: 5 } }
    sizes, (values,) = decode([given], ["map"], [tf.string], descriptor_source=source)
    assert sizes.tolist() == [[1]]
    assert values.tolist() == [[given[3:]]]
