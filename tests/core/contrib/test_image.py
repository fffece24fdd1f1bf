"""`tf.contrib.image` and `tf.contrib.resampler`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf

image = tf.contrib.image


def run(*fetches: Any) -> Any:
    with tf.Session() as session:
        found = session.run(fetches)
    return found[0] if len(fetches) == 1 else found


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


PIXELS = np.arange(12, dtype=np.uint8).reshape(3, 4)


# ---------------------------------------------------------------- transforms
@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 1), (1, 3, 4, 1)])
def test_turned_and_shifted(shape: tuple[int, ...]) -> None:
    pixels = PIXELS.reshape(shape)
    turned, shifted = run(image.rotate(pixels, np.pi), image.translate(pixels, [1.0, -1.0]))
    assert turned.shape == shifted.shape == shape
    np.testing.assert_array_equal(turned.reshape(3, 4), PIXELS[::-1, ::-1])
    np.testing.assert_array_equal(shifted.reshape(3, 4), [[0, 4, 5, 6], [0, 8, 9, 10], [0] * 4])


def test_between_pixels_and_to_another_size() -> None:
    halves = image.transform(
        PIXELS.astype(np.float32), [0.5, 0, 0, 0, 0.5, 0, 0, 0], "bilinear", [2, 8]
    )
    assert halves.shape.as_list() == [2, 8]
    rows = [np.arange(7) / 2, 2 + np.arange(7) / 2]
    np.testing.assert_allclose(run(halves)[:, :7], rows)
    assert run(halves)[0, 7] == 1.5  # half of it is outside


def test_one_transform_of_two_and_back() -> None:
    turn = image.angles_to_projective_transforms([0.3, -1.1], 5.0, 7.0)
    shift = image.translations_to_projective_transforms([2.0, 3.0])
    both = image.compose_transforms(turn, tf.tile(shift, [2, 1]))
    back = tf.matrix_inverse(image.flat_transforms_to_matrices(both))
    none = image.compose_transforms(both, image.matrices_to_flat_transforms(back))
    np.testing.assert_allclose(run(none), [[1, 0, 0, 0, 1, 0, 0, 0]] * 2, atol=1e-5)


def test_the_gradient_goes_back_where_pixels_come_from() -> None:
    x = tf.constant(PIXELS[:3, :3].astype(np.float32))
    turned = image.rotate(x, np.pi / 2)
    weights = np.arange(9, dtype=np.float32).reshape(3, 3)
    found = run(tf.gradients(turned * weights, x)[0])
    np.testing.assert_allclose(found, np.rot90(weights, -1), atol=1e-5)


def test_what_transforms_refuse() -> None:
    with pytest.raises(TypeError, match="Invalid dtype"):
        image.rotate(np.zeros((2, 2), np.int16), 0.0)
    with pytest.raises(TypeError, match="Images should have rank between 2 and 4"):
        image.rotate(np.zeros(2, np.int32), 0.0)
    with pytest.raises(TypeError, match="Angles should have rank 0 or 1"):
        image.rotate(PIXELS, [[0.0]])
    with pytest.raises(ValueError, match="Supported types: NEAREST, BILINEAR"):
        image.transform(PIXELS, [1.0] * 8, "cubic")
    with pytest.raises(AssertionError, match="cannot be empty"):
        image.compose_transforms()


# ---------------------------------------------------------------- warps
def test_a_flow_moves_pixels() -> None:
    pixels = PIXELS.astype(np.float32).reshape(1, 3, 4, 1)
    flow = np.zeros((1, 3, 4, 2), np.float32)
    flow[..., 1] = 0.5
    found = run(image.dense_image_warp(pixels, flow))[0, :, :, 0]
    np.testing.assert_allclose(found[0], [0, 0.5, 1.5, 2.5])  # the edge goes on
    small = tf.constant(pixels[:, :1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Grid height must be at least 2"):
        run(image.dense_image_warp(small, tf.placeholder_with_default(flow[:, :1], [1, 1, 4, 2])))


def test_points_go_where_they_are_told() -> None:
    pixels = np.zeros((1, 9, 9, 1), np.float32)
    pixels[0, 4, 4] = 1
    warped, flow = image.sparse_image_warp(
        pixels, [[[4.0, 4.0]]], [[[4.0, 5.0]]], num_boundary_points=2
    )
    found, moved = run(warped, flow)
    assert found.shape == pixels.shape and moved.shape == (1, 9, 9, 2)
    assert np.unravel_index(found.argmax(), found.shape) == (0, 4, 5, 0)
    np.testing.assert_allclose(moved[0, [0, 0, 8, 8], [0, 8, 0, 8]], 0, atol=1e-3)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 6])
def test_a_spline_has_the_values_it_goes_through(order: int) -> None:
    points = np.random.Generator(np.random.Philox(3)).uniform(0, 2, (2, 7, 2))
    values = np.stack([points.sum(axis=2), points[..., 0] ** 2], axis=2)
    found = image.interpolate_spline(points, values, points, order)
    np.testing.assert_allclose(run(found), values, atol=1e-5)
    plane = image.interpolate_spline(points, values[..., :1], points + 5, order)
    np.testing.assert_allclose(run(plane)[..., 0], points.sum(axis=2) + 10, atol=1e-3)
    with pytest.raises(ValueError, match=r"input points \(d\) must be statically"):
        image.interpolate_spline(tf.placeholder("float", [2, 7, None]), values, points, order)


# ---------------------------------------------------------------- colours and regions
def test_colours() -> None:
    grey = np.full((2, 2, 3), 100, np.uint8)
    np.testing.assert_array_equal(run(image.adjust_hsv_in_yiq(grey, 1.0, 2.0)), grey)
    np.testing.assert_array_equal(run(image.random_hsv_in_yiq(grey, 0.5, 0.5, 2.0)), grey)
    assert run(image.adjust_hsv_in_yiq(grey, 0.3, 1, 0.5)).max() == 50
    with pytest.raises(ValueError, match="lower_value must be < upper_value"):
        image.random_hsv_in_yiq(grey, lower_value=2)


def test_regions_are_numbered_as_they_come() -> None:
    pixels = np.array([[5, 0, 5], [5, 0, 7], [5, 5, 7]])
    found = image.connected_components(pixels)
    assert run(found).tolist() == [[1, 0, 2], [1, 0, 3], [1, 1, 3]]
    both = image.connected_components(np.array([[[False, True]], [[True, True]]]))
    assert run(both).tolist() == [[[0, 1]], [[2, 2]]]
    with pytest.raises(TypeError, match="images should have rank 2"):
        image.connected_components([1, 0])


def test_pairs_of_the_nearest() -> None:
    distances = np.array([[0.5, 0.1, 0.3], [0.2, 0.05, 0.9]], np.float32)
    rows, columns = run(*image.bipartite_match(distances, -1.0))
    assert (rows.tolist(), columns.tolist()) == ([2, 1], [-1, 1, 0])


# ---------------------------------------------------------------- resampler
def test_points_of_images_and_their_gradients() -> None:
    data = tf.constant(PIXELS.astype(np.float64).reshape(1, 3, 4, 1))
    warp = tf.constant([[[1.5, 0.5], [-0.5, 0.0], [9.0, 1.0]]], tf.float64)
    found = tf.contrib.resampler.resampler(data, warp)
    assert run(found).ravel().tolist() == [3.5, 0, 0]
    on_data, on_warp = run(*tf.gradients(found, [data, warp]))
    assert on_data[0, :, :, 0].tolist() == [[0.5, 0.25, 0.25, 0], [0, 0.25, 0.25, 0], [0] * 4]
    # Along x pixels differ by 1, along y by 4; at the edge the second point fades out.
    assert on_warp[0].tolist() == [[1, 4], [0, 2], [0, 0]]
