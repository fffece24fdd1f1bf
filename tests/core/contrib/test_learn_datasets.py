"""`tf.contrib.learn`'s data sets, and its functions that run graphs."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

datasets = tf.contrib.learn.datasets


def test_small_data_sets():
    iris = datasets.load_iris()
    assert iris.data.shape == (150, 4)
    assert np.bincount(iris.target).tolist() == [50, 50, 50]
    np.testing.assert_allclose(iris.data.mean(0), [5.843, 3.054, 3.759, 1.199], atol=1e-3)
    boston = datasets.load_dataset("boston")
    assert boston.data.shape == (506, 13)
    assert boston.target.mean() == pytest.approx(22.533, abs=1e-3)
    assert isinstance(boston, datasets.base.Dataset)
    for ask in (datasets.load_dataset, datasets.make_dataset):
        with pytest.raises(ValueError, match="ataset"):
            ask("sonnets")


def test_tables_of_files(tmp_path):
    head, rows = "3,2,no,yes\n", "1,2.5,0\n3,4,1\n5,6,0\n"
    (tmp_path / "with.csv").write_text(head + rows, encoding="utf-8")
    (tmp_path / "without.csv").write_text(rows, encoding="utf-8")
    first = datasets.base.load_csv_with_header(str(tmp_path / "with.csv"), np.int64, np.float32)
    second = datasets.base.load_csv_without_header(tmp_path / "without.csv", np.int64, np.float32)
    for table in (first, second):
        assert table.data.tolist() == [[1, 2.5], [3, 4], [5, 6]]
        assert table.target.tolist() == [0, 1, 0]
        assert (table.data.dtype, table.target.dtype) == (np.float32, np.int64)
    named = datasets.base.load_csv_without_header(tmp_path / "without.csv", np.str_, np.int64, 1)
    assert named.target.tolist() == ["2.5", "4", "6"]
    datasets.base.shrink_csv(str(tmp_path / "without.csv"), 2)
    assert (tmp_path / "without_small.csv").read_text(encoding="utf-8").split() == [
        "1,2.5,0", "5,6,0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the first row is to begin with the numbers"),
        ("many,2\n", "the first row is to begin with the numbers"),
        ("2,2\n1,2,0\n", "tells of 2 rows of 2 features, and there are 1 of 2"),
        ("2,2\n1,2,0\n1,0\n", "line 3: 1 features, and 2 in the first line"),
        ("1,2\n1,a,0\n", "line 2: could not convert"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_such_table(tmp_path, text, words):
    (tmp_path / "bad.csv").write_text(text, encoding="utf-8")
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        datasets.base.load_csv_with_header(tmp_path / "bad.csv", np.int64, np.float32)


def test_points_of_shapes():
    for name, options in (
        ("circles", {"n_classes": 3}), ("spirals", {}), ("spirals", {"mode": "fermat"}),
        ("spirals", {"mode": "bernoulli", "exp_scale": 0.2}),
    ):  # fmt: skip
        made = datasets.make_dataset(name, n_samples=31, **options)
        again = datasets.make_dataset(name, n_samples=31, **options)
        np.testing.assert_array_equal(made.data, again.data)
        assert made.data.shape == (31, 2)
        assert np.abs(made.data).max() == pytest.approx(1.0, abs=0.1)
        classes = options.get("n_classes", 2)
        assert np.bincount(made.target).tolist() == [31 // classes + 1] + [31 // classes] * (
            classes - 1
        )
    radii = np.hypot(*datasets.make_dataset("circles", 40, factor=0.5).data.T)
    assert sorted(set(radii.round(6))) == [0.5, 1.0]
    noisy = datasets.make_dataset("circles", noise=0.1)
    assert not np.allclose(noisy.data, datasets.make_dataset("circles", noise=0.2).data)
    with pytest.raises(ValueError, match="Cannot generate spiral with mode square"):
        datasets.make_dataset("spirals", mode="square")


# ---------------------------------------------------------------- graphs
@pytest.fixture
def model():
    """A graph whose weight becomes 3, its global step, and a value that is fed."""
    with tf.Graph().as_default() as graph:
        step = tf.train.create_global_step()
        x = tf.placeholder_with_default(1.0, [])
        w = tf.get_variable("w", initializer=0.0)
        loss = tf.square(w - 3.0)
        train = tf.train.GradientDescentOptimizer(0.25).minimize(loss, step)
        tf.summary.scalar("loss", loss)
        yield {"graph": graph, "train": train, "loss": loss, "x": x, "scaled": w * x}


def test_a_graph_is_trained_evaluated_and_run(model, tmp_path):
    learn, folder = tf.contrib.learn, str(tmp_path)
    shown = {"scaled": model["scaled"]}
    assert learn.run_n(shown, n=3) == [{"scaled": 0.0}] * 3
    loss = learn.train(
        model["graph"], folder, model["train"], model["loss"], steps=30, log_every_steps=10
    )
    assert loss < 1e-6
    # It goes on from where it was.
    learn.train(model["graph"], folder, model["train"], model["loss"], max_steps=31)
    saved = tf.train.latest_checkpoint(folder)
    assert saved.endswith("model.ckpt-31")
    assert learn.infer(saved, shown, {model["x"]: 2.0})["scaled"] == pytest.approx(6.0)
    feeds = [{model["x"]: float(k)} for k in range(3)]
    found = [row["scaled"] for row in learn.run_feeds(shown, feeds, saved)]
    assert found == pytest.approx([0.0, 3.0, 6.0])
    values, step = learn.evaluate(model["graph"], f"{folder}/eval", saved, shown, max_steps=2)
    assert (values["scaled"], step) == (pytest.approx(3.0), 31)
    events = [e for p in (tmp_path / "eval").iterdir() for e in tf.train.summary_iterator(str(p))]
    assert {v.tag for e in events for v in e.summary.value} == {"scaled"}


def test_what_cannot_be_trained(model, tmp_path):
    train, graph = tf.contrib.learn.train, model["graph"]
    with pytest.raises(ValueError, match="Output directory should be non-empty"):
        train(graph, "", model["train"], model["loss"])
    with pytest.raises(ValueError, match="Missing train_op or loss_op"):
        train(graph, str(tmp_path), model["train"], None)
    with pytest.raises(ValueError, match="Can not provide both steps and max_steps"):
        train(graph, str(tmp_path), model["train"], model["loss"], steps=1, max_steps=1)
    with pytest.raises(ValueError, match="output_dict is invalid"):
        tf.contrib.learn.run_n({})
    with tf.Graph().as_default() as other:
        loss = tf.constant(1.0)
        with pytest.raises(ValueError, match="No `global_step_tensor`"):
            train(other, str(tmp_path), loss.op, loss)
    with pytest.raises(tf.train.NanLossDuringTrainingError):
        train(graph, str(tmp_path), model["train"], model["loss"] * float("nan"), steps=5)


def test_feeds_end_a_training_and_threads_end_with_it(model, tmp_path):
    values = iter(range(4))

    def fed():
        return {model["x"]: float(next(values))}

    tf.contrib.learn.train(
        model["graph"], str(tmp_path), model["train"], model["scaled"], feed_fn=fed
    )
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("-4")
    with model["graph"].as_default():
        queue = tf.train.input_producer(tf.constant([5, 6]), shuffle=False)
        element = queue.dequeue()
    rows = tf.contrib.learn.graph_actions.run_feeds_iter({"element": element}, [None] * 9)
    assert [next(rows)["element"] for _ in range(3)] == [5, 6, 5]
    rows.close()
