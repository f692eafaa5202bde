"""The elements of pages."""

import xml.etree.ElementTree as ET

import pytest

from handlax.lowering.notebook import page
from handlax.lowering.notebook.page import Page, describe, note, preformatted, table, titled


def test_text_is_escaped_wherever_it_stands():
    text = "<script>alert('&')</script>"
    parts = [note(text), preformatted(text), table("l", [text], [[text]])]
    html = ET.fromstring(titled(text, *parts).html)
    assert "".join(html.itertext()).count(text) == 5
    assert not list(html.iter("script"))


def test_rows_of_a_table_have_a_text_for_each_column():
    with pytest.raises(ValueError, match="zip"):
        table("lr", ("a", "b"), [("x",)])


def test_the_last_row_is_a_sum_if_it_is_said_to_be_one():
    rows = ET.fromstring(table("lr", ("a", "b"), [("x", 1), ("all", 1)], total=True))
    assert [row.get("class") for row in rows] == [None, None, "total"]


@pytest.mark.parametrize("total", [False, True])
def test_pages_are_bounded(monkeypatch, total):
    monkeypatch.setattr(page, "ROWS", 3)
    monkeypatch.setattr(page, "ELEMENTS", 2)
    rows = ET.fromstring(table("lr", ("a", "b"), [(i, i) for i in range(5)], total))
    shown = ["00", "11", "... and 2 more", "44"] if total else ["00", "11", "22", "... and 2 more"]
    assert ["".join(row.itertext()) for row in rows][1:] == shown
    monkeypatch.setattr(page, "TEXT", 5)
    assert note("abcdefg") == "<p>abcde ... and 2 more characters</p>"
    monkeypatch.setattr(page, "TEXT", 50)
    assert titled("t", "<p>1</p>", "<p>2</p>", "<p>3</p>").elements[-1] == note("... and 1 more")


def test_a_value_of_no_known_class_is_described_by_its_text():
    assert describe("first\nsecond\nthird") == Page("first", ["<h2>first</h2>", "<pre>second\nthird</pre>"])
    assert describe("") == Page("", ["<h2></h2>"])
