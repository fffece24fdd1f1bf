"""Programs of the kind that TF1's years left everywhere, run as they are but for the import.

Each file of `real/` is one program. It runs as a main module in a folder and a default graph of its
own; what is checked is what its author would have looked at: that the loss falls, that numbers with
a closed form are right, that files are there and names are TF's.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import opdock as tf

Check = Callable[[SimpleNamespace], None]
CHECKS: dict[str, Check] = {}


def check(function: Check) -> Check:
    """Registers what is checked of the program that the function is named after."""
    CHECKS[function.__name__] = function
    return function


def falls(losses: Any, to: float, last: int = 5) -> None:
    """The mean of the last losses is at most `to` times the first."""
    assert np.all(np.isfinite(losses))
    assert np.mean(losses[-last:]) <= to * losses[0]


# ---------------------------------------------------------------- regression and classification
@check
def linear_regression(p: SimpleNamespace) -> None:
    assert p.weight == pytest.approx(p.slope, abs=0.02)
    assert p.bias == pytest.approx(p.intercept, abs=0.02)
    assert p.training_cost < 0.05 * p.first_cost
    assert "Optimization Finished!" in p.printed


@check
def logistic_regression(p: SimpleNamespace) -> None:
    assert p.before < 0.5
    assert p.after > 0.95
    assert p.initial_loss == pytest.approx(np.log(3), rel=1e-6)
    assert p.final_loss < 0.15
    np.testing.assert_allclose(p.tf_probs, p.numpy_probs, atol=1e-6)


@check
def mlp_summaries(p: SimpleNamespace) -> None:
    lines = [x.split() for x in p.printed.splitlines() if x.startswith("Accuracy at step")]
    falls([float(x[-1]) for x in lines], to=0.3, last=1)
    events = {d: read_events(Path("mlp_logs", d)) for d in ("train", "test")}
    steps, tags = zip(*((e.step, {v.tag for v in e.summary.value}) for e in events["test"] if
                        e.HasField("summary")), strict=True)  # fmt: skip
    assert steps == (0, 10, 20, 30, 40, 50)
    assert {
        "layer1/weights/summaries/mean_1", "layer1/weights/summaries/stddev_1", "accuracy_1",
        "layer2/biases/summaries/histogram", "layer2/activations", "cross_entropy_1",
        "dropout/dropout_keep_probability", "input_reshape/input/image/0",
    } <= tags[0]  # fmt: skip
    traced = [e for e in events["train"] if e.HasField("tagged_run_metadata")]
    assert [e.tagged_run_metadata.tag for e in traced] == ["step024", "step049"]
    metadata = tf.RunMetadata.FromString(traced[0].tagged_run_metadata.run_metadata)
    ran = {n.node_name for d in metadata.step_stats.dev_stats for n in d.node_stats}
    assert any("layer1/Wx_plus_b/MatMul" in n for n in ran)
    assert json.loads(Path("mlp_logs/timeline.json").read_text())["traceEvents"]


@check
def lenet(p: SimpleNamespace) -> None:
    assert p.test_accuracy > 0.9
    assert p.flat_size == 4 * 4 * 16


@check
def cifar_style(p: SimpleNamespace) -> None:
    falls(p.history, to=0.85)
    assert p.precision > 0.8
    assert (p.final_step, p.final_lr) == (60, pytest.approx(0.1 * 0.5**3))
    shadows = {"conv1/weights/ExponentialMovingAverage", "local3/weight_loss/avg", "total_loss/avg"}
    assert shadows <= set(p.shadow_names)
    summary = tf.Summary.FromString(p.summary_text)
    tags = {v.tag for v in summary.value}
    assert {"cross_entropy__raw_", "conv1/weights/gradients", "learning_rate"} <= tags


@check
def text_cnn(p: SimpleNamespace) -> None:
    assert float(p.printed.split()[-1]) > 0.93
    assert Path("runs/1/checkpoints/model-160.index").exists()
    assert tf.train.latest_checkpoint("runs/1/checkpoints").endswith("model-160")
    steps = [e.step for e in read_events(Path("runs/1/summaries")) if e.HasField("summary")]
    assert steps == list(range(1, 161))


@check
def layers_cnn(p: SimpleNamespace) -> None:
    assert p.final > 0.95
    assert p.n_params == 3 * 3 * 8 + 8 + 3 * 3 * 8 * 12 + 24 + 192 * 16 + 16 + 16 * 3 + 3
    assert p.step == 100
    assert p.names == [
        "conv1/kernel:0", "conv1/bias:0", "conv2d/kernel:0", "batch_normalization/gamma:0",
        "batch_normalization/beta:0", "batch_normalization/moving_mean:0",
        "batch_normalization/moving_variance:0", "dense/kernel:0", "dense/bias:0",
        "dense_1/kernel:0", "dense_1/bias:0", "global_step:0", "beta1_power:0", "beta2_power:0",
    ]  # fmt: skip


@check
def cond_batchnorm(p: SimpleNamespace) -> None:
    mean, var = p.images.mean(axis=(0, 1, 2)), p.images.var(axis=(0, 1, 2))
    np.testing.assert_allclose(p.m1, mean, rtol=1e-4)
    np.testing.assert_allclose(p.v1, var, rtol=1e-4)
    # Thirteen turns of an average that starts from zero
    np.testing.assert_allclose(p.m2, mean * (1 - 0.5**13), rtol=1e-4)
    np.testing.assert_array_equal(p.frozen, p.m2)
    np.testing.assert_allclose(p.by_batch, (p.images - mean) / np.sqrt(var + 1e-3), atol=1e-4)
    falls(p.losses, to=0.95)
    unbiased = var * 400 / 399  # fused batch norm averages the unbiased variance
    np.testing.assert_allclose(p.moving, [mean, unbiased], rtol=1e-4)
    np.testing.assert_allclose(p.test_out, p.train_out, atol=0.02)


@check
def siamese(p: SimpleNamespace) -> None:
    falls(p.history, to=0.1)
    assert np.all(np.diag(p.distances) == 0)
    assert p.distances[~np.eye(4, dtype=bool)].min() > 3.5
    assert p.variable_names == [f"siamese/fc{i}{k}:0" for i in (1, 2, 3) for k in "Wb"]


@check
def capsules(p: SimpleNamespace) -> None:
    falls(p.losses, to=0.3)
    assert p.final_accuracy > 0.9


# ---------------------------------------------------------------- generative models
@check
def vae(p: SimpleNamespace) -> None:
    falls(p.costs, to=0.5, last=20)
    assert p.codes.shape == (10, 2)
    assert p.pictures.shape == (64, 36)
    assert 0 <= p.pictures.min() < 0.2
    assert 0.8 < p.pictures.max() <= 1


@check
def gan(p: SimpleNamespace) -> None:
    assert p.untouched  # the generator's optimizer left the discriminator alone
    assert p.means[0] < 1
    assert max(p.means) > 3  # on its way to 4
    assert p.names == [f"{n}/{k}:0" for n in ("G/g0", "G/g1", "D/d0", "D/d1", "D/d3") for k in "wb"]


@check
def wgan_gp(p: SimpleNamespace) -> None:
    falls(p.penalties, to=0.2)
    assert p.analytic[1, 1, 0, 0] == pytest.approx(p.numeric, rel=0.05)


@check
def autoencoder(p: SimpleNamespace) -> None:
    falls(p.losses, to=0.4)
    assert p.reconstruction_error < 0.08


@check
def rbm(p: SimpleNamespace) -> None:
    falls(p.errors, to=0.05)
    np.testing.assert_array_equal(p.repaired.sum(axis=1), np.full(12, 4.0))
    np.testing.assert_array_equal(p.new_w, p.weights_now)


@check
def neural_style(p: SimpleNamespace) -> None:
    falls(p.losses, to=0.2)
    assert sum(p.parts.values()) == pytest.approx(p.losses[-1], rel=1e-4)


# ---------------------------------------------------------------- reinforcement learning
@check
def dqn(p: SimpleNamespace) -> None:
    np.testing.assert_array_equal(p.policy, 1)  # always to the right
    np.testing.assert_array_equal(p.q_values, p.target_q)
    assert p.q_values[5, 1] == pytest.approx(1, abs=0.2)


@check
def policy_gradient(p: SimpleNamespace) -> None:
    np.testing.assert_array_equal(p.best, [0, 2, 1])
    assert np.mean(p.total_reward[-40:]) > np.mean(p.total_reward[:40])


@check
def a3c_threads(p: SimpleNamespace) -> None:
    assert p.episodes >= 150
    assert np.diag(p.policy).min() > 0.8
    assert np.mean(p.rewards) > 0.8
    assert p.slots == ["m", "v"]


# ---------------------------------------------------------------- embeddings and sequences
@check
def word2vec(p: SimpleNamespace) -> None:
    falls(p.averages, to=0.5, last=1)
    np.testing.assert_allclose(np.linalg.norm(p.final_embeddings, axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(p.indices[:, 0], p.valid_examples)  # each is nearest to itself
    assert isinstance(p.sparse_grad, tf.IndexedSlicesValue)
    np.testing.assert_array_equal(p.sparse_grad.indices, p.batch_inputs)
    np.testing.assert_array_equal(p.sparse_grad.dense_shape, [p.vocabulary_size, 10])


@check
def matrix_factorization(p: SimpleNamespace) -> None:
    assert p.last < 0.1 * p.first
    assert p.steps == 40 * 12
    names = ("embd_bias_user", "embd_bias_item", "embd_user", "embd_item")
    assert p.sparse == [f"lsi/{n}" for n in names]


@check
def char_rnn(p: SimpleNamespace) -> None:
    falls(p.losses, to=0.05)
    # Sampling starts each window from a state of zeros, as training did not: where two letters are
    # near a tie, the last bits of the training choose.
    pairs = ["".join(pair) for pair in itertools.pairwise(p.text)]
    assert np.mean([pair in p.data for pair in pairs]) > 0.85
    assert p.n_variables == 5


@check
def while_rnn(p: SimpleNamespace) -> None:
    falls(p.losses, to=0.1)
    assert p.final > 0.95
    for by_loop, unrolled in zip(*p.compared, strict=True):
        np.testing.assert_allclose(by_loop, unrolled, rtol=1e-4, atol=1e-6)


@check
def attention(p: SimpleNamespace) -> None:
    assert p.accuracies[0] < 0.3
    assert np.mean(p.accuracies[-10:]) > 0.95
    np.testing.assert_allclose(p.attention_weights.sum(axis=-1), 1, rtol=1e-5)
    for row, length in zip(p.attention_weights[:8], p.bl, strict=True):
        assert np.all(row[:, length:] == 0)


# ---------------------------------------------------------------- numerics
@check
def kmeans(p: SimpleNamespace) -> None:
    np.testing.assert_allclose(p.centers, p.true_centers, atol=0.2)
    np.testing.assert_array_equal(p.assignments, np.repeat([0, 1, 2], 100))
    for part, center in zip(p.partitions, p.centers, strict=True):
        np.testing.assert_allclose(part.mean(axis=0), center, rtol=1e-4)
    assert p.iters < 10


@check
def gmm_em(p: SimpleNamespace) -> None:
    order = np.argsort(p.final_means[:, 0])[[0, 2, 1]]
    np.testing.assert_allclose(p.final_means[order], p.true_means, atol=0.2)
    np.testing.assert_allclose(p.final_weights[order], p.true_weights, atol=0.05)
    assert np.all(np.diff(p.likelihoods) > -1e-9)  # EM never loses
    assert p.lse == pytest.approx(p.likelihoods[-1], rel=1e-6)


@check
def raindrops(p: SimpleNamespace) -> None:
    np.testing.assert_allclose(p.pond, p.u, atol=1e-4)
    np.testing.assert_allclose(p.speed, p.ut, atol=1e-4)


@check
def mandelbrot(p: SimpleNamespace) -> None:
    # A rounding more or less moves a few points of the border.
    assert np.mean(p.counts == p.expected) > 0.98
    assert p.counts[26, 40] == 60  # the origin is inside
    assert p.counts[0, 0] < 3


@check
def power_iteration(p: SimpleNamespace) -> None:
    assert p.value == pytest.approx(p.largest, rel=1e-9)
    np.testing.assert_allclose(p.sym @ p.vec, p.value * p.vec, atol=1e-4)
    np.testing.assert_allclose(p.roots, [2**0.5, 3, 100], rtol=1e-4)
    np.testing.assert_array_equal(p.fib10, [0, 1, 1, 2, 3, 5, 8, 13, 21, 34])
    np.testing.assert_array_equal(p.fib15[-2:], [233, 377])
    assert p.grown_value.shape == (64, 2)
    assert p.grown_value.max() == 32
    np.testing.assert_array_equal(p.squares_value, [1, 4, 9, 16, 25, 36])
    np.testing.assert_array_equal(p.sums_value, [1, 3, 6, 10])


@check
def gaussian_process(p: SimpleNamespace) -> None:
    assert p.history[-1] < p.history[0] - 20
    np.testing.assert_allclose(p.m, np.sin(p.x_test), atol=0.15)
    assert np.all(p.variance > 0)
    expected = np.polyfit(p.x_train[:, 0], p.y_train[:, 0], 3)[::-1]
    for found in p.coefficients:
        np.testing.assert_allclose(found[:, 0], expected, rtol=1e-6, atol=1e-9)
    centered = p.data - p.data.mean(axis=0)
    np.testing.assert_allclose(p.singular, np.linalg.svd(centered, compute_uv=False))
    np.testing.assert_allclose(p.eig[::-1], p.singular**2, rtol=1e-8)
    np.testing.assert_allclose(np.linalg.norm(p.scores, axis=0), p.singular[:2])
    assert p.det_value == pytest.approx(np.linalg.det(p.gram_value))
    assert p.trace_value == pytest.approx(np.trace(p.gram_value))


@check
def straight_through(p: SimpleNamespace) -> None:
    at = p.at
    np.testing.assert_array_equal(p.values["binary"], np.sign(at))
    np.testing.assert_array_equal(p.slopes["binary"], [1, 1, 1])
    np.testing.assert_array_equal(p.slopes["flipped"], [-1.5, -1.5, -1.5])
    np.testing.assert_array_equal(p.values["hard"], np.round(at))
    np.testing.assert_array_equal(p.slopes["hard"], [1, 1, 1])
    np.testing.assert_allclose(p.values["square"], at**2)
    np.testing.assert_allclose(p.slopes["square"], 20 * at)
    np.testing.assert_allclose(p.slopes["log1pexp"], 1 / (1 + np.exp(-at)), rtol=1e-6)
    assert p.overflow[0] == 1
    assert np.isnan(p.overflow[1])
    np.testing.assert_allclose(p.curvature, np.diag(6 * at), rtol=1e-6)
    np.testing.assert_allclose(p.product, 6 * at * [1, 0, 2], rtol=1e-6)
    np.testing.assert_allclose(p.once, at)
    assert p.unconnected == [None]
    assert p.final_loss == 0
    np.testing.assert_array_equal(p.signs[:, 0], [1, -1, -1, 1, -1])


# ---------------------------------------------------------------- the workings
@check
def lr_schedules(p: SimpleNamespace) -> None:
    assert max(p.errors.values()) < 1e-7
    np.testing.assert_allclose(p.rates[:5], [0, 0.02, 0.04, 0.06, 0.08], atol=1e-7)
    np.testing.assert_allclose(p.rates, p.conds, rtol=1e-6)
    np.testing.assert_allclose(p.w_end, p.w_np, rtol=1e-5)
    assert p.step_at_end == 25


@check
def multi_tower(p: SimpleNamespace) -> None:
    for towers, whole in zip(p.by_towers, p.at_once, strict=True):
        np.testing.assert_allclose(towers, whole, atol=1e-6)
    falls(p.loss_history, to=0.2)
    assert p.devices == [f"/device:GPU:{i}" for i in range(3)]
    assert p.variable_names == ["hidden/w", "hidden/b", "logits/w", "logits/b"]
    assert p.variable_devices == {"/device:CPU:0"}
    assert p.steps == 60


@check
def ema_restore(p: SimpleNamespace) -> None:
    falls(p.losses, to=0.3)
    assert p.accuracy > 0.95
    assert p.saved_step == 120
    names = [f"layer{i}/{k}" for i in (1, 2) for k in ("biases", "weights")]
    assert p.names == [f"{n}/ExponentialMovingAverage" for n in names]
    for restored, averaged, raw in zip(p.restored, p.averaged, p.raw, strict=True):
        np.testing.assert_array_equal(restored, averaged)
        assert not np.array_equal(restored, raw)
    assert p.kept == ["model/ema.ckpt-80", "model/ema.ckpt-120"]


@check
def checkpoint_two_graphs(p: SimpleNamespace) -> None:
    assert (p.first_step, p.second_step, p.meta_step) == (40, 100, 101)
    assert p.second_loss < 0.3 * p.first_loss
    assert p.first_path == "./ckpts/model-40"
    np.testing.assert_array_equal(p.from_meta, p.expected)
    np.testing.assert_array_equal(p.renamed, p.expected)
    assert p.uninitialized == []
    assert p.shapes == p.listed
    assert set(p.shapes) == {
        "beta1_power", "beta2_power", "global_step",
        *(f"net/{n}{s}" for n in ("w1", "b1", "w2") for s in ("", "/Adam", "/Adam_1")),
    }  # fmt: skip
    assert list(p.kept) == [f"./ckpts/model-{s}" for s in (60, 80, 100)]
    assert p.path == "./ckpts/model-100"


@check
def freeze_graph(p: SimpleNamespace) -> None:
    assert p.accuracy > 0.95
    assert not {"VariableV2", "Assign", "ApplyAdam"} & p.types
    assert len(p.frozen.node) < p.full_size / 4
    assert all(n.startswith("prefix/") for n in p.names)
    for found in (p.predicted, p.by_name, p.spliced):
        np.testing.assert_allclose(found, p.expected, rtol=1e-6)
    assert 'op: "VariableV2"' in Path("train.pbtxt").read_text()


@check
def scopes_zoo(p: SimpleNamespace) -> None:
    assert p.error < 0.15 < p.before
    assert p.names == {
        "default": ["block/w:0", "block_1/w:0"],
        "plain": ["count:0", "count_1:0"],
        "ops": ["foo/bar/add", "foo/v2", "foo/v:0", "other/foo/v:0"],
    }
    assert p.exists.startswith("Variable foo/v already exists, disallowed.")
    assert p.absent.startswith("Variable foo/nothing does not exist, or was not created with")
    assert p.mismatch.endswith("foo/v, but specified shape (3,) and found shape (1,).")
    assert p.frozen_graph == "Graph is finalized and cannot be modified."
    assert p.same is p.v
    np.testing.assert_array_equal(p.ten_value, [10, 10])
    np.testing.assert_array_equal(p.frozen_value, np.eye(2))
    assert p.counted == [5, 10]
    np.testing.assert_array_equal(p.scattered, [[0, 0], [1, 2], [0, 0], [3, 4]])
    np.testing.assert_array_equal(p.rowed, [[0, 0], [7, 8], [0, 0], [3, 4]])
    np.testing.assert_array_equal(p.ones, np.ones((4, 2)))
    assert "frozen/table" not in p.trainable
    assert {b"ref", b"frozen/counter", b"foo/v"} <= set(p.missing)


@check
def seeds_and_numpy(p: SimpleNamespace) -> None:
    for a, b in zip(p.one, p.two, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(p.one[1], p.one[2])  # the same op draws anew in a session
    assert sorted(p.one[3]) == list(range(10))
    assert np.abs(p.one[0]).max() <= np.sqrt(6 / 7)
    assert type(p.result["stats"]).__name__ == "Stats"
    np.testing.assert_array_equal(p.result["stats"].mean, [1.5, 2.5, 3.5])
    np.testing.assert_array_equal(p.result["list"][1][0], p.a * 2)
    np.testing.assert_array_equal(p.result["rows"], p.a[[1, 0, 1]])
    np.testing.assert_array_equal(p.lists, [2, 3, 4])
    np.testing.assert_array_equal(p.tuples, [1, 2, 3])
    np.testing.assert_allclose(p.sinh, np.sinh(p.a / 10), rtol=1e-6)
    np.testing.assert_array_equal(p.overridden, [2, 4, 6])
    assert p.chosen == [1, -1, 1]
    wanted = [p.a[0], p.a[:, 1], p.a[::-1, :2], p.a[:, None, -1]]
    for found, array in zip(p.sliced, wanted, strict=True):
        np.testing.assert_array_equal(found, array)
    a = p.a.astype(np.float32)
    wanted = [-a, 2 - a, a**2, 1 / (a + 1), a // 2, a % 2, abs(a - 2)]
    for found, array in zip(p.operators, wanted, strict=True):
        np.testing.assert_allclose(found, array, rtol=1e-6)
    assert p.scalars == [3, 2.5, True, b"hi"]
    assert p.complaint.startswith("Cannot feed value of shape (2, 4) for Tensor 'x:0', which has")
    assert p.missing.startswith("You must feed a value for placeholder tensor 'x' with dtype float")
    assert "is not an element of this graph" in p.stranger
    assert (p.in_g1, p.in_g2) == ([1], [2])


def read_events(folder: Path) -> list[Any]:
    (path,) = folder.iterdir()
    return list(tf.train.summary_iterator(str(path)))


@pytest.mark.parametrize(("ran", "checks"), CHECKS.items(), ids=list(CHECKS), indirect=["ran"])
def test_program(ran: SimpleNamespace, checks: Check) -> None:
    checks(ran)
