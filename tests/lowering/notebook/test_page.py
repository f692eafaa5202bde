"""The elements of pages."""

import xml.etree.ElementTree as ET

import pytest

from handlax.lowering.notebook.page import Page, describe, note, preformatted, table, titled


def test_text_is_escaped_wherever_it_stands():
    text = "<script>alert('&')</script>"
    parts = [note(text), preformatted(text), table("l", [text], [[text]])]
    page = ET.fromstring(titled(text, *parts).html)
    assert "".join(page.itertext()).count(text) == 5
    assert not list(page.iter("script"))


def test_rows_of_a_table_have_a_text_for_each_column():
    with pytest.raises(ValueError, match="zip"):
        table("lr", ("a", "b"), [("x",)])


def test_the_last_row_is_a_sum_if_it_is_said_to_be_one():
    rows = ET.fromstring(table("lr", ("a", "b"), [("x", 1), ("all", 1)], total=True))
    assert [row.get("class") for row in rows] == [None, None, "total"]


def test_a_value_of_no_known_class_is_described_by_its_text():
    assert describe("first\nsecond\nthird") == Page("first", ["<h2>first</h2>", "<pre>second\nthird</pre>"])
    assert describe("") == Page("", ["<h2></h2>"])
