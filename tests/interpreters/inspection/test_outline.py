"""The outline of a program, which pictures and pages show."""

import xml.etree.ElementTree as ET
from collections import Counter

from helpers.random_programs import programs
from hypothesis import given

import handlax as hx
from handlax.interpreters.inspection.outline import bytes_text, escape, outlines


def words(element):
    return " ".join("".join(element.itertext()).split())


def test_a_name_that_is_markup_is_text():
    program = hx.make_program(lambda x: x)(1.0).with_name("<b>&\x00'\"\ud800")
    assert "<b>" not in hx.draw(program).html
    assert words(ET.fromstring(hx.draw(program).html).find("head/title")) == "<b>&\ufffd'\"\ufffd"
    assert escape("a < b") == "a &lt; b"


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
