"""Each mutation operator makes the mistakes that its sentence says, and no others."""

import ast

import pytest

from handlax.testing.mutants.mutable_code import changes
from handlax.testing.mutants.mutation_operators import OPERATORS


def made(kind, source):
    """The sources that an operator makes of a module."""
    texts = []
    for number in range(len([found for found in changes(ast.parse(source)) if found[1] == kind])):
        module = ast.parse(source)
        site, _, new = [found for found in changes(module) if found[1] == kind][number]
        site.put(ast.copy_location(new, site.node))
        texts.append(ast.unparse(ast.fix_missing_locations(module)))
    return texts


def in_function(line):
    return f"def f(op, x, y, axis):\n    {line}"


CASES = [
    ("sign", "z = x + y", ["z = x - y"]),
    ("sign", "z = x - y", ["z = x + y"]),
    ("sign", "z = add(x, y)", ["z = add(x, -y)"]),
    ("sign", "z = lax.sub(x, y)", ["z = lax.sub(x, -y)"]),
    ("sign", "z = -x", ["z = x"]),
    ("sign", "z = x + 'text'", []),
    ("sign", "z = x + (y,)", []),
    ("term", "z = x + y", ["z = x", "z = y"]),
    ("term", "z = add(x, y)", ["z = x", "z = y"]),
    ("term", "z = x | y", ["z = x", "z = y"]),
    ("factor", "z = x * y", ["z = x", "z = y"]),
    ("factor", "z = x / y", ["z = x"]),
    ("factor", "z = mul(x, y)", ["z = x"]),
    ("factor", "z = conj(x)", ["z = x"]),
    ("factor", "z = reversed(x)", ["z = x"]),
    ("factor", "z = 'text %s' % x", []),
    ("index", "z = x[0]", ["z = x[1]"]),
    ("index", "z = x[y]", []),
    ("index", "z = x[:op.shared]", ["z = x[:op.shared + 1]"]),
    ("index", "z = x[1:-1]", ["z = x[2:-1]", "z = x[1:-1 + 1]"]),
    ("index", "z = f(x, axis=0)", ["z = f(x, axis=1)"]),
    ("index", "z = f(x, count=0)", []),
    ("index", "z = range(x)", ["z = range(1, x)", "z = range(x - 1)"]),
    ("constant", "z = f(x, 2)", ["z = f(x, 3)"]),
    ("constant", "z = f(x, weak=True)", ["z = f(x, weak=False)"]),
    ("constant", "z = x[0]", []),
    ("constant", "z = 'text'", []),
    ("dtype", "z = np.float32", ["z = np.float64"]),
    ("dtype", "z = f(x, int32)", ["z = f(x, __import__('numpy').dtype('int64'))"]),
    ("dtype", "z = f(x, 'bfloat16')", ["z = f(x, 'float32')"]),
    ("comparison", "z = x < y", ["z = x <= y"]),
    ("comparison", "z = 0 <= x < y", ["z = 0 < x < y", "z = 0 <= x <= y"]),
    ("comparison", "z = x is not y", ["z = x is y"]),
    ("condition", "z = x if y else op", [f"z = x if {c} else op" for c in ("not y", "True", "False")]),
    ("condition", "z = x and y", ["z = y", "z = x"]),
    ("condition", "z = x or y or op", ["z = y or op", "z = x or op", "z = x or y"]),
    ("condition", "z = [a for a in x if a]", ["z = [a for a in x]"]),
    ("condition", "while x: pass", ["while False:\n        pass"]),
    ("condition", "if x: raise BadAxis(y)", []),
    ("guard", "if x: raise BadAxis(y)", ["pass"]),
    ("guard", "need_axes(x)", ["pass"]),
    ("guard", "_check_axes(x)", ["pass"]),
    ("guard", "lock.acquire()", []),
    ("guard", "z = need_axes(x)", []),
    ("argument", "z = f(x, y)", ["z = f(y, x)", "z = f(x)"]),
    ("argument", "z = f(x, x)", ["z = f(x)"]),
    ("argument", "z = max(x, y)", ["z = max(x)"]),
    ("argument", "z = dtypes.promote_types(x, y)", ["z = dtypes.promote_types(x)"]),
    ("argument", "z = f(x, weak=y)", ["z = f(x)"]),
    ("argument", "z = f(*x, y)", []),
    ("argument", "z = f(x, maxsize=y)", []),
    ("statement", "x.wait()", ["pass"]),
    ("statement", "x += y", ["pass"]),
    ("statement", "x.y = 1", ["pass"]),
    ("statement", "cache[x] = y", []),
    ("statement", "z = x", []),
    ("context", "with lock: f(x)", ["if True:\n        f(x)"]),
    ("context", "with x as z: f(z)", []),
    ("key", "key = (x, y)", ["key = (y,)", "key = (x,)"]),
    ("key", "z = (x, y)", []),
    ("key", "z = _CACHE[x, y]", ["z = _CACHE[y,]", "z = _CACHE[x,]"]),
    ("result", "return f(x, y)", ["return x"]),
    ("result", "return (x, y)", ["return (y, x)"]),
    ("result", "return x", ["return None"]),
    ("result", "z = lambda a: f(a)", ["z = lambda a: a"]),
]


@pytest.mark.parametrize(("kind", "line", "expected"), CASES)
def test_a_mistake_of_its_kind(kind, line, expected):
    texts = [text.partition("\n")[2].strip() for text in made(kind, in_function(line))]
    assert texts == expected


def test_every_operator_is_shown_a_mistake_that_it_makes():
    assert {kind for kind, _, expected in CASES if expected} == {*OPERATORS}


def test_a_union_of_types_has_no_term_to_drop():
    assert not made("term", "Index = int | slice | None")
    assert made("term", "KINDS = FLOATS | INTS") == ["KINDS = FLOATS", "KINDS = INTS"]


def test_what_finally_says_is_not_done():
    assert made("context", "try:\n    f()\nfinally:\n    g()") == ["if True:\n    f()"]


def test_the_rest_of_a_guard_stays():
    assert made("guard", "if a:\n    raise B(a)\nelse:\n    c()") == ["if True:\n    c()"]


def test_a_key_is_what_a_function_of_this_name_returns():
    assert made("key", "def key(self):\n    return (self.a, self.b)") == [
        "def key(self):\n    return (self.b,)", "def key(self):\n    return (self.a,)"]
