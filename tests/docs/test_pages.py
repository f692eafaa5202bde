"""Every example of README.md and docs/ runs, page by page, each page in one namespace from top to bottom.

A block marked ``python`` is executed; one with prompts (``>>>``, in ``python`` or ``pycon``) is compared with what it
shows, messages of errors included. A program that is only to be looked at is marked ``text``.

In a block without prompts, ``# -> value`` at the end of a line is compared with the value of its statement, inside
functions too: with what is printed for it, its type, or a literal, to as many decimals as that has. A comment that
shows a value in another way is refused, since nothing would compare it.
"""

import ast
import doctest
import importlib.util
import io
import linecache
import os
import re
import sys
import tokenize
import types
from pathlib import Path

import numpy as np
import pytest
from helpers.columns_apart import columns_apart
from helpers.package_source import PACKAGE, nodes, tree

import handlax as hx
from handlax import as_jax

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LIBRARIES = ("equinox", "flax", "optax")                                 # on handlax, where they are installed
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
PROGRAMS = [*PACKAGE, *EXAMPLES]
FENCE = re.compile(r"^```(python|pycon)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
ARROW = "# -> "
AFTER_CODE = re.compile(r"\S\s+(# .+)$")
VALUE = re.compile(r"(->|==|Array\(|dtype\()|[a-z]+\d+\[[\dn,]*\]~?$")      # a repr, a comparison, a type: f32[3]


def blocks(text: str) -> list[tuple[int, str]]:
    """Give the Python blocks of a page with the number of lines before each."""
    return [(text.count("\n", 0, found.start(2)), found[2]) for found in FENCE.finditer(text)]


def run_examples(source: str, space: dict[str, object], name: str, file: str, line: int) -> None:
    """Compare a block with prompts with what it shows; its names stay in ``space``."""
    test = doctest.DocTestParser().get_doctest(source, space, name, file, line)
    said: list[str] = []
    result = doctest.DocTestRunner(verbose=False, optionflags=FLAGS).run(test, out=said.append, clear_globs=False)
    assert not result.failed, "".join(said)
    space.update(test.globs)


def same(value: object, shown: object) -> bool:
    """Whether a value is a literal, with as many decimals as that has."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(shown, dict) and isinstance(value, dict):
        return value.keys() == shown.keys() and all(same(value[key], shown[key]) for key in shown)
    if isinstance(shown, list | tuple) and isinstance(value, list | tuple):
        return type(value) is type(shown) and len(value) == len(shown) and all(map(same, value, shown))
    if isinstance(shown, float) and isinstance(value, float) and "e" not in repr(shown):
        return round(value, len(repr(shown).partition(".")[2])) == shown
    return type(value) is type(shown) and value == shown


def literal(text: str) -> tuple[object, ...]:
    """The value of a literal, in a tuple; without it for another text."""
    try:
        return (ast.literal_eval(text),)
    except (ValueError, SyntaxError):
        return ()


def compare(value: object, text: str, line: int) -> object:
    """Give a value, which must be the one that ``text`` shows."""
    found = {repr(value)}
    if isinstance(value, hx.Array | np.ndarray):
        found.add(str(hx.typeof(value)))
    if not (text in found or any(same(value, shown) for shown in literal(text))):
        raise AssertionError(f"line {line} shows {text}, got {' or '.join(sorted(found))}")
    return value


def comments(source: str) -> dict[int, str]:
    """The comments at the ends of lines of code, by line."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {token.start[0]: token.string for token in tokens
            if token.type == tokenize.COMMENT and token.line[:token.start[1]].strip()}


def with_comparisons(source: str) -> ast.Module:
    """The program that compares what is computed with what its lines show."""
    tree = ast.parse(source)
    shown = {line: text.removeprefix(ARROW) for line, text in comments(source).items() if text.startswith(ARROW)}
    for node in list(ast.walk(tree)):
        value = getattr(node, "value", None)
        if isinstance(node, ast.stmt) and isinstance(value, ast.expr) and node.end_lineno in shown:
            line = node.end_lineno
            arguments = [value, ast.Constant(shown.pop(line)), ast.Constant(line)]
            node.value = ast.copy_location(ast.Call(ast.Name("__compare__", ast.Load()), arguments, []), value)
    assert not shown, f"no value at the end of these lines: {shown}"
    return ast.fix_missing_locations(tree)


def shows_a_value(comment: str) -> bool:
    """Whether a comment shows a value: a literal, a repr, a type or a comparison."""
    text = comment.lstrip("# ")
    return bool(literal(text)) or VALUE.search(text) is not None


def uncompared(lines: list[str]) -> list[str]:
    """The lines that end with a comment which shows a value."""
    return [line for line in lines if (found := AFTER_CODE.search(line)) and shows_a_value(found[1])]


def uncompared_on_page(text: str) -> list[str]:
    """The lines of a page that show a value which nothing compares; below prompts, what is shown is compared."""
    found = []
    for _, source in blocks(text):
        if ">>>" in source:
            examples = doctest.DocTestParser().get_examples(source)
            found += uncompared([line for example in examples for line in example.source.splitlines()])
        else:
            found += [text for text in comments(source).values() if not text.startswith(ARROW) and shows_a_value(text)]
    return found


def docstring_lines(module: ast.Module) -> list[str]:
    """The lines of all docstrings of a program."""
    found = []
    for node in nodes(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            found += (ast.get_docstring(node) or "").splitlines()
    return found


def run_page(text: str, space: dict[str, object], file: str) -> int:
    """Run the blocks of one page and give their number; errors point to lines of the page."""
    found = blocks(text)
    space["__compare__"] = compare
    for line, source in found:
        if ">>>" in source:
            name = f"{Path(file).name}:{line}"      # of its own: tracebacks find the lines of an example by it
            run_examples(source, space, name, file, line)
        else:
            exec(compile(with_comparisons("\n" * line + source), file, "exec"), space)
    return len(found)


def missing(text: str) -> list[str]:
    """The libraries written for JAX that a page imports, and that this process cannot run on handlax."""
    imported = [name for name in LIBRARIES if re.search(rf"^import {name}\b", text, re.MULTILINE)]
    return [name for name in imported if not (as_jax.is_installed() and importlib.util.find_spec(name))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_examples_of_a_page_run(page, monkeypatch, tmp_path):
    if absent := missing(page.read_text()):
        pytest.skip(f"needs -p handlax.as_jax.pytest_plugin and {', '.join(absent)}")
    module = types.ModuleType("page")        # a real module: dataclasses and pickle look their classes up in one
    monkeypatch.setitem(sys.modules, "page", module)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")      # pages name the plug-ins that they use
    monkeypatch.chdir(tmp_path)              # what a page writes is not left behind
    linecache.checkcache(str(page))
    with columns_apart():
        run_page(page.read_text(), module.__dict__, str(page))


def test_the_readme_shows_a_program():
    assert blocks((ROOT / "README.md").read_text())


def test_the_program_of_the_readme_has_at_most_twelve_lines():
    _, program = blocks((ROOT / "README.md").read_text())[0]
    assert len([line for line in program.splitlines() if line.strip()]) <= 12


def test_blocks_share_names_and_point_to_their_lines():
    page = "# T\n```python\nx = 1\n```\nwords\n```pycon\n>>> x + 1\n2\n>>> y = 3\n```\n```python\nassert y == 4\n```\n"
    with pytest.raises(AssertionError) as caught:
        run_page(page, {}, "page.md")
    assert (caught.traceback[-1].lineno + 1, str(caught.traceback[-1].path).split(os.sep)[-1]) == (12, "page.md")


def test_an_example_that_shows_something_else_fails():
    with pytest.raises(AssertionError, match="Expected"):
        run_page("```python\n>>> 1 + 1\n3\n```\n", {}, "page.md")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_page_shows_a_value_that_nothing_compares(page):
    assert not uncompared_on_page(page.read_text())


def test_no_docstring_or_example_shows_a_value_that_nothing_compares():
    found = {}
    for file in PROGRAMS:
        lines = docstring_lines(tree(file))
        found[file.name] = uncompared([*lines, *file.read_text().splitlines()] if file in EXAMPLES else lines)
    assert not {name: lines for name, lines in found.items() if lines}


@pytest.mark.parametrize(("line", "right"), [
    ("(2, 4)  # -> (2, 4)", True), ("(4, 2)  # -> (2, 4)", False), ("x = 0.353553  # -> 0.3536", True),
    ("0.36  # -> 0.3536", False), ("x = hnp.ones(2)  # -> Array([1., 1.], dtype=float32)", True),
    ("hnp.ones(2)  # -> [1.0, 1.0]", True), ("hnp.ones(2)  # -> (1.0, 1.0)", False), ("1  # -> 1.0", False),
    ("def f():\n    y = hnp.ones(2)  # -> f32[2]\nf()", True),
    ("def f():\n    return hnp.ones(2)  # -> f32[3]\nf()", False), ("import handlax  # -> 3", False),
])
def test_a_wrong_value_at_the_end_of_a_line_is_found(line, right):
    page = f"```python\n{line}\n```\n"
    if right:
        run_page(page, {"hnp": hx.numpy}, "page.md")
    else:
        with pytest.raises(AssertionError):
            run_page(page, {"hnp": hx.numpy}, "page.md")


@pytest.mark.parametrize(("line", "found"), [
    ("f(x)  # (2, 4)", True), ("f(x)  # 3.0", True), ("f(x)  # Array([1., 2.], dtype=float32)", True),
    ("f(x)  # f32[3]", True),
    ("f(x)  # slope == 0.3536, errors.shape == (4,)", True), ("f(x)  # -> 3.0", False), ("f(x)  # a batch of 3", False),
    ("# 3.0\nf(x)", False), (">>> f(x)  # 3.0\n3.0", True), (">>> f(x)  # twice\n3.0", False),
    (">>> print(program)\na: f32[3] = sin b  # f32[3]", False),
])
def test_a_value_that_nothing_compares_is_found(line, found):
    assert bool(uncompared_on_page(f"```python\n{line}\n```\n")) == found


def test_a_value_in_a_docstring_is_found():
    source = 'def f(x):\n    """Twice.\n\n    f(2)  # 4\n    """\n'
    assert uncompared(docstring_lines(ast.parse(source))) == ["f(2)  # 4"]
