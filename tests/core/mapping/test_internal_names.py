"""Names of TF's internal tree that libraries lean on, and what they do with them."""

from __future__ import annotations

import functools
import importlib
import os
import sys
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import pytest

import opdock as tf
from opdock.mapping import resolve


@pytest.fixture(autouse=True)
def _mapped() -> None:
    tf.install_as_tensorflow()


def test_composites_have_one_base() -> None:
    from tensorflow.python.framework.composite_tensor import CompositeTensor

    sparse = tf.SparseTensor([[0]], [1.0], [2])
    ragged = tf.ragged.constant([[1], [2, 3]])
    assert isinstance(sparse, CompositeTensor) and isinstance(ragged, CompositeTensor)
    assert not isinstance(tf.constant(1), CompositeTensor)


def test_a_lazy_module_takes_its_place_when_it_is_used() -> None:
    from tensorflow.python.util.lazy_loader import LazyLoader

    space: dict[str, Any] = {}
    lazy = space["wave"] = LazyLoader("wave", space, "wave")
    loaded_before = "wave" in sys.modules
    assert isinstance(lazy, ModuleType) and lazy.open is sys.modules["wave"].open
    assert space["wave"] is sys.modules["wave"] and "open" in dir(lazy)
    assert loaded_before or "wave" in sys.modules


def test_a_registered_class_counts_as_a_tensor() -> None:
    from tensorflow.python.framework import ops

    class Late:
        pass

    assert not tf.is_tensor(Late())
    ops.register_dense_tensor_like_type(Late)
    assert tf.is_tensor(Late())


def test_ops_are_listed_with_their_definitions() -> None:
    from tensorflow.python.framework import op_def_registry

    found = op_def_registry.get_registered_ops()
    assert [a.name for a in found["MatMul"].input_arg] == ["a", "b"]


def test_columns_of_a_program_derive_from_the_older_class_and_the_newer() -> None:
    from tensorflow.python.feature_column import feature_column as old
    from tensorflow.python.feature_column import feature_column_v2 as new

    class Mine(old._DenseColumn, new.DenseColumn):
        pass

    number = tf.feature_column.numeric_column("x")
    assert issubclass(Mine, new.DenseColumn) and isinstance(number, old._DenseColumn)
    assert not isinstance(number, old._CategoricalColumn)
    assert new._StateManagerImpl(layer=None, trainable=False) is not None


def test_an_alias_of_a_generated_function() -> None:
    from tensorflow.python.ops import init_ops, math_ops

    assert isinstance(tf.zeros_initializer(), init_ops.Initializer)
    with tf.Session() as sess:
        assert sess.run(math_ops.negative(2)) == -2


def test_there_is_one_replica() -> None:
    context = tf.distribute.get_replica_context()
    assert context.num_replicas_in_sync == 1 and not tf.distribute.has_strategy()
    assert context.merge_call(lambda strategy, x: (strategy, x), args=(3,)) == (
        tf.distribute.get_strategy(), 3
    )  # fmt: skip
    assert context.replica_id_in_sync_group == 0


def test_arguments_are_seen_through_decorators_of_tfs_kind() -> None:
    from tensorflow.python.util import tf_decorator, tf_inspect

    def plain(x, y=1):
        return x + y

    def wrapper(*args, **kwargs):
        return plain(*args, **kwargs)

    made = tf_decorator.make_decorator(plain, wrapper)
    assert tf_inspect.getfullargspec(made).args == ["x", "y"]
    other = functools.wraps(plain)(lambda *args: plain(*args))
    assert tf_inspect.getfullargspec(other).varargs == "args"
    concat = tf_inspect.getfullargspec(tf.concat)
    assert concat == tf_inspect.getfullargspec(lambda values, axis, name="concat": None)


def test_lists_that_differ_in_length_are_compared_element_by_element() -> None:
    class Case(tf.test.TestCase):
        def runTest(self) -> None:
            self.assertAllEqual([[32], [32, None]], [[32], [32, None]])
            with self.assertRaises(AssertionError):
                self.assertAllEqual([[32], [32, None]], [[32], [32, 1]])

    assert Case().run().wasSuccessful()
    assert np.ndim(Case()._GetNdArray([[1], [1, 2]])) == 1


def test_helpers_of_cells_and_of_custom_gradients() -> None:
    from tensorflow.python.ops import custom_gradient as gradients
    from tensorflow.python.ops import rnn_cell_impl as cells

    batch = tf.placeholder_with_default(2, [])
    assert cells._concat(batch, tf.TensorShape([3, 4]), static=True) == [None, 3, 4]
    assert cells._concat([5], tf.constant([3, 4]), static=True) == [5, 3, 4]
    x = tf.constant([3.0])
    y = gradients._graph_mode_decorator(lambda t: (t * t, lambda dy: dy * 10.0), x)
    with tf.Session() as sess:
        assert sess.run(cells._concat(batch, 7)).tolist() == [2, 7]
        assert sess.run([y, *tf.gradients(y, x)]) == [[9.0], [10.0]]
    with pytest.raises(ValueError, match="prefix or suffix of None"):
        cells._concat(batch, tf.TensorShape([None]))
    with pytest.raises(ValueError, match="either a scalar or vector"):
        cells._concat(tf.ones([2, 2], tf.int32), 7)


def test_names_of_contrib_framework_that_are_public_elsewhere() -> None:
    from tensorflow.contrib import framework

    assert framework.is_tensor is tf.is_tensor
    assert framework.strip_name_scope("loc:@a/b", "a/") == "loc:@b"
    assert framework.prepend_name_scope("^b", "a") == "^a/b"
    assert framework.smart_cond(True, lambda: 1, lambda: 2) == 1


def test_a_class_of_a_program_is_sliced_as_variables_are() -> None:
    from tensorflow.python.ops import array_ops

    class Held:
        __getitem__ = array_ops._SliceHelperVar

        def value(self) -> tf.Tensor:
            return tf.constant([1, 2, 3])

    with tf.Session() as session:
        assert session.run(Held()[1:]).tolist() == [2, 3]
        assert session.run(array_ops._slice_helper(tf.constant([1, 2]), 1)) == 2


def test_sessions_and_hooks_under_the_names_that_they_had_in_contrib() -> None:
    from tensorflow.contrib.learn.python.learn import (
        basic_session_run_hooks,
        monitored_session,
        summary_writer_cache,
    )

    assert monitored_session.MonitoredSession is tf.train.MonitoredSession
    assert basic_session_run_hooks.StopAtStepHook is tf.train.StopAtStepHook
    assert summary_writer_cache.SummaryWriterCache is tf.summary.FileWriterCache


def test_contribs_module_of_nested_structures_has_what_the_internal_one_has() -> None:
    from tensorflow.contrib.framework import nest as public
    from tensorflow.python.util import nest as internal

    assert public.map_structure_up_to([0, 0], len, ["ab", "c"]) == [2, 1]
    for name in dir(public):
        if not name.startswith("_") and callable(getattr(public, name)):
            assert getattr(public, name) is getattr(internal, name), name


def test_an_internal_name_that_was_meant() -> None:
    from tensorflow.contrib import rnn
    from tensorflow.python.ops import math_ops

    with pytest.raises(AttributeError, match="did you mean 'BasicLSTMCell'"):
        rnn.BasicLSTMCel
    with pytest.raises(AttributeError, match="did you mean 'reduce_mean'"):
        math_ops.reduce_meen
    with pytest.raises(AttributeError, match="does not map this internal name"):
        math_ops.nothing_like_it
    with pytest.raises(AttributeError, match=r"opdock has no tf\.contrib\.rnn\.stack; it has tf"):
        rnn.stack


def test_what_a_program_puts_in_the_place_of_an_internal_name_is_used() -> None:
    deprecation = importlib.import_module("opdock.python.util.deprecation")
    told: list[str] = []
    logging = importlib.import_module("opdock.python.platform.tf_logging")
    with mock.patch.object(logging, "warning", lambda text, *values: told.append(text % values)):
        with mock.patch.object(deprecation, "_PRINT_DEPRECATION_WARNINGS", False):
            deprecation.deprecated(None, "Call new().")(lambda: 3)()
        assert told == []
        deprecation.deprecated(None, "Call new().")(lambda: 3)()
    assert len(told) == 1


def test_cases_that_are_known_leave_no_op() -> None:
    smart_case = importlib.import_module("opdock.python.framework.smart_cond").smart_case
    with tf.Graph().as_default() as graph, tf.Session() as session:
        assert smart_case([(False, lambda: 1), (True, lambda: 2)]) == 2
        assert smart_case({False: lambda: 1}, default=lambda: 3) == 3
        assert graph.get_operations() == []
        given = tf.placeholder(tf.bool, [])
        chosen = smart_case(
            [(False, lambda: 1), (given, lambda: tf.constant(2)), (True, lambda: tf.constant(4))]
        )
        assert [session.run(chosen, {given: v}) for v in (True, False)] == [2, 4]
    with pytest.raises(TypeError, match="fns must be"):
        smart_case(3)


def test_whether_tf2_was_asked_for_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorflow.python import tf2

    monkeypatch.setattr(tf2, "_force_enable", None)
    monkeypatch.delenv("TF2_BEHAVIOR", raising=False)
    assert not tf2.enabled()
    monkeypatch.setenv("TF2_BEHAVIOR", "1")
    assert tf2.enabled()
    tf2.disable()
    assert not tf2.enabled()
    tf2.enable()
    assert tf2.enabled()


def test_what_linear_operators_know_is_told_to_libraries() -> None:
    from tensorflow.python.ops.linalg import linear_operator_addition as addition
    from tensorflow.python.ops.linalg import linear_operator_algebra as algebra

    assert issubclass(addition._AddAndReturnDiag, addition._Adder)
    assert algebra._registered_adjoint(tf.linalg.LinearOperatorIdentity) in (
        algebra._ADJOINTS.values()
    )
    assert algebra.RegisterAdjoint(int)(abs) is abs and algebra._ADJOINTS.pop((int,)) is abs


def test_of_two_modules_that_one_takes_all_from_the_later_counts() -> None:
    from tensorflow.python.ops import image_ops

    assert image_ops.adjust_hue is tf.image.adjust_hue
    assert image_ops.non_max_suppression is tf.image.non_max_suppression
    assert image_ops.transpose is tf.image.transpose


def test_functions_of_tf2_take_its_arguments() -> None:
    from tensorflow.python.ops import nn_ops, random_ops

    with tf.Graph().as_default(), tf.Session() as session:
        assert session.run(nn_ops.dropout_v2(tf.ones(4), 0.0)).tolist() == [1.0] * 4
        assert random_ops.random_poisson_v2([3], 1.5).shape == [3]


def test_references_are_given_where_they_are_asked_for() -> None:
    from tensorflow.python.framework import ops

    with tf.Graph().as_default():
        variable = tf.Variable(1.0, use_resource=False)
        (ref,) = ops.internal_convert_n_to_tensor([variable], name="n", as_ref=True)
        assert ref.dtype == tf.float32._as_ref
        assert ops.internal_convert_to_tensor(variable).dtype == tf.float32
        assert ops.RegisterShape("Own")(len) is len


def test_side_effects_are_hooked_into_a_tensor_that_is_in_use() -> None:
    from tensorflow.python.framework import subscribe

    seen: list[int] = []

    def note(tensor: Any) -> list[Any]:
        return [tf.py_func(lambda x: seen.append(int(x)) or x, [tensor], tensor.dtype)]

    a = tf.constant(2)
    b = a * 3
    copy = subscribe.subscribe(a, note)
    assert b.op.inputs[0] is copy and copy.op.name == f"{a.op.name}/subscription/Identity"
    assert subscribe.subscribe(a, note) is copy  # the old one waits for the new effect too
    with tf.Session() as sess:
        assert sess.run(b) == 6 and seen == [2, 2]
    parts = tf.split([1, 2], 2)
    with tf.control_dependencies(parts):
        after = tf.constant(0)
    copies = subscribe.subscribe(parts, note)
    assert after.op.control_inputs == [copy.op for copy in copies]
    with pytest.raises(TypeError, match="invalid type"):
        subscribe.subscribe("a", note)


def test_messages_say_where_the_ops_that_they_tag_were_made() -> None:
    from tensorflow.python.framework import error_interpolation

    a = tf.constant(1, name="one")
    tf.add(a, 2, name="three")
    text = error_interpolation.interpolate("x {{node three}}, {{node none}}", a.graph)
    assert text.startswith("x node three (defined at ") and "test_internal_names.py:" in text
    assert "{{node none}}" in text and "Input Source operations connected to node three" in text
    placed = error_interpolation.interpolate("{{colocation_node one}}", a.graph)
    assert placed.count("No device assignments were active during op 'one' creation.") == 2


def test_sparse_and_ragged_values_are_appended() -> None:
    from tensorflow.python.framework import composite_tensor_utils as utils

    top = tf.SparseTensorValue(np.array([[0, 1]]), np.array([5]), (2, 3))
    both = utils.append_composite_tensor(top, top)
    assert both.indices.tolist() == [[0, 1], [2, 1]] and both.dense_shape == (3, 3)
    rows = tf.ragged.constant_value([[1], [2, 3]])
    assert utils.append_composite_tensor(rows, rows).to_list() == [[1], [2, 3], [1], [2, 3]]
    with pytest.raises(RuntimeError, match="Unable to concatenate"):
        utils.append_composite_tensor(rows, top)


def test_shapes_of_which_little_is_known() -> None:
    from tensorflow.python.framework import common_shapes, tensor_shape

    assert str(tensor_shape.unknown_shape(rank=2)) == "(?, ?)"
    assert tensor_shape.unknown_shape(ndims=1).ndims == 1
    broadcast = common_shapes.broadcast_shape(tf.TensorShape([2, 1]), tf.TensorShape([None, 3]))
    assert broadcast.as_list() == [2, 3]
    with pytest.raises(ValueError, match="Incompatible shapes for broadcasting"):
        common_shapes.broadcast_shape(tf.TensorShape([2]), tf.TensorShape([3]))


def test_status_codes_are_an_enum_whose_exceptions_can_be_made() -> None:
    from tensorflow.core.lib.core import error_codes_pb2
    from tensorflow.python.framework import errors_impl

    assert error_codes_pb2.Code.Name(3) == "INVALID_ARGUMENT" and error_codes_pb2.NOT_FOUND == 5
    made = errors_impl._make_specific_exception(None, None, "gone", error_codes_pb2.NOT_FOUND)
    assert type(made) is tf.errors.NotFoundError and made.message == "gone"
    with pytest.warns(UserWarning, match="Unknown error code: 37"):
        assert errors_impl._make_specific_exception(None, None, "?", 37).error_code == 37
    with pytest.warns(UserWarning, match="Unknown class exception"):
        assert tf.errors.error_code_from_exception_type(KeyError) == tf.errors.UNKNOWN


def test_devices_share_variables_by_name_and_order() -> None:
    from tensorflow.python.distribute import shared_variable_creator

    made: dict[str, list[Any]] = {}
    for device, name in enumerate(["w", "w_1"]):
        with tf.variable_creator_scope(shared_variable_creator.make_fn(made, device)):
            assert tf.Variable(1.0, name=name) is made["w"][0]
    with (
        tf.variable_creator_scope(shared_variable_creator.make_fn(made, 1)),
        pytest.raises(RuntimeError, match="variable v with mismatching name on device 1"),
    ):
        tf.Variable(1.0, name="v")


def test_gradients_are_told_apart_summed_and_stitched() -> None:
    from tensorflow.python.distribute import cross_device_utils as utils

    rows = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([1]), tf.constant([2, 2]))
    both = utils.aggregate_tensors_or_indexed_slices([rows, rows])
    half = utils.divide_by_n_tensors_or_indexed_slices(both, 2.0)
    with tf.Session() as session:
        found = session.run(tf.convert_to_tensor(half))
    np.testing.assert_array_equal(found, [[0.0, 0.0], [1.0, 2.0]])
    dense = tf.constant([1.0])
    split = utils.split_by_sparsity([rows, dense])
    assert utils.contains_indexed_slices([dense, [rows]]) and split == ([dense], [1], [rows], [0])
    assert utils.stitch_values([split[:2], split[2:]]) == [rows, dense]
    assert utils.group_device_names(["a", "b", "c"], 2) == [["a", "c"], ["b", "a"]]


def test_gather_nd_within_batches() -> None:
    from tensorflow.python.ops import array_ops

    x = tf.constant([[1, 2], [3, 4]])
    with tf.Session() as session:
        for batch, at in ((0, [[1, 0]]), (1, [[1], [0]])):
            found = session.run(array_ops.batch_gather_nd(x, at, batch))
            np.testing.assert_array_equal(found, [3] if batch == 0 else [2, 3])
    with pytest.raises(TypeError, match="batch_dims must be an int; got '1'"):
        array_ops.batch_gather_nd(x, [[0]], "1")


def test_what_is_asked_of_nodes() -> None:
    from tensorflow.python.framework import constant_op, ops, tensor_util
    from tensorflow.python.ops import control_flow_ops, control_flow_util, math_ops
    from tensorflow.python.ops.linalg_ops_impl import eye
    from tensorflow.python.platform import googletest

    x = tf.constant([[1.0, 2.0]])
    switched, _ = control_flow_ops.switch(x, tf.constant(True))
    assert control_flow_util.IsSwitch(switched.op) and not control_flow_util.IsMerge(switched.op)
    merged, _ = control_flow_ops.merge([switched, x])
    assert control_flow_util.IsMerge(merged.op)
    assert not control_flow_util.IsLoopExit(x.op) and not control_flow_util.IsLoopEnter(x.op)
    assert not control_flow_util.IsInXLAContext(x.op)
    assert not control_flow_util.EnableControlFlowV2(x.graph)
    assert constant_op.is_constant(x) and constant_op.is_constant(x.op)
    assert not constant_op.is_constant(x + 1)
    assert not isinstance(x, ops.EagerTensor)
    assert ops.tensor_id(x) != ops.tensor_id(merged) and not ops.inside_function()
    assert ops.name_from_scope_name("a/b/") == ops.name_from_scope_name("a/b") == "a/b"
    assert tensor_util.shape_tensor([]).dtype is tf.int32
    assert os.path.isdir(googletest.GetTempDir())
    with tf.Session() as session:
        kept, sizes, one = session.run(
            [math_ops.reduced_shape([2, 3, 5], [1, -1]),
             tensor_util.shape_tensor([tf.Dimension(2), 3]), eye(2)]
        )  # fmt: skip
    assert kept.tolist() == [2, 1, 1] and sizes.tolist() == [2, 3] and one.sum() == 2


@pytest.mark.parametrize(
    ("path", "name", "public"),
    [
        ("contrib.eager.python.saver", "Saver", "contrib.eager.Saver"),
        ("contrib.factorization.python.ops.gmm", "GMM", "contrib.factorization.GMM"),
        ("contrib.eager.python.datasets", "Iterator", "contrib.eager.Iterator"),
        *(
            (f"contrib.learn.python.learn.{module}", name, f"contrib.learn.{package}.{name}")
            for module, name, package in (
                ("learn_io.numpy_io", "numpy_input_fn", "io"),
                ("learn_io.pandas_io", "pandas_input_fn", "io"),
                ("preprocessing.text", "VocabularyProcessor", "preprocessing"),
                ("preprocessing.text", "tokenizer", "preprocessing"),
                ("preprocessing.categorical_vocabulary", "CategoricalVocabulary", "preprocessing"),
            )
        ),
    ],
)
def test_modules_of_contrib_have_what_their_package_has_from_them(path, name, public) -> None:
    package, _, last = public.rpartition(".")
    found = resolve.internal(path, name)
    assert found is resolve.internal(package, last) is not resolve.MISSING
    assert resolve.internal(path, "nothing") is resolve.MISSING
    # A package is not found again below itself.
    assert resolve.internal(path, "python") is resolve.MISSING


def test_generated_functions_are_where_contrib_had_them() -> None:
    module = "contrib.factorization.python.ops.clustering_ops"
    assert callable(resolve.internal(module, "nearest_neighbors"))
    assert callable(resolve.internal(module, "kmc2_chain_initialization"))


def test_what_is_a_tensor_and_what_is_like_one() -> None:
    from tensorflow.python.framework import ops

    slices = tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]))
    sparse = tf.SparseTensor([[0]], [1.0], [2])
    for value in (tf.constant(1), tf.Variable(1.0), slices, sparse, tf.sparse_placeholder("float")):
        assert tf.is_tensor(value) and isinstance(value, ops._TensorLike)
    for value in (1.0, np.zeros(1), tf.ragged.constant([[1]]), tf.no_op(), sparse.shape):
        assert not tf.is_tensor(value) and not isinstance(value, ops._TensorLike)
    assert not ops.is_dense_tensor_like(sparse)


def test_contrib_has_what_became_public_later() -> None:
    from tensorflow.contrib.compiler import jit, xla

    assert jit.experimental_jit_scope is tf.xla.experimental.jit_scope
    assert xla.compile is tf.xla.experimental.compile
