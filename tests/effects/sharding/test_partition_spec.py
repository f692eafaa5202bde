"""Partition specs: sequences of entries, compared by value, leaves in pytrees."""

import copy
import pickle

import pytest

import handlax as hx
from handlax.effects.sharding.partition_spec import UNCONSTRAINED, P, entry_axes


@pytest.mark.parametrize(("spec", "entries", "shown"), [
    (P(), (), "P()"),
    (P("a"), ("a",), "P('a',)"),
    (P(("a",), None), ("a", None), "P('a', None)"),
    (P((), "a"), (None, "a"), "P(None, 'a')"),
    (P(["a", "b"]), (("a", "b"),), "P(('a', 'b'),)"),
    (P(UNCONSTRAINED, 1), (UNCONSTRAINED, 1), "P(UNCONSTRAINED, 1)"),
])
def test_a_spec_is_a_sequence_of_its_entries(spec, entries, shown):
    assert tuple(spec) == entries == spec.partitions and len(spec) == len(entries) and repr(spec) == shown
    assert spec == P(*entries) and hash(spec) == hash(P(*entries)) and spec != entries
    assert all(entry in spec for entry in entries) and spec[:] == entries
    assert copy.deepcopy(spec) == spec == pickle.loads(pickle.dumps(spec))


def test_specs_are_put_together():
    assert P("a") + P(None, "b") == P("a") + (None, "b") == ("a",) + P(None, "b") == P("a", None, "b")
    with pytest.raises(TypeError):
        P("a") + ["b"]


def test_the_places_of_entries():
    spec = P("a", None, ("b", "c"), None)
    assert spec.index("a") == 0 and spec.index(["b", "c"]) == 2 and spec.count(None) == 2
    assert spec.axes == ("a", "b", "c") and entry_axes(UNCONSTRAINED) == ()
    assert spec.update(partitions=("d",)) == P("d") and spec.update() == spec


def test_a_spec_is_a_leaf():
    assert hx.tree.leaves([P("a"), (P(),)]) == [P("a"), P()]


def test_a_spec_cannot_be_changed():
    with pytest.raises(hx.errors.Immutable):
        P("a").partitions = ()


@pytest.mark.parametrize("entry", [{}, {"a"}, [["a"], "b"], (("a", "b"), "c")])
def test_what_is_no_entry(entry):
    with pytest.raises(hx.errors.BadArgument, match="a tuple of names, got"):
        P("a", entry)


def test_axes_along_which_a_value_is_summed():
    assert P("a").unreduced == P("a").reduced == frozenset()
    spec = P("a", unreduced={"c", "b"}, reduced={"d"})
    assert repr(spec) == "P('a', unreduced={'b', 'c'}, reduced={'d'})" and spec.summed_axes == {"b", "c", "d"}
    assert spec.without_sums({"a", "b"}) == P("a", unreduced={"c"}, reduced={"d"})
    assert spec.without_sums(set()) is spec.without_sums({"a"}) is spec
    assert spec.dual == P("a", unreduced={"d"}, reduced={"b", "c"}) and spec.dual.dual == spec and P("a").dual == P("a")
    assert spec != P("a") and copy.deepcopy(spec) == spec == pickle.loads(pickle.dumps(spec))
    assert spec.restricted({"b"}) == P(None, unreduced={"b"}) and spec.update(reduced=()) == spec.update(None, None, ())
    assert spec + (None,) == P("a", None, unreduced={"b", "c"}, reduced={"d"}) == spec + P(None)


@pytest.mark.parametrize(("sums", "found"), [
    ({"unreduced": {"a"}}, "either cut, unreduced or reduced"), ({"reduced": {"a"}}, "either cut"),
    ({"unreduced": {"b"}, "reduced": {"b"}}, "either cut"), ({"reduced": "b"}, "reduced must be a set of names"),
    ({"unreduced": {None}}, "unreduced must be a set of names"),
])
def test_an_axis_stands_in_one_place(sums, found):
    with pytest.raises(hx.errors.BadArgument, match=found):
        P("a", **sums)
