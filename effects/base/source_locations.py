"""Sites: the lines of the user's code at which operations are performed.

A *raw site* is a pair (code object, instruction offset), taken from a frame without formatting anything; ``Site(*raw)``
works out file, line and function when they are read. Where an operation passed through handlers and named scopes
before it was recorded, a ``LabelledCode`` stands in place of the code object and lists their labels.

Labels are relative to the program of the equation: what surrounds an operation with bodies is at that operation's site,
and ``stack.site`` puts the two together.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import warnings
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from inspect import CO_VARARGS
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .caches import Cache
from .deep_calls import caller_of
from .wrapping import context_variable

F = TypeVar("F", bound=Callable[..., Any])
RawSite = tuple[Any, int]  # (code object or LabelledCode, offset of an instruction)

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "")
# Frames between the user's line and ours: of partial functions, of context managers, and of NumPy's functions, which
# call the methods of what they are given.
_NUMPY = os.path.join(os.path.dirname(np.__file__), "")
_MACHINERY = (functools.__file__, contextlib.__file__, _NUMPY)


class ScopeName(str):
    """The label of a ``named_scope``, which is its name."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return str(self)


class NameStack(NamedTuple):
    """The named scopes of an equation, outermost first, as ``source_info`` of JAX has them: its text joins them by "/".
    """

    stack: tuple[ScopeName, ...] = ()

    def __str__(self) -> str:
        return "/".join(self.stack)


class LabelledCode:
    """A code object with the labels of the handlers and scopes that an operation passed through, innermost first.

    ``calls``: the ``call_path`` of the operation, recorded for operations with bodies that have effects; else None.
    ``_labeller``: ``labeller_of`` the object.
    """

    __slots__ = ("code", "labels", "calls", "_labeller")

    def __init__(self, code: CodeType | None, labels: tuple[str, ...], calls: tuple[str, ...] | None = None):
        self.code = code
        self.labels = labels
        self.calls = calls
        self._labeller: CodeLabeller | None = None


class CodeLabeller(dict[int, Any]):
    """A map from the identity of a code object, labelled or not, to the same code with ``labels`` appended."""

    __slots__ = ("labels", "_alive")

    def __init__(self, labels: tuple[str, ...]):
        self.labels = labels
        self._alive: list[Any] = []  # the keys' objects; as keys themselves, code objects would be hashed by value

    def add(self, code: Any) -> Any:
        """Enter ``code``, and return it with the labels appended to those that it has."""
        before = code if type(code) is LabelledCode else LabelledCode(code, ())
        labelled = self[id(code)] = LabelledCode(before.code, before.labels + self.labels, before.calls)
        self._alive.append(code)
        return labelled

    def site(self, site: RawSite) -> RawSite:
        """The site with the labels appended; itself if there are none, so that nothing is entered."""
        if not self.labels:
            return site
        code, offset = site
        return self.get(id(code)) or self.add(code), offset


NO_LABELS = CodeLabeller(())


def labels_of(site: RawSite) -> tuple[str, ...]:
    """The labels of the handlers and scopes of a site, innermost first."""
    return site[0].labels if type(site[0]) is LabelledCode else ()


def labeller_of(site: RawSite) -> CodeLabeller:
    """Appends the labels of ``site``, to what is performed in place of the operation that stands there."""
    code = site[0]
    if type(code) is not LabelledCode or not code.labels:
        return NO_LABELS
    if code._labeller is None:
        code._labeller = CodeLabeller(code.labels)
    return code._labeller


def relabelled(site: RawSite, labels: tuple[str, ...]) -> RawSite:
    """The site with these labels in place of its own."""
    code, offset = site
    if type(code) is LabelledCode:
        return LabelledCode(code.code, labels, code.calls) if labels or code.calls else code.code, offset
    return LabelledCode(code, labels) if labels else code, offset


class Site(NamedTuple):
    """A site with its file, line and function, which are computed on each read."""

    origin: CodeType | LabelledCode | None
    offset: int

    @property
    def code(self) -> CodeType | None:
        return self.origin.code if isinstance(self.origin, LabelledCode) else self.origin

    @property
    def under(self) -> tuple[str, ...]:
        """Labels of the handlers and scopes that the operation passed through before it was recorded, innermost first.
        """
        return labels_of(self)

    @property
    def scopes(self) -> tuple[str, ...]:
        """The names of the ``named_scope``s in which the operation was performed, outermost first."""
        return self.name_stack.stack

    @property
    def name_stack(self) -> NameStack:
        """``scopes`` under JAX's name: its text is ``"encoder/attention"``."""
        return NameStack(tuple([label for label in reversed(self.under) if type(label) is ScopeName]))

    @property
    def calls(self) -> tuple[str, ...] | None:
        """The user's functions whose calls led to the site, outermost first; None where they were not recorded."""
        return self.origin.calls if isinstance(self.origin, LabelledCode) else None

    @property
    def file(self) -> str:
        return self.code.co_filename if self.code is not None else "<unknown>"

    @property
    def function(self) -> str:
        return self.code.co_name if self.code is not None else "<unknown>"

    @property
    def line(self) -> int:
        if self.code is None:
            return 0
        for index, (_, _, line) in enumerate_lines(self.code):
            if index > self.offset:
                return line or self.code.co_firstlineno
        return self.code.co_firstlineno

    @property
    def full(self) -> str:
        """File, line, handlers and scopes: ``model.py:17, under grad > vmap('batch')``."""
        return f"{self}, under {' > '.join(self.under)}" if self.under else str(self)

    @property
    def scoped(self) -> str:
        """File, line and scopes: ``model.py:17, in encoder/attention``."""
        return f"{self}, in {self.name_stack}" if self.scopes else str(self)

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"


def enumerate_lines(code: CodeType) -> list[tuple[int, tuple[int, int, int | None]]]:
    """The line table of ``code`` as (end offset, entry), in order."""
    return [(entry[1], entry) for entry in code.co_lines()]


NOWHERE = Site(None, 0)

_FILES = Cache("source files", 16384)
"""Whether a file is not the user's, by its name."""
_INTERNAL: dict[str, bool] = _FILES.entries
_EXCLUDED: dict[str, None] = {}  # a set that can grow while another thread reads it


def is_internal(file: str) -> bool:
    """Whether ``file`` belongs to handlax itself, to what lies between its frames and the user's, or to a library that
    has excluded it.
    """
    known = _INTERNAL.get(file)
    if known is None:
        known = file.startswith((_PACKAGE, "<handlax", *_MACHINERY, *_EXCLUDED))
        _FILES.add(file, known)
    return known


def knows_extents(file: str) -> bool:
    """Whether functions of ``file`` compute with extents: those of the package do, NumPy's take numbers."""
    return is_internal(file) and not file.startswith(_NUMPY)


def register_exclusion(path: str) -> None:
    """A file or folder of a library is no longer the user's: messages and tracebacks name its caller's line instead.

    >>> is_internal("/libraries/layers/dense.py")
    False
    >>> register_exclusion("/libraries/layers/")
    >>> is_internal("/libraries/layers/dense.py")
    True
    """
    _EXCLUDED[path] = None
    _FILES.clear()


def include_frame(frame: FrameType) -> bool:
    """Whether a frame is the user's: neither of handlax nor of a file that is excluded."""
    return not is_internal(frame.f_code.co_filename)


def is_ours(module: str) -> bool:
    """Whether a module of this name belongs to handlax itself."""
    return module.partition(".")[0] == "handlax"


class Sites:
    """The raw sites of many equations, in 12 bytes each: code objects, and offsets as machine integers."""

    __slots__ = ("codes", "offsets")

    def __init__(self, sites: Iterable[RawSite] = ()):
        self.codes: list[Any] = []
        self.offsets = array("i")
        for code, offset in sites:
            self.codes.append(code)
            self.offsets.append(offset)

    def copy(self) -> Sites:
        copied = Sites.__new__(Sites)
        copied.codes, copied.offsets = self.codes[:], self.offsets[:]
        return copied

    def append(self, site: RawSite) -> None:
        code, offset = site
        self.codes.append(code)
        self.offsets.append(offset)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, index: int) -> RawSite:
        return self.codes[index], self.offsets[index]

    def __iter__(self) -> Iterator[RawSite]:
        return zip(self.codes, self.offsets)

    def labelled_by(self, labeller: CodeLabeller) -> Iterator[RawSite]:
        """The same sites, with the labels of some handlers appended."""
        if not labeller.labels:
            return iter(self)
        known = labeller.get
        return zip([known(id(code)) or labeller.add(code) for code in self.codes], self.offsets)

    def __reversed__(self) -> Iterator[RawSite]:
        return zip(reversed(self.codes), reversed(self.offsets))


def _site_by_frames(depth: int = 1) -> tuple[CodeType, int]:
    """``user_site`` by walking the frame objects."""
    frame = sys._getframe(depth)
    internal = _INTERNAL
    while True:
        code = frame.f_code
        known = internal.get(code.co_filename)
        if known is None:
            known = is_internal(code.co_filename)
        back = frame.f_back
        if not known or back is None:
            return code, frame.f_lasti
        frame = back


_MODULES = Cache("source modules", 16384)
"""Whether a module is not the user's, by its name."""
_INTERNAL_MODULES: dict[str | None, bool] = _MODULES.entries


_NEAR = 32


def _site_by_modules(depth: int = 1) -> tuple[CodeType | None, int]:
    """``user_site`` by the names of modules, which are read without creating a frame object each.

    Each name is looked for from the top of the stack, so that beyond ``_NEAR`` of them the frames are walked.
    """
    name_at = sys._getframemodulename  # type: ignore[attr-defined,unused-ignore]
    modules = _INTERNAL_MODULES
    last = depth + _NEAR
    while True:
        while (internal := modules.get(name := name_at(depth))) and depth < last:
            depth += 1
        if internal is not False:  # it has not been seen before, or is far from here
            if name is None or depth >= last:  # beyond the outermost frame, or code without a module
                try:
                    return _site_by_frames(depth + 1)
                except ValueError:  # a thread of the runtime has no frame of the user's
                    return None, 0
            _MODULES.add(name, is_ours(name) or name.partition(".")[0] in ("functools", "contextlib", "numpy"))
            continue
        frame = sys._getframe(depth)
        code = frame.f_code
        file = code.co_filename
        if _INTERNAL.get(file) is False or not is_internal(file):  # functools.wraps copies the user's __module__
            return code, frame.f_lasti
        depth += 1


# user_site(depth): the raw site of the innermost frame outside handlax, not looking at the first ``depth`` frames
user_site: Callable[..., RawSite] = _site_by_modules if hasattr(sys, "_getframemodulename") else _site_by_frames


_LAYERS = ("effects", "interpreters", "lowering")
# The folders of the layers that define functions which users call; what else is public calls these, or is called back
_CALLED_BY_USERS = frozenset((
    "effects.control", "effects.functions", "effects.operations", "effects.operators", "interpreters.transformations",
    "lowering.arrays",
))


def called_with(x: object) -> tuple[str, str]:
    """The name of the function that the user called, and the argument of it that is or holds ``x``; empty if unknown.

    The function is the one nearest to the user's line that is public: wrappers that were named by ``wraps`` alone, and
    functions with an underscore, only lead to it.
    """
    called, frame = None, sys._getframe(1)
    while frame is not None and is_internal(frame.f_code.co_filename):
        if _is_public(frame):
            called = frame
        frame = frame.f_back  # type: ignore[assignment]
    return ("", "") if called is None else (called.f_code.co_name, _argument(called, x))


def _is_public(frame: FrameType) -> bool:
    layer, _, rest = frame.f_globals["__name__"].partition("handlax.")[2].partition(".")
    if layer in _LAYERS and f"{layer}.{rest.partition('.')[0]}" not in _CALLED_BY_USERS:
        return False
    return not frame.f_code.co_name.startswith(("_", "<")) and "<locals>" not in frame.f_code.co_qualname


def _argument(frame: FrameType, x: object) -> str:
    """The argument of a call that is ``x`` or holds it, as it is written in the function: ``arrays[0]``."""
    code, values = frame.f_code, frame.f_locals
    count = code.co_argcount + code.co_kwonlyargcount
    given = {name: values.get(name) for name in code.co_varnames[:count]}
    if code.co_flags & CO_VARARGS:
        given |= {f"argument {i}": y for i, y in enumerate(values.get(code.co_varnames[count], ()))}
    paths = [name + path for name, y in given.items() if (path := _path_to(x, y)) is not None]
    return paths[0] if paths else ""


def _path_to(x: object, tree: object, depth: int = 4) -> str | None:
    """The path in nested lists, tuples and dictionaries at which ``x`` itself stands: ``[0]['a']``; None: nowhere."""
    if tree is x:
        return ""
    items = enumerate(tree) if isinstance(tree, (list, tuple)) else tree.items() if isinstance(tree, dict) else ()
    paths = [f"[{key!r}]{path}" for key, y in items if depth and (path := _path_to(x, y, depth - 1)) is not None]
    return paths[0] if paths else None


class WarningRefused(Exception):
    """Raised by ``warn_user`` while an eager program is recorded, so that a call that warns is not cached."""


NO_WARNINGS: ContextVar[bool] = context_variable("handlax_no_warnings", False)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the user's line. Raises: WarningRefused: where ``NO_WARNINGS`` is set."""
    if NO_WARNINGS.get():
        raise WarningRefused
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and is_internal(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, level)


class PathStart(NamedTuple):
    """An internal function at which ``call_path`` stops; ``by_user``: it calls a user's function, not a program."""

    code: CodeType
    by_user: bool


_STARTS: dict[int, PathStart] = {}  # by the identity of the code object, which is cheaper to hash than its value


def starts_path(function: F, by_user: bool = True) -> F:
    """Decorator: calls outside this function are not part of a ``call_path``."""
    code = function.__code__
    _STARTS[id(code)] = PathStart(code, by_user)
    return function


def call_path() -> tuple[str, ...] | None:
    """The names of the user's functions whose calls lead to the caller, outermost first, as in ``"Layer.__call__"``.

    The outermost is the first one called inside a function decorated with ``starts_path``. None: a recorded program is
    being evaluated, so that no call of the user's leads here.
    """
    path: list[str] = []
    frame: Any = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not is_internal(code.co_filename):
            path.append(code.co_qualname)
        elif id(code) in _STARTS:
            if not path and not _STARTS[id(code)].by_user:
                return None
            break
        frame = caller_of(frame)
    return tuple(reversed(path))


def with_calls(code: Any) -> Any:
    """``code`` with the ``call_path`` that leads to the caller; unchanged where it has one, or where there is none."""
    before = code if type(code) is LabelledCode else LabelledCode(code, ())
    calls = call_path() if before.calls is None else None
    return code if calls is None else LabelledCode(before.code, before.labels, calls)
