"""Device names in all of TF's spellings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import opdock as tf


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("/cpu:0", "/device:CPU:0"),
        ("/gpu:1", "/device:GPU:1"),
        ("/GPU:1", "/device:GPU:1"),
        ("/device:GPU:2", "/device:GPU:2"),
        ("cpu:0", "/device:CPU:0"),
        ("/job:ps", "/job:ps"),
        ("/job:ps/task:3", "/job:ps/task:3"),
        ("/job:localhost/replica:0/task:0/cpu:0", "/job:localhost/replica:0/task:0/device:CPU:0"),
        ("/job:w/replica:1/task:2/device:GPU:3", "/job:w/replica:1/task:2/device:GPU:3"),
        ("/device:GPU:*", "/device:GPU:*"),
        ("/device:ECHO:0", "/device:ECHO:0"),
        ("", ""),
    ],
)
def test_spellings(text, full):
    assert tf.DeviceSpec.from_string(text).to_string() == full
    with tf.Graph().as_default(), tf.device(text):
        assert tf.no_op().device == full


@pytest.mark.parametrize("wrong", ["/cpu:0/gpu:0", "/nothing", "/job:a/what:3", "/task:x", "gpu:x"])
def test_what_is_no_device(wrong):
    with pytest.raises(ValueError):
        with tf.Graph().as_default(), tf.device(wrong):
            tf.no_op()


def test_a_spec_as_device():
    spec = tf.DeviceSpec(job="ps", task=1, device_type="CPU", device_index=0)
    with tf.Graph().as_default(), tf.device(spec):
        assert tf.no_op().device == "/job:ps/task:1/device:CPU:0"


def test_merging():
    spec = tf.DeviceSpec.from_string("/job:ps/task:1")
    spec.merge_from(tf.DeviceSpec.from_string("/task:2/gpu:0"))
    assert spec.to_string() == "/job:ps/task:2/device:GPU:0"
    assert (spec.job, spec.task, spec.device_type, spec.device_index) == ("ps", 2, "GPU", 0)


def test_fields_convert_as_the_constructor_does():
    spec = tf.DeviceSpec()
    spec.job, spec.task, spec.device_type = 7, "3", "gpu"
    assert spec.to_string() == "/job:7/task:3/device:GPU:*"
    with pytest.raises(ValueError, match="invalid literal for int"):
        spec.task = "x"


def test_new_specs_from_old():
    spec = tf.DeviceSpec(job="ps", task=1)
    assert spec.replace(task=None, device_type="cpu").to_string() == "/job:ps/device:CPU:*"
    merged = spec.make_merged_spec(tf.DeviceSpec(task=2, device_index=0))
    assert (merged.job, merged.task, merged.device_index) == ("ps", 2, 0)
    assert spec.to_string() == "/job:ps/task:1"


parts = st.fixed_dictionaries({
    "job": st.sampled_from([None, "ps", "worker"]),
    "replica": st.one_of(st.none(), st.integers(0, 3)),
    "task": st.one_of(st.none(), st.integers(0, 3)),
    "device_type": st.sampled_from([None, "CPU", "GPU"]),
})  # fmt: skip


@given(parts, st.one_of(st.none(), st.integers(0, 3)))
def test_text_and_spec_agree(fields, index):
    if fields["device_type"] is None:
        index = None
    spec = tf.DeviceSpec(**fields, device_index=index)
    again = tf.DeviceSpec.from_string(spec.to_string())
    assert again.to_string() == spec.to_string()
    assert (again.job, again.replica, again.task) == (spec.job, spec.replica, spec.task)
    assert (again.device_type, again.device_index) == (spec.device_type, spec.device_index)


@given(parts, parts)
def test_the_inner_scope_wins_field_by_field(outer, inner):
    with tf.Graph().as_default():
        with tf.device(tf.DeviceSpec(**outer)), tf.device(tf.DeviceSpec(**inner)):
            got = tf.DeviceSpec.from_string(tf.no_op().device)
    for field in ("job", "replica", "task", "device_type"):
        want = inner[field] if inner[field] is not None else outer[field]
        assert getattr(got, field) == want
