"""A debugger in a program that is executed, with the Python variables that were in scope when it was traced."""

from __future__ import annotations

import cmd
import linecache
import pprint
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from ...effects.base.errors import BadArgument, CallbackError
from ...effects.base.source_locations import is_internal
from ...effects.base.stack import current, in_force
from ...effects.control.debug_callbacks import callback
from ...effects.core.arrays import Array
from ...effects.trees import pytrees

AROUND = 5  # lines shown before and after the one of a frame


class FrameRecord:
    """A Python frame of the call stack: its source line, and its variables with a ``_Slot`` in place of each array."""

    def __init__(self, frame: Any, arrays: list[Array]):
        self.file = frame.f_code.co_filename
        self.line = frame.f_lineno
        self.function = frame.f_code.co_qualname
        self.globals = frame.f_globals
        self.variables = {name: _taken(value, arrays) for name, value in frame.f_locals.items()}

    def values(self, arrays: Sequence[Any]) -> dict[str, Any]:
        """The frame's variables by name, with ``arrays[i]`` where tracing left stand-in number ``i``."""
        return {name: _given(value, arrays) for name, value in self.variables.items()}

    def location(self) -> str:
        return f"{self.file}({self.line}) {self.function}"

    def source(self) -> str:
        """The source lines around the current line, which an arrow marks."""
        lines = range(max(1, self.line - AROUND), self.line + AROUND + 1)
        shown = [(n, linecache.getline(self.file, n)) for n in lines]
        return "".join([f"{'->' if n == self.line else '  '} {text.rstrip()}\n" for n, text in shown if text])


class _Slot:
    """A stand-in for an array: its index among the arrays that the callback receives."""

    def __init__(self, number: int):
        self.number = number


def _taken(value: Any, arrays: list[Array]) -> Any:
    """The value with a slot for each array in it; the arrays are appended to ``arrays``."""
    try:
        leaves, structure = pytrees.flatten(value)
    except Exception:  # a tree that cannot be flattened is shown as it is
        return value
    usable = [isinstance(leaf, Array) and (leaf.run is None or in_force(leaf.run, current())) for leaf in leaves]
    if not any(usable):
        return value
    slots = []
    for leaf, taken in zip(leaves, usable):
        if taken:
            arrays.append(leaf)
            leaf = _Slot(len(arrays) - 1)
        slots.append(leaf)
    return pytrees.unflatten(structure, slots)


def _given(value: Any, arrays: Sequence[Any]) -> Any:
    try:
        return pytrees.map(lambda leaf: arrays[leaf.number] if isinstance(leaf, _Slot) else leaf, value)
    except Exception:  # as in ``_taken``
        return value


class Debugger(cmd.Cmd):
    """The prompt at one stop. An expression prints its value in the selected frame."""

    prompt = "(hxdb) "

    def __init__(self, frames: Sequence[FrameRecord], arrays: Sequence[Any], stdin: Any, stdout: Any):
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self.frames = frames
        self.arrays = arrays
        self.at = 0
        self.ended = False

    def say(self, text: str) -> None:
        self.stdout.write(f"{text}\n")

    def evaluated(self, expression: str) -> Any:
        frame = self.frames[self.at]
        return eval(expression, {**frame.globals, **frame.values(self.arrays)})

    def shown(self, expression: str, text: Any) -> None:
        try:
            self.say(text(self.evaluated(expression)))
        except Exception as error:
            self.say("*** " + traceback.format_exception_only(error)[-1].strip())

    def default(self, line: str) -> None:
        self.shown(line, repr)

    def emptyline(self) -> bool:
        return False

    def do_p(self, arg: str) -> None:
        """p EXPRESSION: print a value."""
        self.shown(arg, repr)

    def do_pp(self, arg: str) -> None:
        """pp EXPRESSION: print a value, laid out."""
        self.shown(arg, pprint.pformat)

    def do_a(self, _: str) -> None:
        """a: print all variables of this function."""
        for name, value in self.frames[self.at].values(self.arrays).items():
            self.say(f"{name} = {value!r}")

    def do_l(self, _: str) -> None:
        """l: the source of this function, around the current line."""
        self.say(f"> {self.frames[self.at].location()}\n{self.frames[self.at].source()}".rstrip())

    def do_w(self, _: str) -> None:
        """w: the functions that are being called, the innermost last."""
        for i, frame in reversed(list(enumerate(self.frames))):
            self.say(f"{'->' if i == self.at else '  '} {frame.location()}")

    def do_u(self, _: str) -> None:
        """u: look at the function that called this one."""
        self._look(self.at + 1)

    def do_d(self, _: str) -> None:
        """d: look at the function that this one called."""
        self._look(self.at - 1)

    def _look(self, number: int) -> None:
        if 0 <= number < len(self.frames):
            self.at = number
            self.say(f"> {self.frames[number].location()}")
        else:
            self.say("*** there is no such function")

    def do_c(self, _: str) -> bool:
        """c: continue."""
        return True

    def do_q(self, _: str) -> bool:
        """q: stop the program with an error."""
        self.ended = True
        return True

    do_list, do_where, do_bt, do_args = do_l, do_w, do_w, do_a
    do_up, do_down, do_continue, do_quit, do_EOF = do_u, do_d, do_c, do_q, do_c


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    stdin: Any = None,
    stdout: Any = None,
) -> None:
    """Stop here when the program is executed, and look at the values of variables at a prompt.

    At the prompt an expression prints its value; ``h`` lists the commands.

    Effects: as ``debug.callback``: once for each lane under ``vmap``, in a branch only if it is executed.

    Args:
        backend: "cli" or None: the prompt of a terminal. token: None.
        filter_frames: leave out the functions of handlax among those that are being called.
        num_frames: how many of these are kept, the innermost; None: all.
        ordered: stops are in program order.
        stdin, stdout: the streams of commands and answers.

    Raises: BadArgument: another backend, or a token. CallbackError: the prompt was left by ``q``.

    >>> import io
    >>> from handlax import jit
    >>> def f(x):
    ...     y = 2 * x
    ...     breakpoint(stdin=io.StringIO("y + 1"), stdout=answers)
    ...     return y
    >>> answers = io.StringIO()
    >>> y = jit(f)(3)
    >>> "(hxdb) Array(7, dtype=int32)" in answers.getvalue()
    True
    """
    if backend not in (None, "cli"):
        raise BadArgument(f"breakpoint: backend must be 'cli' or None, got {backend!r}.")
    if token is not None:
        raise BadArgument(f"breakpoint: token must be None, got {token!r}.", hint="ordered=True keeps the order.")
    arrays: list[Array] = []
    frames: list[FrameRecord] = []
    frame: Any = sys._getframe(1)
    while frame is not None and (num_frames is None or len(frames) < num_frames):
        if not (filter_frames and is_internal(frame.f_code.co_filename)):
            frames.append(FrameRecord(frame, arrays))
        frame = frame.f_back

    def opened(*values: Any) -> None:
        debugger = Debugger(frames, values, stdin, stdout)
        debugger.say(f"> {frames[0].location()}")
        debugger.cmdloop()
        if debugger.ended:
            raise CallbackError("breakpoint: the program must be continued, got q at the prompt.")

    callback(opened, *arrays, ordered=ordered)
