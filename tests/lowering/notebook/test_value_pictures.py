"""Pictures of numbers, read back with a library of pictures."""

import base64
import io
import re
import xml.etree.ElementTree as ET

import numpy as np
from matplotlib.image import imread

from handlax.lowering.notebook.value_pictures import ABOVE, BELOW, LONGEST_SIDE, MISSING, picture


def pixels(svg):
    """Red, green, blue and opacity of each square, from 0 to 255."""
    (data,) = re.findall(r"base64,([^\"]*)", svg)
    return np.rint(imread(io.BytesIO(base64.b64decode(data))) * 255).astype(int)


def test_the_hue_is_the_sign_and_the_opacity_the_magnitude():
    seen = pixels(picture(np.array([[-3.0, 0.0, 1.0], [3.0, np.nan, -np.inf]]), "x"))
    assert seen.shape == (2, 3, 4)
    assert seen[0, 0].tolist() == [*BELOW, 255] and seen[1, 0].tolist() == [*ABOVE, 255]
    assert seen[0, 1, 3] == 0
    assert seen[0, 2].tolist() == [*ABOVE, 85]
    assert seen[1, 1].tolist() == seen[1, 2].tolist() == [*MISSING, 255]


def test_zeros_alone_are_clear():
    assert not pixels(picture(np.zeros((3, 2)), "x"))[..., 3].any()


def test_a_picture_is_not_too_wide_and_few_numbers_are_large():
    for columns, width in ((2, 32), (64, LONGEST_SIDE), (1000, 1000)):
        assert ET.fromstring(picture(np.ones((1, columns)), "x")).get("width") == str(width)


def test_a_picture_has_a_name_that_is_read_out():
    svg = ET.fromstring(picture(np.ones((1, 1)), "f32[<1>]"))
    assert svg.get("role") == "img" and svg.get("aria-label") == "f32[<1>]"


def test_lines_are_in_the_units_of_the_whole():
    svg = ET.fromstring(picture(np.ones((2, 2)), "x", ["M0 50H100"], (100, 100)))
    assert svg.get("viewBox") == "0 0 100 100"
    assert [x.get("d") for x in svg.iter("{http://www.w3.org/2000/svg}path")] == ["M0 50H100"]
