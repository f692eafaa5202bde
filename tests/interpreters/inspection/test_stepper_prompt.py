"""The stepper at a terminal: a real one, of which this is the other end."""

import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest

import handlax as hx
from handlax import lax
from handlax import numpy as hnp
from handlax.interpreters.inspection.stepper_prompt import COMMANDS, HELP, _PromptSession

PROGRAM = """
import handlax as hx
from handlax import lax, numpy as hnp

def f(x, xs):
    def body(c, v):
        y = hnp.log(c * v)
        return c - 1.0, y
    c, ys = lax.scan(body, x, xs)
    return hnp.sum(ys) + c

s = hx.step(f)(2.0, hnp.array([1.0, 2.0, 3.0, 4.0]))
"""


# Keys send signals to the program, which hears them also where the tests run in the background.
AT_ITS_OWN_TERMINAL = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.default_int_handler)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Terminal:
    """A program that runs at a terminal, and what it has written there since it was last asked."""

    def __init__(self, command, prompt):
        self.prompt = prompt
        self.end, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", AT_ITS_OWN_TERMINAL, *command],
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            env={**os.environ, "TERM": "dumb", "PYTHON_BASIC_REPL": "1", "COLUMNS": "200"},
        )
        os.close(theirs)

    def read(self, until):
        """What is written up to and with a text; with the empty one, up to the end."""
        found, limit = "", time.monotonic() + 60
        while not until or not found.endswith(until):
            ready, _, _ = select.select([self.end], [], [], max(limit - time.monotonic(), 0))
            assert ready, f"waited for {until!r}, got {found!r}"
            try:
                found += os.read(self.end, 4096).decode().replace("\r\n", "\n")
            except OSError:  # the other end is closed
                assert not until, found
                return found
        return found

    def say(self, text, until=None):
        """What the program answers to a line, without the line."""
        os.write(self.end, text.encode() + b"\n")
        answer = self.read(self.prompt if until is None else until)
        return answer.removeprefix(text + "\n").removesuffix(self.prompt)

    def interrupt(self):
        """Press the interrupt key until it is heard: a press before Python waits for a line counts with the next."""
        found, limit = self.prompt, time.monotonic() + 60
        while not found.endswith("\n" + self.prompt):
            assert time.monotonic() < limit, f"pressed the interrupt key for a minute, got {found!r}"
            os.write(self.end, b"\x03")
            while select.select([self.end], [], [], 2.0)[0] and not found.endswith("\n" + self.prompt):
                found += os.read(self.end, 4096).decode().replace("\r\n", "\n")

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.end)


@pytest.fixture
def terminal(tmp_path):
    opened = []

    def start(text, *flags, prompt):
        file = tmp_path / "model.py"
        file.write_text(text)
        opened.append(Terminal([sys.executable, *flags, str(file)], prompt))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def test_at_a_terminal_one_steps_finds_changes_forks_and_compares(terminal):
    there = terminal(PROGRAM + "print('left at', s.prompt().at)\n", prompt="step> ")
    assert "f: before equation 0 of 4" in there.read("step> ")
    found = there.say("to nan")
    assert "f > scan, iteration 3 of 4 > body" in found and "log d   = nan" in found
    assert "# model.py:8: return c - 1.0, y" in found
    assert there.say("mark bad") == "bad is here.\n"
    assert "before equation 2 of 4" in there.say("back")
    assert "d: f32[] = -4.0" in there.say("print d")
    assert "mul c b   = 4.0" in there.say("set d = 4")
    assert "= 1.38629" in there.say("next")
    compared = there.say("compare bad")
    assert compared.startswith("d: f32[]  1 of 1 elements, by 8  # model.py:7\ne: f32[]")
    assert "c: f32[]~, d: f32[4] = scan" in there.say("out")
    assert "f: at the end" in there.say("end")
    assert "left at 4" in there.say("quit", until="left at 4\n")


def test_a_terminal_answers_mistakes_and_goes_on(terminal):
    there = terminal(PROGRAM + "s.prompt()\n", prompt="step> ")
    there.read("step> ")
    assert there.say("dance") == "there is no command 'dance'; help lists them.\n"
    assert "scan has 4 iterations here, there is no iteration 9" in there.say("into 9")
    assert "'zz' is no value computed so far" in there.say("print zz")
    assert "'x +' is no number or list" in there.say("set a = x +")
    assert "a count is needed, got 'many'" in there.say("next many")
    assert "there is no mark 'lost'" in there.say("go lost")
    assert there.say("help") == HELP + "\n"
    assert "before equation 1 of 4" in there.say("")
    there.interrupt()  # leaves the line, not the session
    there.say("go away", until="there is no mark 'away'; there are: none.\nstep> ")
    assert "before equation 0 of 4" in there.say("back")
    os.write(there.end, b"\x04")  # the end of the input leaves the session
    there.read("")
    assert there.process.wait(60) == 0


def test_at_the_prompt_of_python_a_stepper_shows_itself(terminal):
    there = terminal(PROGRAM, "-i", "-q", prompt=">>> ")
    there.read(">>> ")
    shown = there.say("s.into(1).forward()")
    assert shown.startswith("f > scan, iteration 1 of 4 > body: before equation 1 of 4\n")
    assert "c: f32[] = convert_element_type[dtype=f32] a   = 1.0" in shown
    assert " -> return (nan)" in there.say("s.end()")


def session(f, *args):
    said = []
    return _PromptSession(hx.step(f)(*args), said.append), said


def test_commands_may_be_shortened_as_far_as_they_are_known():
    here, said = session(lambda x: hnp.sin(x) + 1.0, 0.5)
    for line, at in (("n", 1), ("b", 0), ("e", 2), ("st", 0), ("t 1", 1), ("s a = 0.25", 1), ("i", 1)):
        assert here.do(line)
        assert here.s.at == at
    assert "into: the next equation must have a sub-program, add has none" in said[-1]
    assert float(here.s["a"]) == 0.25
    assert not here.do("q")


def test_every_command_that_help_lists_is_one():
    listed = [line.split()[0] for line in HELP.splitlines()[:-1]]
    here, said = session(lambda x: x + 1.0, 0.5)
    assert [here.do(name) for name in listed] == [name != "quit" for name in listed]
    assert not any(text.startswith("there is no command") for text in said)


def test_values_are_written_in_one_line():
    here, said = session(lambda x: hnp.reshape(x, (10, 10)), hnp.arange(100.0))
    here.do("next")
    here.do("print")
    assert said[-1] == "b: f32[10,10] = [[ 0. 1. ... 8. 9.] [10. 11. ... 18. 19.] ... [80. 81. ... 8 ...\n"
    here.do("print b")
    assert said[-1].count("\n") == 10


def test_a_list_is_set_with_the_dtype_of_the_value_it_replaces():
    here, said = session(lambda x: x * 2, hnp.array([1, 2, 3]))
    here.do("set a = [4, 5, 6]")
    here.do("end")
    assert here.s.result.tolist() == [8, 10, 12]
    here.do("set a = [[1], [2, 3]]")
    assert "is no number or list" in said[-1]


def test_an_error_of_a_rule_leaves_the_session_where_it_was(monkeypatch):
    here, said = session(lambda x: lax.scan(lambda c, v: (c + v, None), x, hnp.arange(3.0))[0], 0.0)
    monkeypatch.setitem(COMMANDS, "iteration", ("", lambda at, rest: 1 // 0))
    before = here.s
    assert here.do("iteration")
    assert said[-1] == "ZeroDivisionError: integer division or modulo by zero\n"
    assert here.s is before


MISTAKES = {
    "next many": "a count is needed, got 'many'", "go lost": "there is no mark 'lost'; there are: here.",
    "mark": "mark: a name is needed", "dance": "there is no command 'dance'", "into 9": "there is no iteration 9",
    "to 99": "to: equations are 0 to", "back 9": "there are no 9 moves to take back", "print zz": "'zz' is no value",
    "compare lost": "there is no mark 'lost'",
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_leaves_the_session_where_it_was(line):
    here, said = session(lambda xs: lax.scan(lambda c, x: (c + x, None), hnp.float32(0.0), xs)[0], hnp.arange(3.0))
    here.do("mark here")
    before = here.s
    assert here.do(line) and here.s is before and MISTAKES[line] in said[-1]


def test_commands_go_where_they_say():
    here, said = session(lambda x: hnp.log(lax.cond(x > 0, hnp.sin, hnp.cos, x)) - 1.0, -2.0)
    for line, shown in (
        ("to cond", "> before"), ("into", "cond > "), ("mark inside", "inside is here."), ("out", ": before equation"),
        ("to nan", "= nan"), ("to 1", ": before equation 1"), ("next 2", ": before equation 3"),
        ("go inside", "cond > "), ("", "at the end"), ("out", ": before equation"), ("", "= nan"),
    ):
        here.do(line)
        assert shown.removeprefix("> ") in said[-1], (line, said[-1])


def test_a_long_program_is_shown_around_the_next_equation():
    def f(x):
        for _ in range(30):
            x = hnp.sin(x)
        return x

    s = hx.step(f)(0.5).forward(15)
    assert all([f"... {n} {where}" in str(s) for n, where in ((11, "above"), (14, "below"))]) or "above" in str(s)
    assert "above" not in str(s.start()) and "below" not in str(s.end())
    assert s._repr_html_().count("<mark>") == 1


@pytest.mark.parametrize("last", ["quit", EOFError])
def test_a_prompt_reads_lines_until_they_end(last, monkeypatch, capsys):
    lines = iter(["next", KeyboardInterrupt, "next", last])

    def answer(prompt):
        line = next(lines)
        if isinstance(line, str):
            return line
        raise line

    monkeypatch.setattr("builtins.input", answer)
    assert hx.step(lambda x: hnp.sin(x) * 2.0 + 1.0)(0.5).prompt().at == 2
    assert "help lists the commands." in capsys.readouterr().out
