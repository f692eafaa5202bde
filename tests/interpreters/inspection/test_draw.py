"""Programs as pictures and pages, looked at in a real browser too."""

import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from helpers.random_programs import programs
from hypothesis import given
from matplotlib.image import imread

import handlax as hx
from handlax import errors
from handlax import numpy as hnp
from handlax.interpreters.inspection.outline import outlines

SVG = "{http://www.w3.org/2000/svg}"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium on the path: apt-get install chromium")


@hx.effect(vmap="per_lane")
class Tick:
    by: int = 1

    def result_type(op):
        return None


@hx.jit
def layer(w, x):
    return hnp.tanh(x @ w)


def model(w, x):
    hx.perform(Tick(3))
    for _ in range(3):
        x = layer(w, x)
    return hnp.sum(x * x)


@pytest.fixture(scope="module")
def drawing():
    return hx.draw(model)(hnp.ones((8, 8)), hnp.ones((4, 8)))


def words(element):
    return " ".join("".join(element.itertext()).split())


def chromium(tmp_path, *arguments):
    """What the browser answers; it reaches nothing but files."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,900"]
    closed = ["--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={tmp_path / 'profile'}"]
    command = [BROWSER, *flags, *closed, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, stdin=subprocess.DEVNULL)
    return done.stdout


def seen_by_a_script(tmp_path, html, script):
    """What a script says of a page that the browser has laid out."""
    file = tmp_path / "page.html"
    runs = f'<script>document.body.setAttribute("data-said", JSON.stringify((() => {{{script}}})()))</script></body>'
    file.write_text(html.replace("</body>", runs), encoding="utf-8")
    dom = chromium(tmp_path, "--dump-dom", file.as_uri())
    (said,) = re.findall(r'data-said="([^"]*)"', dom)
    return said.replace("&quot;", '"')


def pixels(tmp_path, file, *arguments):
    picture = tmp_path / "picture.png"
    chromium(tmp_path, f"--screenshot={picture}", *arguments, file.as_uri())
    return np.round(imread(picture)[..., :3] * 255).astype(int)


def test_a_drawing_of_a_function_is_the_drawing_of_its_program():
    assert hx.draw(hnp.sin)(1.0) == hx.draw(hx.make_program(hnp.sin)(1.0))
    assert hash(hx.draw(hnp.sin)(1.0)) == hash(hx.draw(hx.make_program(hnp.sin)(1.0)))
    assert hx.draw(hnp.sin)(1.0) != hx.draw(hnp.cos)(1.0)
    assert "1 equation, 4 B at most" in repr(hx.draw(hnp.sin)(1.0))


def test_a_drawing_cannot_be_changed(drawing):
    with pytest.raises(AttributeError, match="immutable"):
        drawing.program = None


def test_the_picture_shows_every_equation_with_its_shapes_line_and_effect(drawing):
    root = ET.fromstring(drawing.svg)
    shown = [words(text) for text in root.iter(f"{SVG}text")]
    program = drawing.program
    for equation in program.eqns[4:]:
        assert str(equation) in shown
        assert any(text.startswith(str(equation.site)) for text in shown)
    assert shown[0] == "model(a: f32[8,8], b: f32[4,8]) -> (f32[]) ! {Tick[by=3]}"
    assert "{Tick[by=3]}" in shown
    assert "c: f32[4,8] = call[label='layer'] a b" in shown


def test_the_picture_marks_where_most_memory_is_held(drawing):
    titles = [words(title) for title in ET.fromstring(drawing.svg).iter(f"{SVG}title")]
    assert [title for title in titles if title.endswith(", the most")] == [
        "256 B while it runs, the most",  # within the call: the product and its tanh, 128 bytes each
        "384 B while it runs, the most",  # x * x: the results of two calls that are still there, and its own
    ]


def test_a_value_has_a_line_from_where_it_is_made_to_its_last_use():
    drawing = hx.draw(lambda x: hnp.cos(hnp.sin(x)) * x)(1.0)
    lives = [path.get("d") for path in ET.fromstring(drawing.svg).iter(f"{SVG}path") if "life" in path.get("class")]
    assert [re.findall(r"[\d.]+", life)[1:] for life in lives] == [
        ["16", "76"],
        ["36", "56"],
        ["56", "76"],
        ["76", "96"],
    ]


def test_a_sub_program_is_drawn_once_however_often_it_runs(drawing):
    shown = [words(text) for text in ET.fromstring(drawing.svg).iter(f"{SVG}text")]
    assert sum(text.startswith("layer(") for text in shown) == 1
    assert shown.count("body: layer, as above") == 2
    page = ET.fromstring(drawing.html)
    assert len(list(page.iter("section"))) == 2
    assert len(list(page.iter("details"))) == 3


def test_every_operand_leads_to_the_one_place_that_makes_it(drawing):
    page = ET.fromstring(drawing.html)
    marks = [element.get("id") for element in page.iter() if element.get("id")]
    links = [link.get("href") for link in page.iter("a")]
    assert len(links) >= 15 and len(set(marks)) == len(marks)
    assert {link.removeprefix("#") for link in links} <= set(marks)


def test_a_page_loads_nothing_and_runs_nothing(drawing):
    page = ET.fromstring(drawing.html)
    assert not {element.tag for element in page.iter()} & {"script", "link", "img", "iframe"}
    assert "url(" not in drawing.html and "@import" not in drawing.html
    assert not [value for element in page.iter() for name, value in element.items() if name.startswith("on")]


def test_an_equation_shows_what_it_came_through():
    program, _ = hx.jvp_program(hx.make_program(hnp.sin)(1.0), [True])
    drawing = hx.draw(program)
    assert any(words(text).endswith(", under jvp") for text in ET.fromstring(drawing.svg).iter(f"{SVG}text"))
    assert any(words(each).endswith("\u2190 jvp") for each in ET.fromstring(drawing.html).iter("span"))


@given(programs(effects=True))
def test_any_program_gives_well_formed_files(program):
    drawing = hx.draw(program)
    assert ET.fromstring(drawing.svg).tag == f"{SVG}svg"
    assert ET.fromstring(drawing.html).tag == "html"
    assert ET.fromstring(program._repr_html_()).get("class") == "hx-page"


@given(programs())
def test_values_in_one_column_never_live_at_the_same_time(program):
    (outline, *_) = outlines(program)
    columns = outline.columns()
    made = [-1] * len(outline.inputs) + [i for i, line in enumerate(outline.lines) for _ in line.results]
    rows = [
        {(column, row) for row in range(start, max(start, last) + 1)}
        for column, start, last in zip(columns, made, outline.memory.last)
    ]
    assert len(set().union(*rows)) == sum(map(len, rows))


def test_a_notebook_is_not_given_more_than_it_can_show():
    def long(x):
        for _ in range(1500):
            x = x + 1.0
        return x

    program = hx.make_program(long)(1.0)
    page = ET.fromstring(program._repr_html_())
    assert len(list(page.iter("li"))) == 1001
    assert "500 more equations" in words(page)
    assert len(list(ET.fromstring(hx.draw(program).html).iter("li"))) == 1501


def test_all_colours_in_a_notebook_follow_the_notebook():
    page = hx.make_program(model)(hnp.ones((3, 3)), hnp.ones(3))._repr_html_()
    assert "prefers-color-scheme" not in page
    figure = ET.fromstring(page).find(f".//{SVG}svg")
    assert figure.get("class") == "bars" and {bar.get("class") for bar in figure.iter(f"{SVG}rect")} == {"bar", "peak"}


def test_a_drawing_is_saved_as_its_name_ends(drawing, tmp_path):
    assert drawing.save(tmp_path / "p.svg").read_text() == drawing.svg
    assert drawing.save(str(tmp_path / "p.html")).read_text() == drawing.html
    with pytest.raises(errors.BadArgument, match=r"must be \.svg or \.html, got 'p\.png'"):
        drawing.save(tmp_path / "p.png")
    assert sorted(os.listdir(tmp_path)) == ["p.html", "p.svg"]


def test_only_programs_and_functions_are_drawn():
    with pytest.raises(errors.NotAFunction, match="draw: a function is needed, got int"):
        hx.draw(3)


@browser
def test_in_a_browser_sub_programs_fold_and_open_by_keyboard_and_nothing_is_cut_off(drawing, tmp_path):
    said = seen_by_a_script(
        tmp_path, drawing.html,
        """
        const first = document.querySelector("details"), summary = first.querySelector("summary");
        const inside = first.querySelector(".inner .op");
        const before = inside.checkVisibility();
        summary.focus();
        const focused = document.activeElement === summary;
        summary.click();
        const page = document.documentElement;
        return {before, focused, after: inside.checkVisibility(), wide: page.scrollWidth > page.clientWidth,
                links: [...document.links].every(link => document.getElementById(link.hash.slice(1)))};
        """,
    )
    assert said == '{"before":false,"focused":true,"after":true,"wide":false,"links":true}'


@browser
def test_in_a_browser_no_two_texts_of_the_picture_overlap(tmp_path):
    wide = hx.draw(lambda x: hnp.tanh(x @ x) + x)(hnp.ones((8, 8)))
    said = seen_by_a_script(
        tmp_path, f"<!DOCTYPE html><body>{wide.svg}</body>",
        """
        const boxes = [...document.querySelectorAll("text")].map(text => text.getBBox());
        const right = document.querySelector("svg").viewBox.baseVal.width;
        const meet = (a, b) => a.y === b.y && a.x < b.x + b.width && b.x < a.x + a.width;
        return {texts: boxes.length, outside: boxes.filter(box => box.x + box.width > right).length,
                meeting: boxes.filter((a, i) => boxes.some((b, j) => i < j && meet(a, b))).length};
        """,
    )
    assert said == '{"texts":9,"outside":0,"meeting":0}'


@browser
def test_in_a_browser_the_bars_are_as_long_as_the_memory(drawing, tmp_path):
    said = seen_by_a_script(
        tmp_path, drawing.html,
        """
        const bars = [...document.querySelector("ol").children].slice(0, 4).map(row => row.querySelector(".memory"));
        return bars.map(bar => Math.round(100 * bar.firstChild.getBoundingClientRect().width / bar.offsetWidth));
        """,
    )
    memory = outlines(drawing.program)[0].memory
    assert said == str([round(100 * n / memory.peak) for n in memory.during[:4]]).replace(" ", "")


@browser
@pytest.mark.parametrize(
    ("kind", "scheme", "paper", "peak"),
    [
        ("svg", 0, (22, 27, 33), (255, 123, 138)),
        ("html", 0, (22, 27, 33), (255, 123, 138)),
        ("html", 1, (255, 255, 255), (209, 73, 91)),
    ],
)
def test_in_a_browser_a_drawing_is_light_or_dark_as_asked_and_the_peak_is_marked(
    drawing, tmp_path, kind, scheme, paper, peak
):
    file = drawing.save(tmp_path / f"p.{kind}")
    seen = pixels(tmp_path, file, f"--blink-settings=preferredColorScheme={scheme}")
    assert tuple(seen[2, 2]) == paper
    assert np.all(seen == peak, axis=-1).sum() > 100


def test_the_runs_of_repeats_are_shown():
    def deep(w, x):
        for _ in range(24):
            x = x + hnp.tanh(x @ w - hnp.mean(x)) * hnp.exp(-x * x)
        return hnp.mean(x)

    drawing = hx.draw(hx.grad(deep))(hnp.ones((8, 8)), hnp.ones((4, 8)))
    for k in (1, 2, 24):
        assert re.search(rf">run {k} of 24, 1\d equations<", drawing.svg)
        assert re.search(rf">run {k} of 24, 1\d equations<", drawing.html)
    assert "run 25" not in drawing.html
    ET.fromstring(drawing.svg)


def test_a_program_without_repeats_has_no_runs(drawing):
    assert ">run " not in drawing.svg + drawing.html
