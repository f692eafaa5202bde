"""The programs of examples/effects: what their docstrings show is what they print, and what plain Python computes.

The results shown are those that the benchmark of effect handlers publishes, for its small size and, where it takes
minutes at most, its large one.
Source: github.com/effect-handlers/effect-handlers-bench.
"""

from __future__ import annotations

import ast
import math
import re
import runpy
import shlex
import sys
from functools import reduce
from itertools import combinations, permutations
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "effects"
SHOWN = re.compile(r"^ *\$ python examples/effects/(.*)\n *(.*)$", re.MULTILINE)
MINUTES = {
    "fibonacci_recursive.py 42", "nested_pipes.py 8", "parsing_dollars.py 20000", "product_early.py 100000",
    "tree_explore.py 16",
}
TRANSCRIPTS = [
    pytest.param(shlex.split(command), result, id=command, marks=[pytest.mark.sweep] if command in MINUTES else [])
    for program in sorted(FOLDER.glob("*.py"))
    for command, result in SHOWN.findall(ast.get_docstring(ast.parse(program.read_text())))
]


def fibonacci(n):
    return reduce(lambda pair, _: (pair[1], sum(pair)), range(n), (1, 1))[0]


def queens(n):
    """Boards with one queen in each column and row, of which no two share a diagonal."""
    columns = range(n)
    return sum(
        len({row + i for i, row in zip(columns, rows)}) == len({row - i for i, row in zip(columns, rows)}) == n
        for rows in permutations(columns)
    )


def combine(x, y):
    return abs(x - 503 * y + 37) % 1009


def best_path(height):
    """Over all paths of the complete tree, which has 2**height of them."""
    state = 0
    for _ in range(10):
        results = []
        for path in range(2**height):
            # a path performs its updates below the value at which it parts from the path before it
            for value in range(common(path, height), 0, -1):
                state = combine(state, value)
            results.append(reduce(lambda below, value: combine(value, below), range(1, height + 1), state))
        state = max(results)
    return state


def common(path, height):
    """The value at which a path, whose bits are its turns, parts from the one before it."""
    return height if path == 0 else (path & -path).bit_length()


def hashes(n):
    found = [(a, b, c) for c, b, a in combinations(range(1, n + 1), 3) if a + b + c == n]
    return sum(53 * a + 53**2 * b + 53**3 * c for a, b, c in found) % 1_000_000_007


# for each program a size between those that are published, and the result there by a plain computation
EXPECTED = {
    "countdown": (1000, lambda n: 0),
    "fibonacci_recursive": (20, fibonacci),
    "flat_pipes": (2000, lambda n: n),
    "generator": (12, lambda height: sum((height - level) * 2**level for level in range(height))),
    "handler_sieve": (500, lambda n: sum(i for i in range(2, n) if all(i % d for d in range(2, math.isqrt(i) + 1)))),
    "iterator": (1000, lambda n: sum(range(n + 1))),
    "nested_pipes": (3, lambda n: 1000 + 2**n),
    "nqueens": (7, queens),
    "parsing_dollars": (1000, lambda n: sum(range(n + 1))),
    "product_early": (50, lambda n: n * math.prod(range(1001))),
    "resume_nontail": (20, lambda n: reduce(lambda y, x: combine(x, y), 1000 * list(range(1, n + 1)), 0)),
    "tree_explore": (7, best_path),
    "triples": (25, hashes),
}


@pytest.fixture(autouse=True)
def surroundings(monkeypatch):
    """A program sees its own folder, and its changes of Python's settings end with it."""
    limit = sys.getrecursionlimit()
    monkeypatch.syspath_prepend(FOLDER)
    yield
    sys.setrecursionlimit(limit)


def printed(program, n, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [program, str(n)])
    runpy.run_path(str(FOLDER / program), run_name="__main__")
    return capsys.readouterr().out.strip()


@pytest.mark.parametrize(("command", "result"), TRANSCRIPTS)
def test_a_program_prints_what_its_docstring_shows(command, result, monkeypatch, capsys):
    assert printed(*command, monkeypatch, capsys) == result


@pytest.mark.parametrize("name", EXPECTED)
def test_a_program_agrees_with_a_plain_computation(name, monkeypatch, capsys):
    n, compute = EXPECTED[name]
    assert printed(f"{name}.py", n, monkeypatch, capsys) == str(compute(n))


def test_every_program_shows_its_small_size_which_is_the_default():
    assert {file.stem for file in FOLDER.glob("*.py")} == EXPECTED.keys()
    smallest = {}
    for shown in TRANSCRIPTS:
        (program, n), _ = shown.values
        smallest.setdefault(program, int(n))
    for program, n in smallest.items():
        name = program.removesuffix(".py")
        assert runpy.run_path(str(FOLDER / program))[name].__defaults__[0] == n
    assert len(smallest) == len(EXPECTED)
