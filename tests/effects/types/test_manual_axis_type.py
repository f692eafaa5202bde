"""The axes of a mesh along which values vary, as types tell them."""

import pickle

import numpy as np
import pytest

import handlax as hx
from handlax import errors, lax
from handlax.sharding import ManualAxisType, PartitionSpec


def test_types_tell_along_which_axes_a_value_varies():
    seen = {}

    def f(x):
        seen.update(cut=hx.typeof(x).mat, summed=hx.typeof(lax.psum(x, "i")).mat)
        seen.update(cast=hx.typeof(lax.pcast(lax.psum(x, "i"), seen["cut"].varying, to="varying")).mat)
        return x

    mesh = hx.make_mesh((2,), ("i",))
    hx.make_program(hx.shard_map(f, mesh=mesh, in_specs=PartitionSpec("i"), out_specs=PartitionSpec("i")))(np.ones(4))
    assert seen == {
        "cut": ManualAxisType(varying={"i"}), "summed": ManualAxisType(), "cast": ManualAxisType(varying={"i"}),
    }
    assert hx.typeof(1.0).mat == ManualAxisType()
    assert len({*seen.values()}) == 2 and pickle.loads(pickle.dumps(seen["cut"])) == seen["cut"]


@pytest.mark.parametrize("partial", ["unreduced", "reduced"])
def test_partial_sums_are_refused_as_in_specs(partial):
    for make in (ManualAxisType, PartitionSpec):
        with pytest.raises(errors.BadArgument, match="whole sums on every device"):
            make(**{partial: {"i"}})
