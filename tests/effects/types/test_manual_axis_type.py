"""The axes of a mesh along which values vary, as types tell them."""

import pickle

import numpy as np
import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.sharding import ManualAxisType, NamedSharding, PartitionSpec


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
    t = hx.typeof(hnp.ones(2)).along(frozenset({("i", 2)}))
    assert t.mat is t.mat and t.mat == seen["cut"]
    assert len({*seen.values()}) == 2 and pickle.loads(pickle.dumps(seen["cut"])) == seen["cut"]


@pytest.mark.parametrize("axes", [{"i"}, frozenset({"i"}), ({"i"},), [["i"]]])
@pytest.mark.parametrize("collective", [
    lax.psum, lax.pmax, lax.all_gather, lambda x, i: lax.pcast(x, i, to="varying"), lambda x, i: x + lax.axis_index(i),
    lambda x, i: x * lax.axis_size(i),
])
def test_axes_without_an_order_are_refused(collective, axes):
    with pytest.raises(TypeError, match=r"several axes must be a tuple|axes have names"):
        hx.vmap(lambda x: collective(x, axes), axis_name="i")(np.ones(2))


def test_summands_and_reduced_copies_are_no_values_that_vary():
    mesh = hx.make_mesh((2, 2), ("i", "j"))
    seen, texts = [], []

    def f(x):
        u, r = lax.pcast(x, "i", to="unreduced"), lax.pcast(lax.psum(x, "i"), "i", to="reduced")
        seen.extend([(hx.typeof(y).manual_axis_type, hx.typeof(y).vma) for y in (u, r)])
        texts.extend([str(hx.typeof(y)) for y in (u, r)])
        assert {hx.typeof(y).mat.invarying(hx.sharding.get_abstract_mesh()) for y in (u, r)} == {frozenset()}
        return lax.psum(u, ("i", "j"))

    with hx.set_mesh(mesh):
        hx.shard_map(f, in_specs=PartitionSpec(("i", "j")), out_specs=PartitionSpec())(np.ones(4))
    assert seen == [
        (ManualAxisType(varying={"j"}, unreduced={"i"}), {"j"}), (ManualAxisType(varying={"j"}, reduced={"i"}), {"j"})]
    assert texts == ["f64[1]{j:2,U:i}", "f64[1]{j:2,R:i}"]


def test_shardings_of_types_are_over_the_mesh_in_force():
    mesh = hx.make_mesh((2, 2), ("i", "j"))

    def f(x):
        t = hx.typeof(x)
        assert t.sharding == NamedSharding(hx.sharding.get_abstract_mesh(), PartitionSpec(None, "j"))
        kinds = hx.sharding.AxisType
        assert t.sharding.mesh.axis_types == (kinds.Manual, kinds.Explicit)
        assert hx.ShapeDtypeStruct(x.shape, x.dtype, sharding=t.sharding).sharding.spec == t.sharding.spec
        return hx.reshard(hx.reshard(x, PartitionSpec("j")), t.sharding) + x

    x = hx.device_put(np.ones((4, 4)), NamedSharding(mesh, PartitionSpec("i", "j")))
    for spec in PartitionSpec("i"), PartitionSpec("i", None):
        y = hx.jit(hx.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec, axis_names={"i"}))(x)
        assert str(y.type) == "f64[4@i,4@j]" and y.tolist() == np.full((4, 4), 2.0).tolist()
