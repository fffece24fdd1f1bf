"""The classes of run-time errors and what they carry."""

from __future__ import annotations

import pickle

import pytest

import opdock as tf

CODES = {
    "CancelledError": 1, "UnknownError": 2, "InvalidArgumentError": 3, "DeadlineExceededError": 4,
    "NotFoundError": 5, "AlreadyExistsError": 6, "PermissionDeniedError": 7,
    "ResourceExhaustedError": 8, "FailedPreconditionError": 9, "AbortedError": 10,
    "OutOfRangeError": 11, "UnimplementedError": 12, "InternalError": 13, "UnavailableError": 14,
    "DataLossError": 15, "UnauthenticatedError": 16,
}  # fmt: skip


@pytest.mark.parametrize("name", CODES)
def test_code_and_message(name):
    error = getattr(tf.errors, name)(None, None, "what happened")
    assert isinstance(error, tf.errors.OpError)
    assert isinstance(error, Exception)
    assert error.error_code == CODES[name]
    assert error.message == "what happened"
    assert error.op is None
    assert error.node_def is None
    assert str(error) == "what happened"
    again = type(error)(error.node_def, error.op, "more of it", error.error_code)
    assert again.message == "more of it" and again.error_code == CODES[name]


def test_the_string_names_the_op_and_the_line():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, name="hungry")
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(x)
    assert caught.value.op is x.op
    assert caught.value.node_def.name == "hungry"
    assert "hungry" in str(caught.value)
    assert __file__ in str(caught.value)


def test_exceptions_to_and_from_codes():
    assert tf.errors.exception_type_from_error_code(3) is tf.errors.InvalidArgumentError
    assert tf.errors.error_code_from_exception_type(tf.errors.OutOfRangeError) == 11


def test_numbers_as_constants():
    assert (tf.errors.OK, tf.errors.CANCELLED, tf.errors.DATA_LOSS) == (0, 1, 15)


def test_the_base_class_catches_all():
    with pytest.raises(tf.OpError):
        raise tf.errors.NotFoundError(None, None, "gone")


def test_an_error_survives_pickling():
    error = pickle.loads(pickle.dumps(tf.errors.AbortedError(None, None, "late")))
    assert type(error) is tf.errors.AbortedError
    assert error.message == "late"
