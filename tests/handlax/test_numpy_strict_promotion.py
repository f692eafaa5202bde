"""What a function does inside promotes freely: strict settings are about the operands that it is given."""

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax import scipy
from handlax.scipy.spatial.transform import Rotation

I, J = np.array([2, 0, 1], np.int32), np.arange(24, dtype=np.int32) % 7
V, M = np.array([3.0, 1.0, 2.0], np.float32), np.arange(9, dtype=np.float32).reshape(3, 3) + 5 * np.eye(3, dtype="f")
CALLS = {
    "gradient": lambda: hnp.gradient(I, I),
    "logspace": lambda: hnp.logspace(I, I, 5),
    "polyfit": lambda: hnp.polyfit(np.arange(6, dtype="f"), np.eye(6, 2, dtype="f"), 1, cov=True),
    "trapezoid": lambda: [hnp.trapezoid(I, I), hnp.trapezoid(M, V), hnp.trapezoid(M, M, axis=0)],
    "histogram": lambda: hnp.histogram(I, weights=I, density=True),
    "logsumexp": lambda: scipy.special.logsumexp(I, b=I),
    "wofz": lambda: scipy.special.wofz(V),
    "lu": lambda: scipy.linalg.lu(np.stack([M, M.T])),
    "csd": lambda: scipy.signal.csd(J, J, nperseg=8),
    "vq": lambda: scipy.cluster.vq.vq(J.reshape(8, 3), np.eye(3, dtype=np.int32)),
    "gmres": lambda: [scipy.sparse.linalg.gmres(M.astype(t), V.astype(t))[0] for t in "fF"],
    "rankdata": lambda: scipy.stats.rankdata(I),
    "nearest": lambda: scipy.interpolate.RegularGridInterpolator((np.sort(V),), V, "nearest")(V[:, None]),
    "rotations": lambda: (r := Rotation.from_euler("xyz", M)).inv().as_quat() * r.as_quat(),
}


@pytest.mark.filterwarnings("ignore:csd:UserWarning")
@pytest.mark.parametrize("name", CALLS)
def test_values_under_strict_promotion_are_those_without(name):
    expected = CALLS[name]()
    with hx.numpy_dtype_promotion("strict"), hx.numpy_rank_promotion("raise"):
        found = CALLS[name]()
    for x, y in zip(hx.tree.leaves(expected), hx.tree.leaves(found), strict=True):
        np.testing.assert_array_equal(x, y)
