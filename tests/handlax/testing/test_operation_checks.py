"""Which operands an operation is checked on, what it refuses, and what is asked of the arguments of a check."""

from __future__ import annotations

import re

import numpy as np
import pytest

import handlax as hx
from handlax.operations import Add, Sin
from handlax.testing import OPERATION_LAWS, LawFails, check_operation
from handlax.testing.operation_checks import Draws, quarter
from handlax.testing.strategies import Domain, Operands


def law_named(name):
    return next(law for law in OPERATION_LAWS if law.name == name)


TYPING = [law_named("typing")]


def operation(result_type=lambda op, x: x, **cells):
    return hx.operation(type("Same", (), {"result_type": result_type, "evaluate": lambda op, x: x, **cells}))()


@pytest.mark.parametrize("op", [Sin(), Add(), operation()], ids=lambda op: op.name)
def test_a_quarter_of_the_types_has_each_rank_of_each_kind_of_dtype(op):
    types = Draws.of(op).types
    kinds = lambda some: {(tuple(map(len, shapes)), hx.numpy.issubdtype(dtype, hx.numpy.floating), dtype.kind == "c")
                          for _, dtype, shapes in some}
    assert all(kinds(quarter(types, k)) == kinds(types) for k in range(4, 8))
    assert {id(each) for k in range(4) for each in quarter(types, k)} == {*map(id, types)}
    assert all(len(quarter(types, k)) < len(types) / 2 for k in range(4))


def test_the_report_has_the_dtypes_and_shapes_of_the_operands():
    draws = [[np.ones((2, 3), "float32")], [np.ones(3, "float32")], [np.ones(3, "int32")]]
    report = check_operation(operation(), draws, laws=TYPING)
    assert report.shapes == {"float32": "[2, 3], [3]", "int32": "[3]"}
    assert re.search(r"dtypes of operands, and their shapes: 2\n  float32 +\[2, 3\], \[3\]\n", str(report))


def narrow(op, x):
    """A dtype that is looked up, and a mistake for arrays that are no scalars."""
    {"float32": 32, "float64": 64}[x.dtype.name]
    return op.missing if x.shape else x


def test_what_result_type_refuses_is_in_the_report_with_the_error():
    report = check_operation(operation(narrow), laws=TYPING, examples=1)
    assert [*report.shapes.values()] == ["[]", "[]"]
    assert report.refused["int32"] == "KeyError: 'int32'"
    assert {"rank 1", "rank 2", "rank 3"} < {*report.refused} and "rank 0" not in report.refused
    assert report.refused["rank 1"].startswith("AttributeError: ") and "missing" in report.refused["rank 1"]

    def integers_of_rank_0(op, x):
        if x.shape and x.dtype == "int32":
            raise TypeError("a mistake")
        return x

    report = check_operation(operation(integers_of_rank_0), laws=TYPING, examples=1)
    assert report.refused == {f"int32 of rank {rank}": "TypeError: a mistake" for rank in (1, 2, 3)}


def test_where_nothing_is_accepted_the_first_error_is_told():
    def mistaken(op, x):
        raise TypeError("a mistake")

    with pytest.raises(hx.errors.BadArgument, match=r"accepts none of the operands .*; first TypeError: a mistake"):
        check_operation(operation(mistaken))


@pytest.mark.parametrize("operands", [[np.ones(3)], [[1.0, 2.0]], [[]], [1.0], np.ones((2, 1))], ids=str)
def test_draws_are_lists_of_as_many_operands_as_there_are(operands):
    with pytest.raises(hx.errors.BadArgument, match=r"a list of the operands x of Same\(\), got") as caught:
        check_operation(operation(), operands)
    assert caught.value.hint == "operands=[[x], ...]."
    with pytest.raises(hx.errors.BadArgument, match=r"a list of the operands \*types of Sin\(\), got"):
        check_operation(Sin(), operands)


def test_rules_that_no_law_is_about_are_told_where_all_laws_are_checked():
    op = operation(sparse=lambda op, x: x, batch=lambda op, dims, x: (x, dims[0]))
    assert check_operation(op, [[np.ones(3)]], laws=TYPING).unchecked == {}
    exempt = dict.fromkeys([law.name for law in OPERATION_LAWS if law.name != "typing"], "only its type is asked")
    assert [*check_operation(operation(sparse=lambda op, x: x, exempt=exempt)).unchecked] == ["sparse"]


def test_an_exemption_names_a_law_or_a_rule():
    """And not what a law needs of operands."""
    for name in ("finite_diferences", "reals"):
        with pytest.raises(hx.errors.BadArgument, match=f"must be a law or a rule, got {name!r}") as caught:
            check_operation(operation(exempt={name: "its derivative is 0"}))
        assert "finite_differences" in caught.value.hint and "reals" not in caught.value.hint


def test_described_operands_have_the_dtypes_that_result_type_accepts():
    def scalars_of_32_bits(op, x):
        if x.dtype != "float32" or x.shape:
            raise hx.errors.DTypeMismatch("a number of 32 bits is needed.")
        return x

    op = operation(scalars_of_32_bits)
    assert Operands(op, (Domain(),)).dtypes == {np.dtype("float32")}
    assert [*check_operation(Operands(op, (Domain(),), (((),),)), laws=TYPING).shapes] == ["float32"]
    with pytest.raises(hx.errors.BadArgument, match="accepts no operands of these domains and shapes"):
        check_operation(Operands(op, (Domain(),), (((3,),),)))


def lanes_of(d, x, axis):
    return hx.numpy.broadcast_to(x, (axis[1], *x.shape)) if d is None else hx.numpy.moveaxis(x, d, 0)


def looped(wrong=None, **cells):
    """An operation of which ``batch`` is a loop over lanes, that takes the first one of the operand ``wrong``."""
    def batch(op, dims, *xs, axis):
        lanes = [lanes_of(d, x, axis) for d, x in zip(dims, xs)]
        of = lambda lane: [x[0 if i == wrong else lane] for i, x in enumerate(lanes)]
        return hx.numpy.stack([hx.perform(op, *of(lane)) for lane in range(axis[1])]), 0

    return operation(batch=batch, **cells)


VMAP = [law_named("vmap")]


def test_lanes_are_made_of_elements_that_the_operation_takes():
    matrix = np.array([[2.0, 0.5, 0.1], [0.5, 3.0, 0.2], [0.1, 0.2, 4.0]])
    right, wrong = [looped(wrong, evaluate=lambda op, x: np.linalg.cholesky(x)) for wrong in (None, 0)]
    assert check_operation(right, [[matrix]], laws=VMAP).held
    with pytest.raises(LawFails):
        check_operation(wrong, [[matrix]], laws=VMAP)


@pytest.mark.parametrize("dtype", ["float64", "bool"])
def test_lanes_of_one_number_differ(dtype):
    with pytest.raises(LawFails):
        check_operation(looped(0), [[np.ones((), dtype)]], laws=VMAP)


def test_the_law_of_lanes_is_left_out_where_an_operand_is_the_same_in_all():
    def roll(wrong):
        return looped(wrong, result_type=lambda op, x, n: x, evaluate=lambda op, x, n: np.roll(x, n))

    x = np.array([0.5, -1.0, 3.0])
    assert check_operation(roll(1), [[x, np.int32(1)]], laws=VMAP).left_out == {
        "vmap": "operand 1 is the same in all lanes: there must be draws in which it differs"}
    draws = [[x, np.int32(n)] for n in (1, 2)]
    assert check_operation(roll(None), draws, laws=VMAP).held
    with pytest.raises(LawFails):
        check_operation(roll(1), draws, laws=VMAP)


def derivative(slope):
    return lambda op, primals, tangents: (hx.perform(op, *primals), slope(primals[0]) * tangents[0])


def test_operands_are_reduced_within_their_domains():
    """And not to 1, where the slope has a pole, so that the law fails whatever the rule is."""
    right, wrong = [derivative(lambda x, sign=sign: sign / hx.numpy.sqrt(x * x - 1)) for sign in (1, -1)]
    op = operation(evaluate=lambda op, x: np.arccosh(x), jvp=wrong)
    for given, draws in ((Operands(op, (Domain(1.5, 3.0),)), None), (op, [[np.array([2.9, 1.6, 2.2])]])):
        with pytest.raises(LawFails) as caught:
            check_operation(given, draws, laws=[law_named("finite_differences")])
        ((_, ((x,),)),) = [caught.value.example]
        assert x.ravel().tolist() == [2.0]
        with hx.rules(jvp={type(op): right}):
            caught.value.law.check(*caught.value.example)


@pytest.mark.parametrize("operands", [[np.ones((2, 2))], [np.ones(1)], [np.ones(())]], ids=lambda xs: f"{xs[0].shape}")
def test_the_ragged_law_is_left_out_where_no_operand_has_rows(operands):
    drawn, laws = [], [law_named("typing"), law_named("ragged")]
    watched = [law._replace(check=lambda *example, law=law: drawn.append(law.name)) for law in laws]
    reason = "no operand has a first axis of two elements at least whose length no other axis has"
    op = operation(ragged=lambda op, run, types, x: x)
    assert check_operation(op, [operands], laws=watched).left_out == {"ragged": reason}
    shapes = (tuple([x.shape for x in operands]),)
    described = Operands(op, (Domain(),), shapes=shapes, dtypes=frozenset([np.dtype("float64")]))
    assert check_operation(described, laws=watched, examples=1).left_out == {"ragged": reason}
    assert drawn == ["typing"] * 2


def test_the_ragged_law_is_checked_on_operands_with_rows_alone():
    seen = []
    law = law_named("ragged")._replace(check=lambda op, draws: seen.extend(draws))
    assert check_operation(operation(ragged=lambda op, run, types, x: x), laws=[law], examples=4).held
    assert seen and all(x.ndim and x.shape[0] > 1 and x.shape[0] not in x.shape[1:] for (x,) in seen)


@pytest.mark.parametrize("count", [1, 2])
def test_a_rule_that_takes_a_zero_tangent_for_an_array_is_told_that_it_may_be_none(count):
    def wrong(op, primals, tangents):
        return primals[0], sum(-dx for dx in tangents)

    types = lambda op, x: x, lambda op, x, y: x
    op = operation(types[count - 1], evaluate=lambda op, x, *rest: x, jvp=wrong)
    with pytest.raises(LawFails) as found:
        check_operation(op, [[np.ones(3)] * count], laws=[law_named("finite_differences")], seconds=2.0)
    assert ("its tangent as None" in str(found.value)) == (count == 2)
    assert ("TypeError" in str(found.value)) == (count == 2)
