"""Values of fields: those of every kind are drawn; that each reads back is tested of the printer."""

import numpy as np
from helpers.drawn_kinds import missing

import handlax as hx
from handlax.effects.core.operation import Operation
from handlax.testing.strategies import field_values

KINDS = (
    bool, int, float, complex, str, bytes, type, range, type(...), np.dtype, np.generic, hx.core.ShapedArray, Operation,
    hx.dtypes.ExtendedDType,
)


def test_values_of_every_kind_are_drawn_alone_and_in_tuples():
    alone = {kind: lambda value, kind=kind: isinstance(value, kind) for kind in KINDS}
    inside = {(kind,): lambda value, kind=kind: isinstance(value, tuple) and any([isinstance(x, kind) for x in value])
              for kind in KINDS}
    assert not missing(field_values(), alone | inside)


def test_values_of_a_user_are_drawn_among_the_others():
    mine = object()
    assert not missing(field_values(mine), {"alone": lambda value: value is mine,
                                            "inside": lambda value: isinstance(value, tuple) and mine in value})
