"""The outline of a program, which pictures and pages show."""

import xml.etree.ElementTree as ET
from collections import Counter

from helpers.random_programs import programs
from hypothesis import given

import handlax as hx
from handlax.interpreters.inspection.outline import bytes_text, escape, handler_lines, outlines


def words(element):
    return " ".join("".join(element.itertext()).split())


def test_a_name_that_is_markup_is_text():
    program = hx.make_program(lambda x: x)(1.0).with_name("<b>&\x00'\"\ud800")
    assert "<b>" not in hx.draw(program).html
    assert words(ET.fromstring(hx.draw(program).html).find("head/title")) == "<b>&\ufffd'\"\ufffd"
    assert escape("a < b") == "a &lt; b"


def test_handlers_are_listed_from_the_outermost_to_the_innermost():
    twice = hx.handle(hx.handler({hx.operations.Sin: lambda op, x: 2 * hx.perform(op, x)}))
    counting = hx.handle(hx.handler({hx.operations.Mul: lambda n, op, *xs: (n + 1, hx.perform(op, *xs))}), 0)

    def scoped(x):
        with hx.named_scope("layer"):
            return hx.numpy.sin(x)

    xs = hx.numpy.ones(3)
    program = hx.make_program((counting @ twice)(hx.vmap(scoped)))(xs)
    assert handler_lines(outlines(program)) == ["handler(Mul): sin, mul", "handler(Sin): sin, mul", "vmap: sin, mul"]
    program = hx.make_program((twice @ twice)(hx.jit(scoped)))(1.0)
    assert [line.partition(":")[0] for line in handler_lines(outlines(program))] == ["handler(Sin)"] * 2
    assert handler_lines(outlines(hx.make_program(scoped)(1.0))) == []
    drawing = hx.draw((counting @ twice)(hx.vmap(scoped)))(xs)
    assert "handlers, outermost first: handler(Mul)" in drawing.html and "handler(Mul): sin" in drawing.svg


@given(programs(effects=True))
def test_lifetimes_in_one_column_do_not_overlap_and_columns_are_as_few_as_possible(program):
    for outline in outlines(program):
        columns, last = outline.columns(), outline.memory.last
        rows = [-1] * len(outline.inputs) + [i for i, line in enumerate(outline.lines) for _ in line.results]
        lives = [range(row, max(last[n], row) + 1) for n, row in enumerate(rows)]
        taken = [(column, row) for column, life in zip(columns, lives, strict=True) for row in life]
        assert len(set(taken)) == len(taken)
        assert len(set(columns)) == max(Counter(row for _, row in taken).values(), default=0)


def test_sizes_are_written_in_the_unit_that_fits():
    assert [bytes_text(n) for n in (0, 1023, 1024, 3 << 20, 5 << 30)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "3.0 MiB",
        "5.0 GiB",
    ]
