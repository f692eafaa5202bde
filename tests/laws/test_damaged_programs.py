"""The text of every operation's program, changed at random: parsing raises ParseError, checking one of our errors.

What the checker lets pass can be evaluated, compiled and mapped over, or is refused by one of our errors.
"""

import random
import zlib

import numpy as np
import pytest
from fuzz_targets.readers import PARSER as READER
from fuzz_targets.readers import parse
from laws.test_laws import CASES_OF

import handlax as hx
from handlax import numpy as hnp
from handlax.errors import CompileError, HandlaxError
from handlax.testing.fuzzing import reworded
from handlax.testing.fuzzing.fuzz_targets import outcome
from handlax.testing.operation_laws import results

PARSER = READER._replace(seconds=120.0)  # in which a program may be compiled on a busy machine


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
        except CompileError as error:
            raise AssertionError("what the checker lets pass must compile") from error
        except HandlaxError:
            continue


def check(case, count):
    dtype = min(case.dtypes, key=lambda d: d.name)
    operands = case.draw(dtype, case.shapes[min(1, len(case.shapes) - 1)], np.random.default_rng(0))
    program = hx.make_program(lambda *xs: results(case.op, xs))(*operands)
    rng, text = random.Random(zlib.crc32(str(case).encode())), str(program).encode()
    target = PARSER._replace(run=lambda data: tried(data, program, operands))
    for _ in range(count):
        data = reworded(text, rng, (), PARSER.words)
        outcome(target, reworded(data, rng, (), PARSER.words) if rng.random() < 1 / 3 else data)


def tried(data, program, operands):
    """Parse and check a text, and execute its program if it is another one that takes the same operands."""
    found = parse(data, program.constants)
    if found != program and found.in_types == program.in_types and max(sizes(found), default=0) < 1_000_000:
        execute(found, operands)


@pytest.mark.parametrize("count", [10, pytest.param(500, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("kind", CASES_OF, ids=lambda kind: kind.name)
def test_a_damaged_program_raises_only_our_errors(kind, count):
    for case in CASES_OF[kind]:
        check(case, count)
