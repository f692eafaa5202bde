"""Two ragged axes as one, whose rows leave the lanes: each equals the loop over lanes."""

from helpers.ragged_lanes import R, law_of_lanes

import handlax as hx
from handlax import numpy as hnp

# a function of a lane, its arguments (``helpers.ragged_lanes``), and the axes of its results
CASES = {
    "scores": (lambda x: hnp.tanh(x @ x.T).reshape(-1), "rows", R),
    "of two lengths": (lambda x, y: hnp.tanh(x @ y.T).reshape(-1), "rows others", R),
    "with axes around": (
        lambda x, y: hnp.sin(hnp.einsum("nd,md->dnm", x, y)).reshape(3, x.shape[0] * y.shape[0]).T, "rows others", R),
    "and back": (lambda x, y: (2 * (x @ y.T).reshape(-1)).reshape(x.shape[0], y.shape[0]) @ y, "rows others", R),
    "gradient within": (lambda x: hx.grad(lambda x: (hnp.sin(x @ x.T).reshape(-1) ** 2).sum())(x), "rows", R),
    "folded": (lambda x: hnp.tanh(x @ x.T).reshape(-1).sum(), "rows", 0),
}
test_eager_lanes, test_compiled_lanes = law_of_lanes(CASES)
