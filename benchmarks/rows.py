"""All rows, by platform and theme."""

from __future__ import annotations

import dataclasses

from . import (
    rows_accelerator,
    rows_checks,
    rows_compiled,
    rows_containers,
    rows_control,
    rows_dispatch,
    rows_eager,
    rows_effects,
    rows_export,
    rows_grouped,
    rows_growth,
    rows_libraries,
    rows_numpy,
    rows_ode,
    rows_ragged,
    rows_repeats,
    rows_sharded,
    rows_sorting,
    rows_sparse_jacobians,
    rows_start,
    rows_trace,
    rows_training,
    rows_trees,
    rows_vocabulary,
    rows_windows,
)
from .timing import Row

THEMES = {
    "start": rows_start.ROWS,
    "eager": rows_eager.ROWS + rows_numpy.ROWS + rows_trees.ROWS,
    "effects": rows_effects.ROWS,
    "trace": rows_trace.ROWS,
    "dispatch": rows_dispatch.ROWS,
    "sharded": rows_sharded.ROWS,
    "training": rows_training.ROWS,
    "compiled": rows_compiled.ROWS + rows_export.ROWS,
    "repeats": rows_repeats.ROWS,
    "control": rows_control.ROWS + rows_grouped.ROWS,
    "ragged": rows_ragged.ROWS,
    "containers": rows_containers.ROWS,
    "vocabulary": rows_vocabulary.ROWS + rows_sorting.ROWS + rows_windows.ROWS + rows_ode.ROWS + rows_checks.ROWS
    + rows_sparse_jacobians.ROWS,
    "growth": rows_growth.ROWS,
    "libraries": rows_libraries.ROWS,
}


def _of_launches(rows: list[Row]) -> list[Row]:
    """Rows of a CPU for a GPU: no bar is below 1, since most of a call is its launch, the same on both sides."""
    return [dataclasses.replace(row, bar=row.bar and max(row.bar, 1.00), aim=None) for row in rows]


THEMES_OF_GPU = {
    "dispatch": _of_launches(rows_dispatch.ROWS),
    "eager": _of_launches(rows_eager.SINGLE[:2] + rows_eager.DRAWS),
    "accelerator": rows_accelerator.ROWS,
}


def _themed(themes: dict[str, list[Row]]) -> list[Row]:
    return [dataclasses.replace(row, theme=theme) for theme, found in themes.items() for row in found]


OF_PLATFORM = {"cpu": _themed(THEMES), "gpu": _themed(THEMES_OF_GPU)}
