"""The text of every operation's program, changed at random: parsing raises ParseError, checking one of our errors.

What the checker lets pass can be evaluated, compiled and mapped over, or is refused by one of our errors.
"""

import random
import re
import zlib

import numpy as np
import pytest
from laws.test_laws import CASES

import handlax as hx
from handlax import numpy as hnp
from handlax.effects.programs.program import Program
from handlax.errors import CompileError, HandlaxError, ParseError
from handlax.interpreters.analysis.typecheck import typecheck
from handlax.testing.operation_laws import results

TOKEN = re.compile(r"'[^']*'|[a-z]+\d+\[[^\]]*\]|\([\d, ()-]*\)|-?\d+\.?\d*(?:e[+-]?\d+)?|[A-Za-z_]\w*|[^\s\w]")
OTHERS = (
    "0", "-1", "1", "2", "7", "9" * 5000, "99999999999", "1.5", "nan", "inf", "-0.0", "1e400", "True", "None", "()",
    "(0,)", "(0,0)", "(-1,)", "(1,2)", "(0,1,0)", "((0,0),)", "(0,(1,))", "(9999999999999,)", "'x'", "{}", "f32",
    "f32[2]", "n0", "op neg", "class neg", "range(0,3,1)", "frozen(1,2)", "tree()", "key<fry>", "@p0", "@c0", "...",
    "builtins:int", "complex(1,2)", "float(zz)", "f32[9223372036854775808]", "frozen((1,), tree())",
    "tree(None, None, ())", "tree(None, None, (1))", "tree(builtins:list, None, (tree(), tree()))",
    "b'x'", "tree(builtins:list, None, (f32))", "tree(builtins:dict, (1,2), (tree(),))", "tree(builtins:int, 1, ())",
)


def damaged(text, rng):
    """The text with one or two of its tokens replaced, removed or followed by another."""
    for _ in range(rng.choice((1, 1, 2))):
        tokens = list(TOKEN.finditer(text))
        token = rng.choice(tokens[2:])
        new = rng.choice((rng.choice(OTHERS), rng.choice(tokens).group(), "", f"{token.group()} {rng.choice(OTHERS)}"))
        text = text[: token.start()] + new + text[token.end() :]
    return text


def sizes(program):
    """The sizes of all values, those in sub-programs included."""
    for types in (program.in_types, *[op.as_results(stated) for op, stated in zip(program.ops, program.types)]):
        yield from [t.size for t in types]
    for body in [body for op in program.ops if op.bodied for body in op.bodies]:
        yield from sizes(body)


def execute(program, operands):
    """Perform a program in all ways; only our errors are expected, and none of the compiler's."""
    stacked = [np.stack([np.asarray(x)] * 2) if isinstance(x, np.ndarray) else hnp.stack([x] * 2) for x in operands]
    ways = {"evaluated": (program, operands), "compiled": (hx.jit(program), operands)}
    if operands:
        ways["mapped"] = hx.vmap(program), stacked
    for f, xs in ways.values():
        try:
            f(*xs)
        except CompileError:
            raise
        except HandlaxError:
            continue


def check(case, count):
    dtype = min(case.dtypes, key=lambda d: d.name)
    operands = case.operands(dtype, case.shapes[min(1, len(case.shapes) - 1)], np.random.default_rng(0))
    program = hx.make_program(lambda *xs: results(case.op, xs))(*operands)
    rng = random.Random(zlib.crc32(str(case).encode()))
    for _ in range(count):
        text = damaged(str(program), rng)
        try:
            found = Program.parse(text, program.constants)
        except ParseError:
            continue
        try:
            typecheck(found)
        except HandlaxError:
            continue
        assert Program.parse(str(found), found.constants) == found, text
        if found != program and found.in_types == program.in_types and max(sizes(found), default=0) < 1_000_000:
            execute(found, operands)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_damaged_program_raises_only_our_errors(case):
    check(case, 20)


@pytest.mark.sweep
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_program_damaged_in_many_ways_raises_only_our_errors(case):
    check(case, 500)
