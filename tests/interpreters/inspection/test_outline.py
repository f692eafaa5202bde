"""The outline of a program, which pictures and pages show."""

import xml.etree.ElementTree as ET

import handlax as hx
from handlax.interpreters.inspection.outline import bytes_text, escape


def words(element):
    return " ".join("".join(element.itertext()).split())


def test_a_name_that_is_markup_is_text():
    program = hx.make_program(lambda x: x)(1.0).with_name("<b>&\x00'\"\ud800")
    assert "<b>" not in hx.draw(program).html
    assert words(ET.fromstring(hx.draw(program).html).find("head/title")) == "<b>&\ufffd'\"\ufffd"
    assert escape("a < b") == "a &lt; b"


def test_sizes_are_written_in_the_unit_that_fits():
    assert [bytes_text(n) for n in (0, 1023, 1024, 3 << 20, 5 << 30)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "3.0 MiB",
        "5.0 GiB",
    ]
