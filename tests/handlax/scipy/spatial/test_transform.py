"""Rotations against SciPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.spatial import transform

import handlax as hx
from handlax import errors
from handlax.scipy.spatial.transform import Rotation, Slerp

RNG = np.random.default_rng(4)
QUATERNIONS = RNG.normal(size=(12, 4))
SEQUENCES = ["".join(axes) for axes in itertools.product("xyz", repeat=3) if axes[0] != axes[1] != axes[2]]


def pair(quat):
    return Rotation.from_quat(quat), transform.Rotation.from_quat(quat)


@pytest.mark.parametrize("quat", [QUATERNIONS, QUATERNIONS[0]])
def test_every_form_is_that_of_scipy(quat):
    ours, theirs = pair(quat)
    for name in ("as_matrix", "as_rotvec", "as_mrp", "magnitude", "as_quat"):
        np.testing.assert_allclose(getattr(ours, name)(), getattr(theirs, name)(), atol=1e-13)
    np.testing.assert_allclose(ours.as_quat(True, True), theirs.as_quat(True, scalar_first=True), atol=1e-14)
    np.testing.assert_allclose(ours.as_rotvec(degrees=True), theirs.as_rotvec(degrees=True), atol=1e-11)
    for make, form in (("from_matrix", "as_matrix"), ("from_rotvec", "as_rotvec"), ("from_mrp", "as_mrp")):
        again = getattr(Rotation, make)(getattr(theirs, form)())
        np.testing.assert_allclose(again.as_matrix(), theirs.as_matrix(), atol=1e-13)
    vectors = RNG.normal(size=(*quat.shape[:-1], 3))
    for inverse in (False, True):
        np.testing.assert_allclose(ours.apply(vectors, inverse), theirs.apply(vectors, inverse), atol=1e-13)
    np.testing.assert_allclose((ours * ours.inv()).magnitude(), 0 * theirs.magnitude(), atol=1e-7)
    np.testing.assert_allclose((ours * ours).as_matrix(), (theirs * theirs).as_matrix(), atol=1e-13)


@pytest.mark.parametrize("seq", [*SEQUENCES, *[seq.upper() for seq in SEQUENCES]])
def test_angles_of_euler(seq):
    ours, theirs = pair(QUATERNIONS)
    np.testing.assert_allclose(ours.as_euler(seq), theirs.as_euler(seq), atol=1e-12)
    angles = RNG.uniform(-3, 3, (5, 3))
    expected = transform.Rotation.from_euler(seq, angles).as_matrix()
    np.testing.assert_allclose(Rotation.from_euler(seq, angles).as_matrix(), expected, atol=1e-13)


def test_angles_about_fewer_axes_and_in_degrees():
    rows = [[1.0, 2.0], [3.0, 4.0]]
    for seq, angles in (("x", 30.0), ("z", [[9.0], [2.0]]), ("XZ", [10.0, 20.0]), ("yx", rows)):
        expected = transform.Rotation.from_euler(seq, angles, degrees=True).as_matrix()
        found = Rotation.from_euler(seq, np.asarray(angles), degrees=True).as_matrix()
        np.testing.assert_allclose(found.reshape(expected.shape), expected, atol=1e-13)
    for mistake in (lambda: Rotation.from_euler("xY", [1.0, 2.0]), lambda: pair(QUATERNIONS)[0].as_euler("xxy"),
                    lambda: Rotation.from_quat(np.ones(3)), lambda: Rotation.from_euler("xyz", [1.0])):
        with pytest.raises(errors.HandlaxError):
            mistake()


def test_small_angles_and_derivatives():
    tiny = np.array([[0.0, 0.0, 0.0], [1e-9, 0.0, 0.0], [0.0, 9e-4, 1e-5]])
    np.testing.assert_allclose(Rotation.from_rotvec(tiny).as_rotvec(), tiny, rtol=1e-12)
    slope = hx.jacfwd(lambda v: Rotation.from_rotvec(v).apply(np.array([1.0, 0.0, 0.0])))(np.zeros(3))
    np.testing.assert_allclose(slope, [[0, 0, 0], [0, 0, 1], [0, -1, 0]], atol=1e-15)


def test_arrays_of_rotations():
    ours, theirs = pair(QUATERNIONS)
    assert len(ours) == 12 and ours[0].single and not ours.single
    np.testing.assert_allclose(ours[2:5].as_quat(), theirs[2:5].as_quat(), atol=1e-14)
    weights = RNG.uniform(0.5, 2, 12)
    for w in (None, weights):
        np.testing.assert_allclose(ours.mean(w).as_matrix(), theirs.mean(w).as_matrix(), atol=1e-12)
    assert Rotation.concatenate([ours, ours[0]]).quat.shape == (13, 4)
    np.testing.assert_array_equal(Rotation.identity(2).as_matrix(), np.stack([np.eye(3)] * 2))
    drawn = Rotation.random(hx.random.key(0), 2000)
    np.testing.assert_allclose(drawn.apply(np.array([1.0, 0.0, 0.0])).mean(0), 0, atol=0.06)
    turned = hx.jit(hx.vmap(lambda r, v: r.apply(v)))(ours, np.ones((12, 3)))
    np.testing.assert_allclose(turned, theirs.apply(np.ones((12, 3))), atol=1e-13)


def test_rotations_between_times():
    times, at = np.array([0.0, 1.0, 2.5, 3.0]), np.array([0.0, 0.3, 1.0, 2.0, 3.0])
    ours, theirs = pair(QUATERNIONS[:4])
    expected = transform.Slerp(times, theirs)(at).as_matrix()
    np.testing.assert_allclose(Slerp.init(times, ours)(at).as_matrix(), expected, atol=1e-12)
    with pytest.raises(errors.ShapeMismatch, match="one for each time"):
        Slerp.init(times[:2], ours)


@pytest.mark.parametrize("use", [len, lambda rotation: rotation[0]])
def test_a_single_rotation_is_no_sequence(use):
    with pytest.raises(errors.BadCall, match=r"got a single one, f64\[4\]"):
        use(Rotation.from_quat(np.array([0.0, 0.0, 0.0, 1.0])))
