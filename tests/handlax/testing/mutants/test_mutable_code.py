"""What is code, and what a mutant is."""

import ast

import pytest
from helpers.package_source import PACKAGE, ROOT, name

from handlax.testing.mutants.mutable_code import bytecode, mutants, mutation, sites


@pytest.fixture
def found(tmp_path):
    """The mutants of a source, each with its line before and after."""
    def of(source):
        (tmp_path / "rules.py").write_text(source)
        each = [(mutant, mutation(tmp_path, mutant)) for mutant in mutants(tmp_path, "rules.py")]
        return [(mutant, change) for mutant, change in each if change is not None]
    return of


@pytest.mark.parametrize("source", [
    '"""A text of 1 + 1."""',
    "import a.b",
    "def f(x: tuple[1, 2]) -> Literal[3]: ...",
    "def f(x):\n    raise ValueError(x + 1)",
    "def f(x):\n    g = f'{x + 1}'",
    "def f(x):\n    z = warn_user(x + 1, y)",
    "class A:\n    def __repr__(self):\n        return self.a + self.b",
    "class A:\n    __slots__ = ('a',) + B",
    "__all__ = a + b",
    "@typing.overload\ndef f(x=1): ...",
    "if TYPE_CHECKING:\n    x = 1 + 1",
    "cached = once(maxsize=16 + 1)",
    "T = TypeVar('T', covariant=True)",
])
def test_what_changes_no_result_has_no_mutants(source, found):
    assert not found(source)


@pytest.mark.parametrize(("source", "function"), [
    ("x = 1", None),
    ("def f(x=1): ...", None),
    ("@g(1)\ndef f(): ...", None),
    ("class A:\n    x = 1", None),
    ("def f():\n    return 1", "f"),
    ("x = g(lambda: 1)", "lambda"),
    ("def f():\n    def g(): return 1", "g"),
    ("def f():\n    def g(x=1): ...", "f"),
])
def test_a_place_knows_whose_body_it_is_in(source, function):
    ones = [site for site in sites(ast.parse(source)) if isinstance(site.node, ast.Constant)]
    names = {None if site.function is None else getattr(site.function, "name", "lambda") for site in ones}
    assert names == {function}




def test_the_line_is_shown_before_and_after(found):
    shown = [(change.before, change.after) for _, change in found("def f(x):\n    return 'ü', g(x, 2) - 1\n")]
    assert ("return 'ü', g(x, 2) - 1", "return 'ü', g(2, x) - 1") in shown
    assert ("return 'ü', g(x, 2) - 1", "return 'ü', g(x, 2) + 1") in shown


def test_a_change_that_compiles_to_the_same_code_is_no_mutant(found):
    """A comparison that is never made: the compiler drops it."""
    assert not [change for _, change in found("def f(x):\n    if False:\n        x < 1\n") if change.before == "x < 1"]


def test_the_key_stays_when_other_functions_change(tmp_path):
    def keys(source):
        (tmp_path / "rules.py").write_text(source)
        return [mutant.key for mutant in mutants(tmp_path, "rules.py")]

    function = "def f(x):\n    return x + 1\n"
    assert keys(function) == keys(f"import a\n\n\n{function}")
    assert not {*keys(function)} & {*keys(function.replace("x", "y"))}
    method = "    def f(self, x):\n        return x + 1\n"
    assert {*keys(f"class A:\n{method}")} < {*keys(f"class A:\n    n = 2\n\n{method}")}


@pytest.mark.parametrize("path", [name(file) for file in PACKAGE if file.stem in ("arithmetic", "caches", "stack")])
def test_mutants_of_the_package_compile_to_other_code(path):
    original = bytecode(ast.parse((ROOT / path).read_text()))
    each = mutants(ROOT, path)
    assert len({mutant.key for mutant in each}) == len(each) > 10
    for mutant in each[:: max(len(each) // 20, 1)]:
        change = mutation(ROOT, mutant)
        assert change is None or bytecode(change.tree) != original


def test_the_lines_of_a_mutant_are_its_own_and_those_of_its_statement(found):
    source = "def f(x):\n    if (x\n            < 1):\n        g(\n            x)\n    return x\n"
    reach = {mutant.line: mutant.reach for mutant, _ in found(source)}
    assert reach[2] == (0b1100, 0b1100)
    assert reach[4] == (0b110000, 0b110000)


def test_what_the_import_executes_is_reached_by_all_tests_of_the_file(found):
    assert {mutant.reach for mutant, _ in found("x = 1 + y\n")} == {(-1,)}
