"""Lookup tables: what they find, how they are filled, errors, checkpoints."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.contrib import lookup
from opdock.eager.modes import eager_mode

WORDS = ["brain", "salad", "surgery"]


def _int64(*values):
    return tf.constant(values, tf.int64)


def test_a_static_table_finds_and_exports():
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(WORDS, _int64(0, 1, 2)), -1
    )
    found = table.lookup(tf.constant([["salad", "tank"], ["brain", "surgery"]]))
    assert found.shape.as_list() == [2, 2]
    with tf.Session() as sess:
        with pytest.raises(tf.errors.FailedPreconditionError, match="Table not initialized"):
            sess.run(found)
        sess.run(tf.tables_initializer())
        np.testing.assert_array_equal(sess.run(found), [[1, -1], [0, 2]])
        assert sess.run(table.size()) == 3
        keys, values = sess.run(table.export())
        assert dict(zip(keys, values, strict=True)) == {b"brain": 0, b"salad": 1, b"surgery": 2}


def test_sparse_keys_stay_sparse():
    table = lookup.index_table_from_tensor(WORDS)
    keys = tf.SparseTensor([[0, 0], [1, 2]], ["surgery", "x"], [2, 3])
    with tf.Session() as sess:
        sess.run(tf.tables_initializer())
        found = sess.run(table.lookup(keys))
    np.testing.assert_array_equal(found.values, [2, -1])
    np.testing.assert_array_equal(found.indices, [[0, 0], [1, 2]])


def test_one_key_has_one_value():
    init = tf.lookup.KeyValueTensorInitializer(["a", "a"], _int64(0, 1))
    table = tf.lookup.StaticHashTable(init, -1)
    with (
        tf.Session() as sess,
        pytest.raises(
            tf.errors.FailedPreconditionError,
            match="different value for same key. Key a has 0 and trying to add value 1",
        ),
    ):
        sess.run(table.initializer)


def test_keys_of_another_type_are_refused():
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], _int64(0)), -1)
    with pytest.raises(TypeError, match="Keys must be dtype .*string.*, got .*int32"):
        table.lookup(tf.constant([1]))


def test_tables_of_one_name_are_one():
    init = lookup.KeyValueTensorInitializer(["a"], _int64(5))
    first = lookup.HashTable(init, -1, shared_name="one")
    second = lookup.HashTable(init, -1, shared_name="one")
    with tf.Session() as sess:
        sess.run(first.init)
        assert sess.run(second.lookup(tf.constant(["a"]))) == [5]


def test_a_name_has_one_type():
    lookup.HashTable(lookup.KeyValueTensorInitializer(["a"], _int64(5)), -1, shared_name="one")
    lookup.HashTable(
        lookup.KeyValueTensorInitializer(["a"], tf.constant([1.0])), -1.0, shared_name="one"
    )
    with (
        tf.Session() as sess,
        pytest.raises(tf.errors.InvalidArgumentError, match="Conflicting key/value dtypes"),
    ):
        sess.run(tf.tables_initializer())


# ---------------------------------------------------------------- files
@pytest.fixture
def vocabulary(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("\n".join(WORDS) + "\n")
    return str(path)


def test_a_file_gives_lines_and_numbers(vocabulary):
    ids = lookup.index_table_from_file(vocabulary, num_oov_buckets=1)
    names = lookup.index_to_string_table_from_file(vocabulary, default_value="?")
    assert [t.op.type for t in tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS)] == ["Const"] * 2
    with tf.Session() as sess:
        sess.run(tf.tables_initializer())
        assert sess.run(ids.lookup(tf.constant(["salad", "tank"]))).tolist() == [1, 3]
        assert sess.run(names.lookup(_int64(2, 7))).tolist() == [b"surgery", b"?"]
        assert sess.run(ids.size()) == 4


@pytest.mark.parametrize(
    ("content", "size", "columns", "match"),
    [
        ("a\n\nb\n", None, (-2, -1), "empty line found at position 3"),
        ("a\nb\n", 3, (-2, -1), "Invalid vocab_size in .*: expected 3 but got 2"),
        ("a 1\nb\n", None, (0, 1), r"number of columns in .* line 1 \(b\) : expected 1 got 1"),
        ("a x\n", None, (0, 1), "Field x in line 0 is not a valid int64."),
    ],
)  # fmt: skip
def test_a_bad_file_is_told(tmp_path, content, size, columns, match):
    path = tmp_path / "bad.txt"
    path.write_text(content)
    init = tf.lookup.TextFileInitializer(
        str(path), tf.string, columns[0], tf.int64, columns[1], vocab_size=size, delimiter=" "
    )
    table = tf.lookup.StaticHashTable(init, -1)
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match=match):
        sess.run(table.initializer)


def test_no_file_is_not_found(tmp_path):
    table = lookup.index_table_from_file(str(tmp_path / "none"))
    with tf.Session() as sess, pytest.raises(tf.errors.NotFoundError, match="none"):
        sess.run(table.initializer)


# ---------------------------------------------------------------- buckets
def test_unknown_words_have_buckets():
    init = tf.lookup.KeyValueTensorInitializer(WORDS, _int64(0, 1, 2))
    table = tf.lookup.StaticVocabularyTable(init, 3)
    words = tf.constant([*WORDS, "tank", "tarkus"])
    buckets = tf.strings.to_hash_bucket_fast(words[3:], 3) + 3
    with tf.Session() as sess:
        sess.run(tf.tables_initializer())
        found, expected = sess.run([table.lookup(words), buckets])
    assert found.tolist() == [0, 1, 2, *expected.tolist()]


def test_hashers_are_told_apart():
    spec = lookup.StrongHashSpec((1, 2))
    table = lookup.IdTableWithHashBuckets(None, 1000, hasher_spec=spec)
    words = tf.constant(["a", "b"])
    strong = tf.strings.to_hash_bucket_strong(words, 1000, key=[1, 2])
    with tf.Session() as sess:
        found, expected = sess.run([table.lookup(words), strong])
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="key must have size 2"):
        lookup.StrongHashSpec((1,))


# ---------------------------------------------------------------- mutable ones
def test_a_mutable_table_changes():
    table = lookup.MutableHashTable(tf.string, tf.float32, [0.0, -1.0])
    keys = tf.placeholder(tf.string, [None])
    values = tf.placeholder(tf.float32, [None, 2])
    insert, remove, found = table.insert(keys, values), table.remove(keys), table.lookup(keys)
    assert found.shape.as_list() == [None, 2]
    with tf.Session() as sess:
        sess.run(insert, {keys: ["a", "b"], values: [[1, 2], [3, 4]]})
        sess.run(insert, {keys: ["a"], values: [[5, 6]]})
        sess.run(remove, {keys: ["b", "never"]})
        np.testing.assert_array_equal(sess.run(found, {keys: ["a", "b"]}), [[5, 6], [0, -1]])
        assert sess.run(table.size()) == 1
        with pytest.raises(tf.errors.InvalidArgumentError, match="Expected shape .* for value"):
            sess.run(insert, {keys: ["a", "b"], values: [[1, 2]]})


def test_a_dense_table_reserves_two_keys():
    table = lookup.MutableDenseHashTable(tf.int64, tf.int64, -1, 0, -9, initial_num_buckets=4)
    with tf.Session() as sess:
        sess.run(table.insert(_int64(1, 2, 3, 4), _int64(5, 6, 7, 8)))
        sess.run(table.remove(_int64(2)))
        assert sess.run(table.lookup(_int64(1, 2))).tolist() == [5, -1]
        keys, _ = sess.run(table.export())
        assert sorted(keys.ravel().tolist()) == [-9, 0, 0, 0, 0, 1, 3, 4]
        for key, name in ((0, "empty"), (-9, "deleted")):
            with pytest.raises(tf.errors.InvalidArgumentError, match=f"Using the {name}_key"):
                sess.run(table.insert(_int64(key), _int64(1)))


@pytest.mark.parametrize(
    ("empty", "deleted", "default", "key", "value"),
    [
        (0, -9, -1, 5, 7),
        (0, -9, [-1, -1], 5, [7, 8]),
        ([0, 0], [-9, -9], -1, [5, 6], 7),
        ([0, 0], [-9, -9], [-1, -1], [5, 6], [7, 8]),
    ],
)
def test_a_dense_tables_buckets_are_rows(tmp_path, empty, deleted, default, key, value):
    """As TensorFlow exports and saves them: a scalar is a row of one."""

    def build():
        return lookup.MutableDenseHashTable(
            tf.int64, tf.int64, default, empty, deleted, 4, name="t", checkpoint=True
        )

    with tf.Graph().as_default(), tf.Session() as sess:
        table = build()
        sess.run(table.insert(_int64(key), _int64(value)))
        exported = table.export()
        keys, values = sess.run(exported)
        assert keys.shape == (4, np.size(key))
        assert values.shape == (4, np.size(value))
        assert [t.shape.as_list() for t in exported] == [[None, np.size(v)] for v in (key, value)]
        path = tf.train.Saver().save(sess, str(tmp_path / "model"))
        assert tf.train.load_checkpoint(path).get_tensor("t-keys").shape == keys.shape
    with tf.Graph().as_default(), tf.Session() as sess:
        table = build()
        tf.train.Saver().restore(sess, path)
        assert sess.run(table.size()) == 1
        assert sess.run(table.lookup(_int64(key))).tolist() == [value]
        flat = tf.raw_ops.LookupTableImportV2(
            table_handle=table.resource_handle,
            keys=tf.placeholder_with_default(_int64(1, 2), None),
            values=tf.placeholder_with_default(_int64(1, 2), None),
        )
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="must end with|Expected key shape"
        ):
            sess.run(flat)


@pytest.mark.parametrize(
    ("empty", "deleted", "buckets", "match"),
    [
        (1, 1, 8, "Empty and deleted keys cannot be equal"),
        (1, [2], 8, "must have same shape"),
        (1, 2, 6, "must be at least 4 and a power of 2, got: 6"),
    ],
)
def test_a_dense_table_is_checked(empty, deleted, buckets, match):
    table = lookup.MutableDenseHashTable(
        tf.int64, tf.int64, -1, empty, deleted, initial_num_buckets=buckets
    )
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match=match):
        sess.run(table.size())


def test_a_saver_saves_tables(tmp_path):
    def build():
        table = lookup.MutableHashTable(tf.string, tf.int64, -1, name="t", checkpoint=True)
        return table, tf.train.Saver([tf.Variable(1.0, name="v")] + tf.get_collection(
            tf.GraphKeys.SAVEABLE_OBJECTS
        ))  # fmt: skip

    with tf.Graph().as_default():
        table, saver = build()
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(table.insert(tf.constant(["a", "b"]), _int64(3, 4)))
            path = saver.save(sess, str(tmp_path / "model"))
    with tf.Graph().as_default():
        table, saver = build()
        with tf.Session() as sess:
            saver.restore(sess, path)
            assert sess.run(table.lookup(tf.constant(["b", "c"]))).tolist() == [4, -1]


def test_a_checkpoint_of_objects_has_tables(tmp_path):
    def build():
        table = lookup.MutableHashTable(tf.string, tf.int64, -1, name="t")
        return table, tf.train.Checkpoint(words=table)

    with tf.Graph().as_default(), tf.Session() as sess:
        table, checkpoint = build()
        sess.run(table.insert(tf.constant(["a", "b"]), _int64(3, 4)))
        path = checkpoint.save(str(tmp_path / "model"), sess)
    with tf.Graph().as_default(), tf.Session() as sess:
        table, checkpoint = build()
        checkpoint.restore(path).assert_consumed().run_restore_ops(sess)
        assert sess.run(table.lookup(tf.constant(["b", "c"]))).tolist() == [4, -1]


def test_sessions_have_tables_of_their_own():
    table = lookup.MutableHashTable(tf.int64, tf.int64, -1)
    insert, size = table.insert(_int64(1), _int64(1)), table.size()
    with tf.Session() as first, tf.Session() as second:
        first.run(insert)
        assert (first.run(size), second.run(size)) == (1, 0)


def test_a_dense_table_of_an_eager_program_exports_and_is_saved(tmp_path):
    with eager_mode(alone=True):
        table = lookup.MutableDenseHashTable(tf.int64, tf.int64, -1, 0, -1, 4, checkpoint=True)
        table.insert(_int64(5), _int64(7))
        path = tf.train.Checkpoint(table=table).save(str(tmp_path / "model"))
        other = lookup.MutableDenseHashTable(tf.int64, tf.int64, -1, 0, -1, 8, checkpoint=True)
        tf.train.Checkpoint(table=other).restore(path)
        assert [int(v) for v in other.lookup(_int64(5, 6))] == [7, -1]


def test_dense_tables_where_operations_run_at_once():
    with eager_mode(alone=True):
        table = tf.lookup.experimental.DenseHashTable(
            tf.int64, tf.float32, default_value=-1.0, empty_key=-1, deleted_key=-2,
            initial_num_buckets=4,
        )  # fmt: skip
        table.insert([1, 2], [3.0, 4.0])
        keys, values = table.export()
        assert keys.shape == values.shape == (4, 1) and sorted(keys.numpy()[:, 0]) == [-1, -1, 1, 2]
        assert table.lookup(tf.constant([1, 5], tf.int64)).numpy().tolist() == [3.0, -1.0]


def test_values_of_tables_may_be_lists_of_tensors():
    with eager_mode(alone=True):
        empty = tf.raw_ops.EmptyTensorList(
            element_shape=[2], max_num_elements=3, element_dtype=tf.float32
        )
        table = tf.lookup.experimental.DenseHashTable(
            tf.int64, tf.variant, default_value=empty, empty_key=-1, deleted_key=-2
        )
        found = table.lookup(tf.constant([1, 7, 9], tf.int64))
        assert found.shape == (3,) and found.dtype == tf.variant
        assert tf.raw_ops.TensorListLength(input_handle=found[1]).numpy() == 0
