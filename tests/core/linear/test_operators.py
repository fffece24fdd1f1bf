"""Every linear operator beside the matrix that it stands for."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.linear import addition, algebra

L = tf.linalg
RNG = np.random.RandomState(3)
TYPES = {"real": tf.float64, "complex": tf.complex128}


@pytest.fixture(autouse=True)
def fresh():
    with tf.Graph().as_default():
        yield


def draw(dtype, *shape):
    values = RNG.randn(*shape)
    if dtype.is_complex:
        values = values + 1j * RNG.randn(*shape)
    return values.astype(dtype.as_numpy_dtype)


def definite(dtype, *shape):
    root = draw(dtype, *shape)
    return root @ np.conj(np.swapaxes(root, -1, -2)) + 3 * np.eye(shape[-1])


def eye(*batch, n=4):
    return np.broadcast_to(np.eye(n), (*batch, n, n))


def diagonal(values):
    return values[..., None] * np.eye(values.shape[-1])


def circulant(spectrum, depth):
    """The dense matrix of a spectrum: what it does to each unit vector."""
    sizes = spectrum.shape[-depth:]
    units = np.eye(int(np.prod(sizes))).reshape(-1, *sizes)
    axes = tuple(range(-depth, 0))
    made = np.fft.ifftn(np.fft.fftn(units, axes=axes) * spectrum, axes=axes)
    return made.reshape(len(units), -1).T


def make(kind, dtype, given):
    """(operator, matrix); `given` makes a tensor of an array."""
    if kind == "full":
        matrix = draw(dtype, 2, 4, 4)
        return L.LinearOperatorFullMatrix(given(matrix)), matrix
    if kind == "definite":
        matrix = definite(dtype, 2, 4, 4)
        return L.LinearOperatorFullMatrix(
            given(matrix), is_self_adjoint=True, is_positive_definite=True
        ), matrix
    if kind == "lower":
        matrix = draw(dtype, 4, 4) + 3 * np.eye(4)
        return L.LinearOperatorLowerTriangular(given(matrix)), np.tril(matrix)
    if kind == "diag":
        values = draw(dtype, 3, 1, 4)
        return L.LinearOperatorDiag(given(values)), diagonal(values)
    if kind == "identity":
        return L.LinearOperatorIdentity(4, batch_shape=[2], dtype=dtype), eye(2)
    if kind == "scaled":
        factor = draw(dtype, 2)
        operator = L.LinearOperatorScaledIdentity(4, given(factor))
        return operator, factor[:, None, None] * np.eye(4)
    if kind == "householder":
        axis = draw(dtype, 2, 4)
        unit = axis / np.linalg.norm(axis, axis=-1, keepdims=True)
        outer = unit[..., None] * np.conj(unit[..., None, :])
        return L.LinearOperatorHouseholder(given(axis)), np.eye(4) - 2 * outer
    if kind == "composition":
        a, b = draw(dtype, 2, 4, 4), draw(dtype, 4)
        parts = [L.LinearOperatorFullMatrix(given(a)), L.LinearOperatorDiag(given(b))]
        return L.LinearOperatorComposition(parts), a @ diagonal(b)
    if kind == "block_diag":
        a, b = draw(dtype, 2, 3, 3), draw(dtype, 2)
        parts = [
            L.LinearOperatorFullMatrix(given(a), is_square=True),
            L.LinearOperatorDiag(given(b)),
        ]
        matrix = np.zeros((2, 5, 5), a.dtype)
        matrix[:, :3, :3], matrix[:, 3:, 3:] = a, diagonal(b)
        return L.LinearOperatorBlockDiag(parts), matrix
    if kind == "kronecker":
        a, b = draw(dtype, 2, 2, 2), draw(dtype, 3, 3)
        parts = [L.LinearOperatorFullMatrix(given(m)) for m in (a, b)]
        return L.LinearOperatorKronecker(parts), np.stack([np.kron(m, b) for m in a])
    if kind == "update":
        values, u, d = np.abs(draw(dtype, 4)) + 2.0, draw(dtype, 2, 4, 2), draw(dtype, 2)
        v = draw(dtype, 2, 4, 2)
        operator = L.LinearOperatorLowRankUpdate(
            L.LinearOperatorDiag(given(values.astype(u.dtype)), is_positive_definite=True),
            given(u), given(d), given(v),
        )  # fmt: skip
        return operator, diagonal(values) + u @ diagonal(d) @ np.conj(np.swapaxes(v, -1, -2))
    if kind == "definite_update":
        values, u = np.abs(draw(dtype, 4)) + 2.0, draw(dtype, 4, 2)
        base = L.LinearOperatorDiag(
            given(values.astype(u.dtype)), is_positive_definite=True, is_self_adjoint=True
        )
        operator = L.LinearOperatorLowRankUpdate(base, given(u), is_self_adjoint=True)
        return operator, diagonal(values) + u @ np.conj(u.T)
    if kind == "toeplitz":
        col, row = draw(dtype, 4), draw(dtype, 4)
        matrix = [[col[i - j] if i >= j else row[j - i] for j in range(4)] for i in range(4)]
        return L.LinearOperatorToeplitz(given(col), given(row)), np.array(matrix)
    if kind == "adjoint":
        matrix = draw(dtype, 2, 4, 4)
        inner = L.LinearOperatorFullMatrix(given(matrix))
        return L.LinearOperatorAdjoint(inner), np.conj(np.swapaxes(matrix, -1, -2))
    matrix = draw(dtype, 2, 4, 4)
    inner = L.LinearOperatorFullMatrix(given(matrix), is_non_singular=True)
    return L.LinearOperatorInversion(inner), np.linalg.inv(matrix)


KINDS = (
    "full", "definite", "lower", "diag", "identity", "scaled", "householder", "composition",
    "block_diag", "kronecker", "update", "definite_update", "toeplitz", "adjoint", "inversion",
)  # fmt: skip


@pytest.mark.parametrize("shapes", ["known", "fed"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_against_the_dense_matrix(kind, dtype, shapes):
    feeds = {}

    def given(array):
        if shapes == "known":
            return tf.constant(array)
        tensor = tf.placeholder(tf.as_dtype(array.dtype))
        feeds[tensor] = array
        return tensor

    operator, matrix = make(kind, TYPES[dtype], given)
    n = matrix.shape[-1]
    x = draw(TYPES[dtype], *matrix.shape[:-2], n, 2)
    turned = np.conj(np.swapaxes(matrix, -1, -2))
    x_adjoint = np.conj(np.swapaxes(x, -1, -2))
    vector = x[..., 0]
    sign, log_det = np.linalg.slogdet(matrix)
    want = {
        "dense": matrix, "shape": matrix.shape, "diag": np.diagonal(matrix, 0, -2, -1),
        "trace": np.trace(matrix, 0, -2, -1), "det": sign * np.exp(log_det), "log": log_det,
        "matmul": matrix @ x, "matmul_adjoint": turned @ x, "matmul_arg": matrix @ x,
        "matvec": (matrix @ vector[..., None])[..., 0], "add": matrix + matrix,
        "solve": np.linalg.solve(matrix, x), "solve_adjoint": np.linalg.solve(turned, x),
        "solve_arg": np.linalg.solve(matrix, x),
        "solvevec": np.linalg.solve(matrix, vector[..., None])[..., 0],
        "inverse": np.linalg.inv(matrix), "adjoint": turned, "square": matrix @ matrix,
    }  # fmt: skip
    found = {
        "dense": operator.to_dense(), "shape": operator.shape_tensor(),
        "diag": operator.diag_part(), "trace": operator.trace(), "det": operator.determinant(),
        "log": operator.log_abs_determinant(), "matmul": operator.matmul(x),
        "matmul_adjoint": operator.matmul(x, adjoint=True),
        "matmul_arg": operator.matmul(x_adjoint, adjoint_arg=True),
        "matvec": operator.matvec(vector), "add": operator.add_to_tensor(matrix.astype(x.dtype)),
        "solve": operator.solve(x), "solve_adjoint": operator.solve(x, adjoint=True),
        "solve_arg": operator.solve(x_adjoint, adjoint_arg=True),
        "solvevec": operator.solvevec(vector), "inverse": operator.inverse().to_dense(),
        "adjoint": operator.adjoint().to_dense(), "square": operator.matmul(operator).to_dense(),
    }  # fmt: skip
    if shapes == "known":
        assert operator.shape.as_list() == list(matrix.shape)
        assert found["dense"].shape.as_list() == list(matrix.shape)
    with tf.Session() as session:
        values = session.run(found, feeds)
    for name, value in values.items():
        np.testing.assert_allclose(value, want[name], rtol=1e-6, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_circulants(depth):
    spectrum = draw(tf.complex128, *[3, 2, 2][:depth]) + 2
    cls = {
        1: L.LinearOperatorCirculant, 2: L.LinearOperatorCirculant2D,
        3: L.LinearOperatorCirculant3D,
    }[depth]  # fmt: skip
    operator = cls(spectrum, input_output_dtype=tf.complex128)
    matrix = circulant(spectrum, depth)
    x = draw(tf.complex128, len(matrix), 2)
    found = [
        operator.to_dense(), operator.matmul(x, adjoint=True), operator.solve(x),
        operator.determinant(), operator.trace(), operator.diag_part(),
        operator.convolution_kernel(), operator.inverse().to_dense(),
    ]  # fmt: skip
    want = [
        matrix, np.conj(matrix.T) @ x, np.linalg.solve(matrix, x), np.linalg.det(matrix),
        np.trace(matrix), np.diagonal(matrix), matrix[:, 0].reshape(spectrum.shape),
        np.linalg.inv(matrix),
    ]  # fmt: skip
    with tf.Session() as session:
        for value, expected in zip(session.run(found), want, strict=True):
            np.testing.assert_allclose(value, expected, atol=1e-8)


def test_zeros():
    operator = L.LinearOperatorZeros(2, 3, batch_shape=[4], is_square=False, is_self_adjoint=False)
    assert operator.shape.as_list() == [4, 2, 3]
    with tf.Session() as session:
        assert session.run(operator.to_dense()).shape == (4, 2, 3)
        assert not session.run(operator.matmul(np.ones((4, 3, 5), np.float32))).any()
    with pytest.raises(ValueError, match="always singular"):
        L.LinearOperatorZeros(2, is_non_singular=True)
    with pytest.raises(NotImplementedError, match="singular"):
        L.LinearOperatorZeros(2).solve(np.ones((2, 1), np.float32))


def test_the_kind_of_what_comes_out():
    diag = L.LinearOperatorDiag([1.0, 2.0], is_positive_definite=True)
    lower = L.LinearOperatorLowerTriangular([[1.0, 0.0], [3.0, 2.0]])
    identity = L.LinearOperatorIdentity(2)
    assert isinstance(diag.matmul(diag), L.LinearOperatorDiag)
    assert diag.matmul(diag).is_positive_definite is True
    assert isinstance(diag.inverse(), L.LinearOperatorDiag)
    assert isinstance(diag.cholesky(), L.LinearOperatorDiag)
    assert isinstance(diag.matmul(lower), L.LinearOperatorLowerTriangular)
    assert isinstance(diag.solve(lower), L.LinearOperatorLowerTriangular)
    assert isinstance(lower.matmul(diag), L.LinearOperatorLowerTriangular)
    assert identity.matmul(lower) is lower and lower.matmul(identity) is lower
    assert isinstance(lower.matmul(lower), L.LinearOperatorComposition)
    assert lower.adjoint().adjoint() is lower and lower.inverse().inverse() is lower
    assert isinstance(L.LinearOperatorZeros(2).matmul(diag), L.LinearOperatorZeros)
    full = L.LinearOperatorFullMatrix(
        [[4.0, 2.0], [2.0, 5.0]], is_self_adjoint=True, is_positive_definite=True
    )
    with tf.Session() as session:
        root = session.run(full.cholesky().to_dense())
    np.testing.assert_allclose(root, [[2, 0], [1, 2]])


def test_hints_and_shapes_that_contradict():
    with pytest.raises(ValueError, match="positive definite matrix is always non-singular"):
        L.LinearOperatorFullMatrix([[1.0]], is_positive_definite=True, is_non_singular=False)
    with pytest.raises(ValueError, match="always self adjoint"):
        L.LinearOperatorDiag([1.0], is_self_adjoint=False)
    with pytest.raises(TypeError, match="same dtype"):
        L.LinearOperatorComposition([L.LinearOperatorDiag([1.0]), L.LinearOperatorDiag(np.ones(1))])
    with pytest.raises(ValueError, match="at least 2 dimensions"):
        L.LinearOperatorFullMatrix([1.0])
    operator = L.LinearOperatorFullMatrix([[1.0, 2.0]])
    with pytest.raises(ValueError, match="not compatible"):
        operator.matmul([[1.0]])
    with pytest.raises(TypeError, match="Expected argument to have dtype"):
        operator.matmul(np.ones((2, 1)))
    with pytest.raises(NotImplementedError, match="Exact solve"):
        operator.solve([[1.0]])
    with pytest.raises(NotImplementedError, match="not be square"):
        operator.determinant()
    with pytest.raises(ValueError, match="non square"):
        operator.inverse()
    with pytest.raises(ValueError, match="Cholesky"):
        operator.cholesky()


def test_assertions():
    singular = L.LinearOperatorDiag([1.0, 0.0])
    skew = L.LinearOperatorFullMatrix([[1.0, 2.0], [3.0, 4.0]])
    with tf.Session() as session:
        session.run(L.LinearOperatorDiag([1.0, -2.0]).assert_non_singular())
        session.run(skew.assert_non_singular())
        with pytest.raises(tf.errors.InvalidArgumentError, match="Singular operator"):
            session.run(singular.assert_non_singular())
        with pytest.raises(tf.errors.InvalidArgumentError, match="non-positive diagonal"):
            session.run(singular.assert_positive_definite())
        with pytest.raises(tf.errors.InvalidArgumentError, match="not equal to its adjoint"):
            session.run(skew.assert_self_adjoint())


def test_variables_are_found_and_trained():
    v = tf.Variable([1.0, 2.0], use_resource=True)
    operator = L.LinearOperatorDiag(v)
    assert operator.trainable_variables == (v,)
    (gradient,) = tf.gradients(operator.matvec([3.0, 4.0]), v)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(gradient).tolist() == [3, 4]


def test_matrix_functions_take_operators():
    matrix, rhs = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([[1.0, 2.0], [3.0, 4.0]])
    operator = tf.linalg.LinearOperatorFullMatrix(
        matrix, is_self_adjoint=True, is_positive_definite=True
    )
    for function in (tf.linalg.trace, tf.linalg.diag_part, tf.linalg.logdet, tf.linalg.det):
        got, wanted = tf.Session().run([function(operator), function(tf.constant(matrix))])
        np.testing.assert_allclose(got, wanted)
    for function in (tf.linalg.adjoint, tf.linalg.cholesky, tf.linalg.inv):
        assert isinstance(function(operator), tf.linalg.LinearOperator)
    product, other, solved = tf.Session().run(
        [
            tf.matmul(operator, rhs, adjoint_b=True),
            tf.matmul(rhs, operator),
            tf.linalg.solve(operator, rhs),
        ]
    )
    np.testing.assert_allclose(product, matrix @ rhs.T)
    np.testing.assert_allclose(other, rhs @ matrix)
    np.testing.assert_allclose(matrix @ solved, rhs)
    with pytest.raises(ValueError, match="Transposing not supported"):
        tf.matmul(operator, rhs, transpose_a=True)
    with pytest.raises(ValueError, match="`rhs` as a LinearOperator"):
        tf.linalg.solve(rhs, operator)


def test_added_operators_are_as_few_and_as_plain_as_can_be():
    diagonal = L.LinearOperatorDiag([1.0, 1.0], is_positive_definite=True, name="A")
    other = L.LinearOperatorDiag([2.0, 2.0], is_positive_definite=True, name="B")
    lower = L.LinearOperatorLowerTriangular([[2.0, 0.0], [1.5, 2.0]])
    (both,) = addition.add_operators([diagonal, other])
    assert isinstance(both, L.LinearOperatorDiag) and both.name == "Add/B__A/"
    assert both.is_positive_definite and both.is_non_singular
    unit = L.LinearOperatorIdentity(2)
    (scaled,) = addition.add_operators([unit, L.LinearOperatorScaledIdentity(2, 2.0)])
    assert isinstance(scaled, L.LinearOperatorScaledIdentity)
    (triangle,) = addition.add_operators([diagonal, lower, other, unit])
    assert isinstance(triangle, L.LinearOperatorLowerTriangular)
    full = L.LinearOperatorFullMatrix([[-1.0, -1.0], [-1.0, -1.0]])
    (matrix,) = addition.add_operators([full, lower, diagonal], operator_name="sum")
    assert isinstance(matrix, L.LinearOperatorFullMatrix) and matrix.name == "sum"
    tiers = [[addition.AddAndReturnDiag()]]
    assert len(addition.add_operators([diagonal, lower, other], addition_tiers=tiers)) == 2
    with tf.Session() as session:
        assert session.run(matrix.to_dense()).tolist() == [[2.0, -1.0], [0.5, 2.0]]
        assert session.run(triangle.to_dense()).tolist() == [[6.0, 0.0], [1.5, 6.0]]


def test_operators_that_cannot_be_added_are_refused():
    with pytest.raises(ValueError, match="must contain at least one operator"):
        addition.add_operators([])
    with pytest.raises(TypeError, match="must contain only LinearOperator"):
        addition.add_operators([1, 2])
    two, three = L.LinearOperatorIdentity(2), L.LinearOperatorIdentity(3)
    with pytest.raises(ValueError, match="must have the same domain dimension"):
        addition.add_operators([two, three])


def test_rules_for_operators_of_ones_own():
    class Own(L.LinearOperatorIdentity):
        pass

    algebra.matmul.register(Own, Own)(lambda a, b: "own")
    assert algebra.matmul(Own(2), Own(2)) == "own"
    assert algebra.matmul.find(Own, L.LinearOperatorDiag) is not None
    with pytest.raises(ValueError, match=r"Matmul\(Own, Own\) has already been registered"):
        algebra.matmul.register(Own, Own)(lambda a, b: None)
    with pytest.raises(TypeError, match="Matmul must be callable"):
        algebra.matmul.register(Own, L.LinearOperator)("a name")


@pytest.mark.parametrize(
    ("fed", "says"),
    [
        ({"rows": [1]}, "num_rows must be a 0-D Tensor"),
        ({"rows": -2}, "num_rows must be non-negative"),
        ({"batch": 2}, "batch_shape must be a 1-D Tensor"),
        ({"batch": [-2]}, "batch_shape must be non-negative"),
    ],
)
def test_sizes_that_are_wrong_when_it_runs(fed, says):
    rows, batch = tf.placeholder(tf.int32), tf.placeholder(tf.int32)
    for kind in (L.LinearOperatorIdentity, L.LinearOperatorZeros):
        dense = kind(rows, batch_shape=batch, assert_proper_shapes=True).to_dense()
        with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=says):
            session.run(dense, {rows: fed.get("rows", 2), batch: fed.get("batch", [3])})
