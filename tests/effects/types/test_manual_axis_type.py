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
        assert hx.typeof(x).mat.invarying(hx.sharding.get_abstract_mesh()) == set()
        assert hx.typeof(lax.psum(x, "i")).mat.invarying(hx.sharding.get_abstract_mesh()) == {"i"}
        seen.update(cut=hx.typeof(x).mat, summed=hx.typeof(lax.psum(x, "i")).mat)
        seen.update(cast=hx.typeof(lax.pcast(lax.psum(x, "i"), tuple(seen["cut"].varying), to="varying")).mat)
        return x

    mesh = hx.make_mesh((2,), ("i",))
    hx.make_program(hx.shard_map(f, mesh=mesh, in_specs=PartitionSpec("i"), out_specs=PartitionSpec("i")))(np.ones(4))
    assert seen == {
        "cut": ManualAxisType(varying={"i"}), "summed": ManualAxisType(), "cast": ManualAxisType(varying={"i"}),
    }
    assert hx.typeof(1.0).mat == ManualAxisType() and ManualAxisType().invarying(mesh) == set()
    assert len({*seen.values()}) == 2 and pickle.loads(pickle.dumps(seen["cut"])) == seen["cut"]


@pytest.mark.parametrize("axes", [{"i"}, frozenset({"i"}), ({"i"},), [["i"]]])
@pytest.mark.parametrize("collective", [
    lax.psum, lax.pmax, lax.all_gather, lambda x, i: lax.pcast(x, i, to="varying"), lambda x, i: x + lax.axis_index(i),
    lambda x, i: x * lax.axis_size(i),
])
def test_axes_without_an_order_are_refused(collective, axes):
    with pytest.raises(TypeError, match=r"several axes must be a tuple|axes have names"):
        hx.vmap(lambda x: collective(x, axes), axis_name="i")(np.ones(2))


@pytest.mark.parametrize("partial", ["unreduced", "reduced"])
def test_partial_sums_are_values_that_vary(partial):
    with pytest.raises(errors.BadArgument, match=r"values that vary, got .*\{'i'\}"):
        ManualAxisType(**{partial: {"i"}})
