"""Lines are told while a block is executed, in blocks inside of one another and in threads too."""

import ast
import sys
import threading
from pathlib import Path

from helpers.other_threads import in_thread

from handlax.testing.fuzzing import line_events
from handlax.testing.fuzzing.line_events import LineEvents


def watched():
    x = 1
    return x + 1


class Outer(LineEvents):
    tool = 1

    def __init__(self):
        self.lines = set()

    def reached(self, code, line):
        if code is watched.__code__:
            self.lines.add(line - code.co_firstlineno)
        return code is watched.__code__


class Inner(Outer):
    tool = 2


def test_lines_are_told_in_the_block_alone():
    with Outer() as events:
        pass
    watched()
    assert events.lines == set()
    with events:
        watched()
    assert {1, 2} <= events.lines


def test_a_second_block_tells_the_same_lines_again():
    first, second = Outer(), Outer()
    for events in (first, second):
        with events:
            watched()
    assert first.lines == second.lines != set()


def test_a_block_in_a_block_tells_its_lines_and_the_outer_one_goes_on():
    before = sys.gettrace()
    with Outer() as outer:
        with Inner() as inner:
            watched()
        inside, outer.lines = inner.lines, set()
        if sys.version_info < (3, 12):  # later versions tell each line once in a block
            watched()
            assert outer.lines == inside
    assert {1, 2} <= inside and sys.gettrace() is before


def test_lines_of_threads_are_told():
    with Outer() as events:
        in_thread(watched)
    assert {1, 2} <= events.lines and threading.gettrace() is None


def test_the_file_imports_nothing_of_the_package():
    tree = ast.parse(Path(line_events.__file__).read_text())
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level]
