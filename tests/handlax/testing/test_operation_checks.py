"""Which operands an operation is checked on, what it refuses, and what is asked of the arguments of a check."""

from __future__ import annotations

import re

import numpy as np
import pytest

import handlax as hx
from handlax.operations import Add, Sin
from handlax.testing import OPERATION_LAWS, check_operation
from handlax.testing.operation_checks import Draws, quarter

TYPING = [law for law in OPERATION_LAWS if law.name == "typing"]


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
    with pytest.raises(hx.errors.BadArgument, match="must be a law or a rule, got 'finite_diferences'") as caught:
        check_operation(operation(exempt={"finite_diferences": "its derivative is 0"}))
    assert "finite_differences" in caught.value.hint
