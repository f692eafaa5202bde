"""``handlax.scipy.spatial.transform``: rotations of three dimensions, as unit quaternions, and their interpolation.

A quaternion is (x, y, z, w), with the real part last. Source: SciPy, ``scipy.spatial.transform``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ... import numpy as hnp
from ... import random
from ...effects.base.errors import BadArgument, BadCall, ShapeMismatch
from ...effects.core.arrays import Array
from ...effects.trees.registration import frozen_node

__all__ = ["Rotation", "Slerp"]

SMALL = 1e-3  # angles below which quotients of sines are computed by series


def _numbers(x: Any) -> Any:
    """``x`` as an array of floats."""
    x = hnp.asarray(x)
    return x.astype(hnp.result_type(x, float))


def _shaped(name: str, x: Any, *last: int) -> Any:
    """``x`` as floats. Raises: ShapeMismatch: its last dimensions are not ``last``, or it has more than one besides."""
    x = _numbers(x)
    if x.shape[-len(last) :] != last or x.ndim > len(last) + 1:
        raise ShapeMismatch(f"{name}: an array (..., {', '.join(map(str, last))}) is needed, got {x.type}.")
    return x


def _norm(x: Any) -> Any:
    """The Euclidean norm of vectors, with derivative 0 at 0."""
    squares = (x * x).sum(-1, keepdims=True)
    zero = squares == 0
    return hnp.where(zero, 0, hnp.sqrt(hnp.where(zero, 1, squares)))


def _product(p: Any, q: Any) -> Any:
    """The quaternion product p q: the rotation q followed by p."""
    (a, s), (b, t) = ((x[..., :3], x[..., 3:]) for x in (p, q))
    real = s * t - (a * b).sum(-1, keepdims=True)
    return hnp.concatenate([s * b + t * a + hnp.cross(a, b), real], -1)


def _elementary(axis: str, angle: Any) -> Any:
    """The rotation about a coordinate axis."""
    unit = hnp.eye(3, dtype=angle.dtype)["xyz".index(axis.lower())].reshape(*(1,) * angle.ndim, 3)
    half = angle[..., None] / 2
    return hnp.concatenate([hnp.sin(half) * unit, hnp.cos(half)], -1)


@frozen_node
class Rotation:
    """A rotation, or an array of them: ``quat: f[4]`` or ``f[n, 4]``, of length 1. A pytree.

    >>> r = Rotation.from_rotvec(hnp.array([0.0, 0.0, hnp.pi / 2]))
    >>> hnp.round(r.apply(hnp.array([1.0, 0.0, 0.0])), 3).tolist()
    [0.0, 1.0, 0.0]
    """

    quat: Any

    @classmethod
    def from_quat(cls, quat: Any) -> Rotation:
        """The rotation of a quaternion, which is scaled to length 1."""
        quat = _shaped("Rotation.from_quat", quat, 4)
        return cls(quat / _norm(quat))

    @classmethod
    def from_matrix(cls, matrix: Any) -> Rotation:
        """The rotation of an orthogonal matrix, by the largest component of its quaternion."""
        m = _shaped("Rotation.from_matrix", matrix, 3, 3)
        diagonal = hnp.diagonal(m, axis1=-2, axis2=-1)
        trace = diagonal.sum(-1, keepdims=True)
        choice = hnp.argmax(hnp.concatenate([diagonal, trace], -1), -1)
        off, skew = m + hnp.swapaxes(m, -1, -2), hnp.swapaxes(m, -1, -2) - m
        twist = hnp.stack([skew[..., 1, 2], skew[..., 2, 0], skew[..., 0, 1]], -1)
        rows = []
        for i in range(3):
            first = 1 - trace[..., 0] + 2 * m[..., i, i]
            parts = [first if j == i else off[..., i, j] for j in range(3)]
            rows.append(hnp.stack([*parts, twist[..., i]], -1))
        rows.append(hnp.concatenate([twist, 1 + trace], -1))
        quat = hnp.choose(choice[..., None], rows, mode="clip")
        return cls(quat / _norm(quat))

    @classmethod
    def from_rotvec(cls, rotvec: Any, degrees: bool = False) -> Rotation:
        """The rotation given by a rotation vector: its direction is the axis, its length the angle."""
        v = _shaped("Rotation.from_rotvec", rotvec, 3)
        v = hnp.deg2rad(v) if degrees else v
        angle = _norm(v)
        near = angle < SMALL
        safe = hnp.where(near, 1, angle)
        scale = hnp.where(near, 0.5 - angle**2 / 48, hnp.sin(safe / 2) / safe)
        return cls(hnp.concatenate([v * scale, hnp.cos(angle / 2)], -1))

    @classmethod
    def from_mrp(cls, mrp: Any) -> Rotation:
        """The rotation of modified Rodrigues parameters: the axis times the tangent of a quarter of the angle."""
        v = _shaped("Rotation.from_mrp", mrp, 3)
        square = (v * v).sum(-1, keepdims=True)
        return cls(hnp.concatenate([2 * v, 1 - square], -1) / (1 + square))

    @classmethod
    def from_euler(cls, seq: str, angles: Any, degrees: bool = False) -> Rotation:
        """Rotations about up to three axes: fixed (extrinsic) ones for "xyz", rotating (intrinsic) ones for "XYZ"."""
        lower = seq.islower()
        if not 1 <= len(seq) <= 3 or {*seq.lower()} - {*"xyz"} or not (lower or seq.isupper()):
            raise BadArgument(f'Rotation.from_euler: seq must be up to three of "xyz", or of "XYZ", got {seq!r}.')
        a = _numbers(angles)
        a = hnp.deg2rad(a) if degrees else a
        if len(seq) == 1 and (not a.ndim or a.shape[-1] != 1):
            a = a[..., None]
        if not a.ndim or a.shape[-1] != len(seq):
            raise ShapeMismatch(f"Rotation.from_euler: {len(seq)} angles are needed for {seq!r}, got {a.type}.")
        quat = _elementary(seq[0], a[..., 0])
        for i, axis in enumerate(seq[1:], 1):
            step = _elementary(axis, a[..., i])
            quat = _product(step, quat) if lower else _product(quat, step)
        return cls(quat)

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> Rotation:
        """The identity rotation, or ``num`` of them."""
        return cls(hnp.broadcast_to(hnp.array([0, 0, 0, 1], dtype), (4,) if num is None else (num, 4)))

    @classmethod
    def random(cls, random_key: Any, num: int | None = None) -> Rotation:
        """A rotation drawn uniformly, or ``num`` of them."""
        return cls.from_quat(random.normal(random_key, (4,) if num is None else (num, 4)))

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Several rotations, or arrays of them, as one array."""
        return cls(hnp.concatenate([hnp.reshape(r.quat, (-1, 4)) for r in rotations]))

    @property
    def single(self) -> bool:
        """Whether it is one rotation."""
        return bool(self.quat.ndim == 1)

    def __len__(self) -> int:
        if self.single:
            raise BadCall(f"Rotation: len needs an array of rotations, got a single one, {self.quat.type}.")
        return int(self.quat.shape[0])

    def __getitem__(self, index: Any) -> Rotation:
        if self.single:
            raise BadCall(f"Rotation: an index needs an array of rotations, got a single one, {self.quat.type}.")
        return Rotation(self.quat[index])

    def __mul__(self, other: Rotation) -> Rotation:
        """The rotation ``other`` followed by this one."""
        quat = _product(self.quat, other.quat)
        return Rotation(quat / _norm(quat))

    def inv(self) -> Rotation:
        """The inverse rotation."""
        return Rotation(self.quat.at[..., :3].multiply(-1))

    def apply(self, vectors: Any, inverse: bool = False) -> Array:
        """The rotated vectors ``f[3]`` or ``f[n, 3]``, by one rotation or by one for each."""
        v = _shaped("Rotation.apply", vectors, 3)
        quat = self.inv().quat if inverse else self.quat
        axis, real = quat[..., :3], quat[..., 3:]
        twice = 2 * hnp.cross(axis, v)
        return v + real * twice + hnp.cross(axis, twice)

    def magnitude(self) -> Array:
        """The angle, between 0 and pi."""
        return 2 * hnp.arctan2(_norm(self.quat[..., :3])[..., 0], hnp.abs(self.quat[..., 3]))

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """The quaternion; if ``canonical``, of q and -q that whose first nonzero of (w, x, y, z) is positive."""
        quat = self.quat
        if canonical:
            sign: Any = 0
            for i in (2, 1, 0, 3):
                sign = hnp.where(quat[..., i] == 0, sign, hnp.sign(quat[..., i]))
            quat = quat * sign[..., None]
        return hnp.roll(quat, 1, -1) if scalar_first else quat

    def as_matrix(self) -> Array:
        """The orthogonal matrix: its columns are the rotated axes."""
        unit = hnp.eye(3, dtype=self.quat.dtype)
        return hnp.stack([Rotation(self.quat).apply(hnp.broadcast_to(e, (*self.quat.shape[:-1], 3))) for e in unit], -1)

    def as_rotvec(self, degrees: bool = False) -> Array:
        """The axis times the angle, between 0 and pi."""
        quat = hnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        sine = _norm(quat[..., :3])
        near = sine < SMALL
        angle = 2 * hnp.arctan2(hnp.where(near, 1, sine), quat[..., 3:])
        scale = hnp.where(near, 2 + sine**2 / 3, angle / hnp.where(near, 1, sine))
        rotvec = quat[..., :3] * scale
        return hnp.rad2deg(rotvec) if degrees else rotvec

    def as_mrp(self) -> Array:
        """The modified Rodrigues parameters, of length 1 at most."""
        quat = hnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        return quat[..., :3] / (1 + quat[..., 3:])

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """The angles about three axes, as in ``from_euler``; where two axes coincide the third angle is 0.

        Source: Bernardes & Viollet 2022, Quaternion to Euler angles conversion.
        """
        if len(seq) != 3 or {*seq.lower()} - {*"xyz"} or not (seq.islower() or seq.isupper()):
            raise BadArgument(f'Rotation.as_euler: seq must be three of "xyz", or of "XYZ", got {seq!r}.')
        fixed = seq.islower()
        i, j, k = ("xyz".index(c) for c in (seq.lower() if fixed else seq.lower()[::-1]))
        if j in (i, k):
            raise BadArgument(f"Rotation.as_euler: axes that follow each other must differ, got {seq!r}.")
        proper = i == k
        k = 3 - i - j if proper else k
        sign = (i - j) * (j - k) * (k - i) // 2
        q = self.quat
        a, b, c, d = q[..., 3], q[..., i], q[..., j], q[..., k] * sign
        if not proper:
            a, b, c, d = a - c, b + d, c + a, d - b
        middle = 2 * hnp.arctan2(hnp.hypot(c, d), hnp.hypot(a, b))
        half, difference = hnp.arctan2(b, a), hnp.arctan2(d, c)
        straight, turned = middle < 1e-7, middle > math.pi - 1e-7
        first = hnp.where(straight, 2 * half, hnp.where(turned, -2 * difference, half - difference))
        last = hnp.where(straight | turned, 0, half + difference)
        if not fixed:
            first = hnp.where(turned, -first, first)
            first, last = hnp.where(straight | turned, 0, first), hnp.where(straight | turned, first, last)
        if not proper:
            last, middle = sign * last, middle - math.pi / 2
        angles = [first, middle, last] if fixed else [last, middle, first]
        wrapped = hnp.stack([_wrapped(x) for x in angles], -1)
        return hnp.rad2deg(wrapped) if degrees else wrapped

    def mean(self, weights: Any = None) -> Rotation:
        """The mean rotation: the leading eigenvector of the sum of ``weights q q^T``."""
        quat = hnp.reshape(self.quat, (-1, 4))
        scaled = quat if weights is None else quat * _numbers(weights)[:, None]
        return Rotation(hnp.linalg.eigh(scaled.T @ quat)[1][:, -1])


def _wrapped(angle: Any) -> Any:
    """The angle reduced modulo 2 pi to [-pi, pi]."""
    angle = hnp.where(angle < -math.pi, angle + 2 * math.pi, angle)
    return hnp.where(angle > math.pi, angle - 2 * math.pi, angle)


@frozen_node
class Slerp:
    """Spherical linear interpolation of rotations. Make it by ``Slerp.init(times, rotations)``.

    >>> turn = Rotation.from_rotvec(hnp.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]))
    >>> Slerp.init([0.0, 2.0], turn)(1.0).as_rotvec().tolist()
    [0.0, 0.0, 0.5]
    """

    times: Any
    timedelta: Any
    rotations: Rotation
    rotvecs: Any

    @classmethod
    def init(cls, times: Any, rotations: Rotation) -> Slerp:
        """The interpolation of these rotations at increasing times."""
        times = _numbers(times)
        if rotations.single or times.shape != (len(rotations),) or len(rotations) < 2:
            raise ShapeMismatch(f"Slerp.init: rotations must be several, one for each time, got times {times.type}.")
        first = rotations[:-1]
        return cls(times, hnp.diff(times), first, (first.inv() * rotations[1:]).as_rotvec())

    def __call__(self, times: Any) -> Rotation:
        """The rotations at these times, which lie between the first and the last."""
        t = _numbers(times)
        index = hnp.clip(hnp.searchsorted(self.times, t, side="right") - 1, 0, self.timedelta.shape[0] - 1)
        share = (t - self.times[index]) / self.timedelta[index]
        return self.rotations[index] * Rotation.from_rotvec(self.rotvecs[index] * share[..., None])
