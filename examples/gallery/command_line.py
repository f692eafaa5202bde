"""What the programs of the gallery share: their command line, and the style of their pictures."""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Callable
from typing import Any

import matplotlib
import numpy as np
from PIL import Image

matplotlib.use("Agg")  # there may be no screen
from matplotlib import pyplot

BLUE, ORANGE, GREEN, RED, GREY = "#2a6f97", "#e07a1f", "#3a8f5c", "#b3364b", "#7a7a7a"
pyplot.rcParams.update({
    "figure.figsize": (9, 3.8), "figure.dpi": 100, "figure.constrained_layout.use": True, "font.size": 9,
    "axes.prop_cycle": pyplot.cycler(color=[BLUE, ORANGE, GREEN, RED, GREY]), "axes.titlesize": 10,
    "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "lines.linewidth": 1.4,
})


def save(figure: Any, picture: str) -> None:
    """Write a figure as a PNG with a palette of 64 colours, a third of the bytes that it has without."""
    figure.canvas.draw()
    colours = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("RGB")
    # the median cut, Pillow's default, loses colours of few pixels
    colours.quantize(64, Image.Quantize.MAXCOVERAGE, kmeans=2).save(picture, "PNG", optimize=True)
    pyplot.close(figure)


def run(main: Callable[..., Any]) -> None:
    """Call ``main(small=..., picture=...)`` with the options of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--small", action="store_true", help="a size that ends in seconds")
    parser.add_argument("--picture", metavar="FILE", help="where to write the picture, a PNG")
    options = parser.parse_args()
    if options.picture and not (folder := pathlib.Path(options.picture).absolute().parent).is_dir():
        parser.error(f"argument --picture: there is no folder {folder}")  # before the work, not after it
    main(**vars(options))
