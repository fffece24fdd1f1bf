"""Boxes: what the public functions return, ties and limits, and TF's random parts."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf

BOXES = np.array([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 5, 1, 6], [0, 5, 1, 6]], np.float32)
SCORES = np.array([0.6, 0.9, 0.8, 0.8], np.float32)


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def test_suppression_and_its_variants():
    assert run(tf.image.non_max_suppression(BOXES, SCORES, 4)).tolist() == [1, 2]
    assert run(tf.image.non_max_suppression(BOXES, SCORES, 4, 0.9)).tolist() == [1, 2, 0]
    assert run(tf.image.non_max_suppression(BOXES, SCORES, 4, 0.9, 0.7)).tolist() == [1, 2]
    padded, valid = tf.image.non_max_suppression_padded(
        BOXES, SCORES, 4, pad_to_max_output_size=True
    )
    assert padded.shape.as_list() == [4]
    assert [v.tolist() for v in run([padded, valid])] == [[1, 2, 0, 0], 2]


def test_boxes_that_overlap_by_just_the_limit_go():
    halves = np.array([[0, 0, 1, 1], [0, 0, 1, 0.5]], np.float32)
    scores = np.array([0.9, 0.8], np.float32)
    assert run(tf.image.non_max_suppression(halves, scores, 2, 0.5)).tolist() == [0]
    # For whole batches TF compares the other way.
    out = tf.image.combined_non_max_suppression(
        halves[None, :, None], scores[None, :, None], 2, 2, 0.5
    )
    assert run(out.valid_detections).tolist() == [2]


def test_overlaps_lower_scores():
    chosen, scores = run(
        tf.image.non_max_suppression_with_scores(BOXES, SCORES, 4, 1.0, 0.1, soft_nms_sigma=0.5)
    )
    assert chosen.tolist()[:2] == [1, 2]
    overlap = 0.9 / 1.1
    assert scores[2] == pytest.approx(0.6 * np.exp(-(overlap**2)), rel=1e-5)


def test_a_threshold_outside_its_range():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"iou_threshold must be in \[0, 1\]"):
        run(tf.image.non_max_suppression(BOXES, SCORES, 4, 1.5))


def test_boxes_are_drawn_in_turn():
    images = tf.zeros([1, 5, 5, 3])
    boxes = [[[0.0, 0.0, 1.0, 1.0], [0.25, 0.25, 0.75, 0.75]]]
    plain = run(tf.image.draw_bounding_boxes(images, boxes))
    assert plain[0, 0, 0].tolist() == [1, 1, 0]
    assert plain[0, 1, 1].tolist() == [0, 0, 1]
    assert plain[0, 2, 2].tolist() == [0, 0, 0]
    own = run(tf.image.draw_bounding_boxes(images, boxes, colors=[[0.5, 0.25, 0.125]]))
    assert own[0, 1, 1].tolist() == own[0, 0, 0].tolist() == [0.5, 0.25, 0.125]


def test_parts_are_those_that_tensorflow_draws():
    box = tf.constant([[[0.1, 0.2, 0.5, 0.9]]])
    begin, size, part = tf.image.sample_distorted_bounding_box(
        [40, 50, 3], box, seed=7, seed2=11, min_object_covered=0.5
    )
    assert [t.shape.as_list() for t in (begin, size, part)] == [[3], [3], [1, 1, 4]]
    with tf.Session() as session:
        draws = [session.run([begin, size, part]) for _ in range(5)]
    assert len({tuple(b) + tuple(s) for b, s, _ in draws}) > 1
    for b, s, p in draws:
        assert s[2] == -1
        edges = np.concatenate([b[:2], b[:2] + s[:2]]) / [40, 50, 40, 50]
        np.testing.assert_allclose(p.reshape(-1), edges, rtol=1e-6)
        rows = min(b[0] + s[0], 20) - max(b[0], 4)
        columns = min(b[1] + s[1], 45) - max(b[1], 10)
        assert max(rows, 0) * max(columns, 0) >= 0.5 * 16 * 35
    with tf.Session() as session:
        again = session.run([begin, size])
    assert again[0].tolist() == draws[0][0].tolist()
