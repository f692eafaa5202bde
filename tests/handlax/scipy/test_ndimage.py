"""Images at coordinates, against SciPy."""

import numpy as np
import pytest
import scipy.ndimage

import handlax as hx
from handlax.errors import BadArgument, ShapeMismatch
from handlax.scipy import ndimage

# of SciPy's modes "constant" and "wrap" interpolate with what is outside in another way
MODES = {
    "constant": "grid-constant", "nearest": "nearest", "wrap": "grid-wrap", "mirror": "mirror", "reflect": "reflect"
}
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [0, 1])
def test_values_are_those_of_scipy(mode, order):
    x, places = RNG.standard_normal((4, 5)), [RNG.uniform(-9, 13, (3, 20)) for _ in range(2)]
    y = ndimage.map_coordinates(x, places, order, mode, 0.7)
    expected = scipy.ndimage.map_coordinates(x, places, order=order, mode=MODES[mode], cval=0.7)
    np.testing.assert_allclose(np.asarray(y), expected, rtol=1e-12, atol=1e-12)


def test_integers_are_rounded_and_an_axis_of_one_element_is_mirrored_onto_itself():
    x = np.array([[1, 4, 9]])
    y = ndimage.map_coordinates(x, [np.array([0.0, 5.0]), np.array([0.5, 1.25])], 1, "mirror")
    assert y.dtype == x.dtype and y.tolist() == [3, 5]


def test_coordinates_and_elements_have_derivatives():
    x, places = RNG.standard_normal(6), np.array([0.3, 2.6, 4.1])
    hx.test_util.check_grads(lambda x, p: ndimage.map_coordinates(x, [p], 1, "reflect"), (x, places), order=1)


@pytest.mark.parametrize(
    ("error", "said", "arguments"),
    [
        (ShapeMismatch, "for each axis", ([np.ones(1)], 1)),
        (BadArgument, "order must be 0 or 1", ([np.ones(1)] * 2, 3)),
        (BadArgument, "mode must be one of", ([np.ones(1)] * 2, 1, "grid-wrap")),
    ],
)
def test_what_does_not_fit_is_refused(error, said, arguments):
    with pytest.raises(error, match=said):
        ndimage.map_coordinates(np.ones((2, 2)), *arguments)
