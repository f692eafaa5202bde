"""Pages of what is known of programs, beside their texts."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.effects.base.watching import FunctionLabel
from handlax.lowering.inspection.profile import Profile
from handlax.lowering.notebook import report_pages
from handlax.lowering.notebook.page import describe


def f(x):
    with hx.named_scope("layer"):
        return hnp.sum(hnp.sin(hnp.sin(x)))


def tables(x):
    """The rows of each table of a page."""
    page = ET.fromstring(x._repr_html_())
    return [[["".join(cell.itertext()) for cell in row] for row in table] for table in page.iter("table")]


def test_the_tables_of_costs_are_those_of_their_text():
    costs = hx.costs(f)(hnp.ones(1000))
    rows = [line.split() for line in str(costs).splitlines() if line]
    assert [row for table in tables(costs) for row in table] == rows
    assert describe(costs).title == "Costs: 3,000 flops, 19.5 KiB read and written, 7.8 KiB held at once"


def test_the_table_of_residuals_says_what_they_are_and_what_uses_them():
    residuals = hx.ad_checkpoint.saved_residuals(f, hnp.ones(1000))
    (table,) = tables(residuals)
    assert describe(residuals).title == "2 residuals, 7.8 KiB"
    assert [row[:2] for row in table[1:]] == [["f32[1000]", "3.9 KiB"]] * 2
    assert table[1][2].startswith("output of cos at") and table[1][3].startswith("mul at")


def test_a_plan_says_what_is_saved_and_repeated():
    plan = hx.ad_checkpoint.memory_plan(f, 4000)(hnp.ones(1000))
    assert describe(plan).title == "Memory plan: 3.9 KiB of 3.9 KiB saved, at least 3.9 KiB"
    assert "3,000 of" in describe(plan).elements[1]


def test_a_profile_is_a_table_by_function_with_reasons():
    profile = Profile()
    profile.seconds = 2.0
    times = profile.of(FunctionLabel("jit(f)"))
    times.add("tracing", 0.5)
    times.add("executing", 1e-3)
    times.reasons.append("  2: x: f32[3] <new>")
    head, row = tables(profile)[0]
    assert head == ["function", "tracing", "lowering", "compiling", "executing"]
    assert row == ["jit(f)", "500 ms (1)", "", "", "1 ms"]
    assert describe(profile).title == "2 s: tracing 500 ms, lowering 0 s, compiling 0 s, and 1.5 s else"
    assert "2: x: f32[3] &lt;new&gt;" in profile._repr_html_()
    assert tables(Profile()) == []


def test_clauses_say_how_they_answer():
    def answer(op, x):
        return x

    h = hx.handler({hx.operations.Sin: answer, hx.operations.Cos: hx.final(lambda op, x: x)}, returns=lambda y: y)
    (table,) = tables(h)
    assert table[1:] == [
        ["Cos", "final", "<lambda>"], ["Sin", "function", "answer"], ["returns", "function", "<lambda>"]
    ]
    assert tables(hx.handle(h)) == [table]


def test_large_arrays_of_a_state_are_shown_by_their_types():
    h = hx.handler({hx.operations.Sin: lambda s, op, x: (s, x)})
    page = hx.handle(h, {"n": 3, "log": hnp.ones(1000)})._repr_html_()
    assert "state {&#39;log&#39;: f32[1000], &#39;n&#39;: 3}" in page


def test_a_stack_is_listed_outermost_first_and_what_is_in_force_innermost_first():
    h = hx.handler({hx.operations.Sin: lambda n, op, x: (n + 1, x)})
    assert tables(hx.jit @ hx.handle(h, 7))[0][1:] == [["0", "jit", ""], ["1", "handler(Sin)", "7"]]
    assert describe(hx.handlers()).title == "0 handlers in force, innermost first"
    found = []
    hx.handle(h, 0)(hx.vmap(lambda x: found.append(hx.handlers()) or x))(hnp.ones(2))
    assert tables(found[0])[0][1:] == [["0", "vmap"], ["1", "handler(Sin)"]]


@pytest.mark.parametrize("count", [1, 3])
def test_a_long_program_is_shown_in_part(monkeypatch, count):
    monkeypatch.setattr(report_pages, "EQUATIONS", count)
    page = hx.make_program(f)(1.0)._repr_html_()
    assert ("more equations" in page) is (count < 3)


def test_a_state_that_was_deleted_says_so():
    x = hx.device_put(np.ones(3, np.float32))
    counter = hx.handler({hx.operations.Sin: lambda n, op, x: (n, x)})
    x.delete()
    assert "state {&#39;n&#39;: f32[3] deleted}" in hx.handle(counter, {"n": x})._repr_html_()


def test_a_long_state_loses_its_end():
    page = hx.handle(hx.handler({}), list(range(30_000)))._repr_html_()
    assert len(page) < 12_000 and re.search(r"\.\.\. and 1\d\d,\d\d\d more characters", page)
