"""``save``: each process writes its arrays, all wait for each other, and process 0 makes the tree visible."""

from __future__ import annotations

import os
import shutil
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from ..effects.base.errors import BadCheckpoint, HandlaxError, NotSaved
from ..effects.base.lazy_module import optional_module
from ..effects.base.source_locations import Site, user_site, warn_user
from ..effects.trees import pytrees
from ..effects.trees.paths import keystr
from ..lowering.clients.agreement import check_same, said_by_all, together
from ..lowering.clients.processes import connection
from .contents import TABLE, Contents, commit, data_in, is_saved, new_data_name, outline_of, read_contents
from .folder_lock import FolderLock, place_of, refusals, sync_folder
from .safetensors_file import FileTarget, is_single_file, name_in_file
from .stored_leaves import Piece, agreed_fact, described, known, own_pieces
from .zarr_arrays import write_arrays


def save(path: str | os.PathLike[str], tree: Any) -> None:
    """Save a tree of arrays, numbers and texts in a folder, in place of what was saved there before.

        restore(path, like=tree) == tree            bit for bit, also after a kill at any moment: the old tree or this

    Every process calls it; each writes its own shards, and one of those that hold the same shard writes it. What each
    process has for itself, such as a NumPy array, must be the same in all, and process 0 writes it. Trees may have
    arrays of any dtype, sharded or not, random keys, NumPy arrays and scalars, and Python's ``bool``, ``int``,
    ``float``, ``complex`` and ``str``.

    Arrays are in Zarr's third format, with a checksum for each chunk; ``zarr.json`` is their group, and has the paths.

    A path that ends in ``.safetensors`` is one file of this format, of a tree whose leaves are arrays. An array has as
    its name its keys, joined by dots. The format has no random keys, int2, int4, complex128 and rarer 8-bit floats.

    Raises: NotSaved: the folder cannot be written to, or another save is writing to it. NotAnArray, DTypeMismatch,
    BadArgument: a leaf cannot be saved. ProcessesDiffer: the trees of the processes differ.
    """
    save_async(path, tree).result()


def save_async(path: str | os.PathLike[str], tree: Any) -> Future[None]:
    """``save`` in a thread: it returns when the values are copied, so that arrays may be changed or donated.

    ``save_async(path, tree).result()`` waits until the tree is whole on the disk, in all processes, and raises what
    went wrong since. Python does not end before that. A failure for which nobody asks is a warning, when the future is
    forgotten or Python ends.
    """
    return start_saving(path, tree)


def start_saving(
    path: str | os.PathLike[str], tree: Any, notes: Mapping[str, Any] | None = None,
    then: Callable[[], None] = lambda: None,
) -> Future[None]:
    """``save_async`` with notes in the table of contents; process 0 calls ``then`` when the tree is whole."""
    data, joined = said_by_all(new_data_name())[0], connection()
    target, pieces, facts = together(lambda: _prepared(path, data, tree, notes or {}))
    if joined is not None:
        check_same(facts, "save: every process must save the same")
    begun, saved = Future[None](), Saved()
    only_first = then if joined is None or joined.index == 0 else None
    act = partial(_write, target, data, pieces, only_first, f"at {Site(*user_site(1))}", begun)
    # the lock is the thread's, which goes on where this one is interrupted
    threading.Thread(target=saved.become, args=(act,), name="handlax save").start()
    wait([begun, saved], return_when=FIRST_COMPLETED)
    if not begun.done():
        saved.result()
    return saved


def _prepared(
    path: str | os.PathLike[str], data: str, tree: Any, notes: Mapping[str, Any]
) -> tuple[SaveTarget, list[list[Piece]], list[tuple[str, str, str]]]:
    """Where a tree is saved, copies of what this process writes of each leaf, and what is the same in all processes."""
    place = place_of("save", path)
    is_file = is_single_file(place)
    if not is_file:
        optional_module("tensorstore", "save")
    pairs = pytrees.leaves_with_path(tree)
    values = [known(keystr(keys), x) for keys, x in pairs]
    names = [(name_in_file if is_file else keystr)(keys) for keys, _ in pairs]
    leaves = tuple([described(number, name, x) for number, (name, x) in enumerate(zip(names, values))])
    target = (FileTarget if is_file else FolderTarget)(place, Contents(data, outline_of(tree), leaves, notes))
    pieces = [own_pieces(number, x) if leaf.name else [] for number, (leaf, x) in enumerate(zip(leaves, values))]
    facts = [] if connection() is None else [agreed_fact(leaf, x) for leaf, x in zip(leaves, values)]
    return target, pieces, facts


class Saved(Future[None]):
    """The end of a save; its failure is a warning where nobody asks for it.

    A forked child has no thread that saves, and is told so.
    """

    def __init__(self) -> None:
        super().__init__()
        self._process = os.getpid()
        self.set_running_or_notify_cancel()
        self._warning: weakref.finalize[..., Saved] | None = None

    def become(self, act: Callable[[], None]) -> None:
        """Call ``act()``, which is the end, or the failure."""
        try:
            act()
        except BaseException as error:
            self._warning = weakref.finalize(self, _warn, f"{type(error).__name__}: {error}")
            self.set_exception(error)
            del self  # the traceback of the error has this frame, which would keep it
        else:
            self.set_result(None)

    def result(self, timeout: float | None = None) -> None:
        self.exception(timeout)
        super().result()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        if self._process != os.getpid() and not self.done():
            raise NotSaved("save: who has begun a save must wait for it, got a child that was forked then.")
        error = super().exception(timeout)
        if self._warning is not None:
            self._warning.detach()
        return error


def _warn(text: str) -> None:
    warn_user(f"save_async: a tree was not saved, and nobody has asked for the result().\n{text}")


class SaveTarget(Protocol):
    """Where a tree is saved: beside what was saved there before, and then in its place, in one step.

    The thread of process 0 holds the lock, begins and commits; those of all write. All of them raise NotSaved.
    """

    lock: FolderLock

    def begin(self) -> None:
        """Lock the place, and make room."""

    def write(self, pieces: Sequence[Sequence[Piece]]) -> None:
        """Write pieces of each leaf, and return when all bytes are on the disk."""

    def commit(self) -> None:
        """Put the tree in the place of the one before."""

    def clean(self) -> None:
        """Remove what was written and is in no whole tree."""


class FolderTarget:
    """The folder in which a tree is saved."""

    def __init__(self, folder: Path, contents: Contents):
        self.folder, self.contents, self.data = folder, contents, folder / contents.data
        self.lock = FolderLock(folder)
        self.made = [self.data]

    def begin(self) -> None:
        with refusals(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            if is_saved(self.folder):
                self.made += data_in(self.folder)
            elif (self.folder / TABLE).exists():
                raise NotSaved(f"save: {self.folder} must be new or of a saved tree, got another group of Zarr's.")
            self.lock.acquire()
            self.clean()
            self.data.mkdir()

    def write(self, pieces: Sequence[Sequence[Piece]]) -> None:
        if not self.data.is_dir():
            raise NotSaved(
                f"save: all processes must have one folder, got none at {self.data}.", hint="a shared disk.")
        arrays = [(leaf, own) for leaf, own in zip(self.contents.leaves, pieces) if leaf.name]
        write_arrays(self.data, arrays, create=self.lock.is_held)

    def commit(self) -> None:
        with refusals(self.folder):
            sync_folder(self.data)
            commit(self.folder, self.contents)

    def clean(self) -> None:
        """Remove the arrays of saves that the table of contents does not name: they were replaced, or not saved."""
        named = None
        if (self.folder / TABLE).exists():
            try:
                named = read_contents("save", self.folder).data
            except BadCheckpoint:
                return  # a damaged one: what it named is kept until another one is there
        for folder in self.made:
            if folder.name != named:
                shutil.rmtree(folder, ignore_errors=True)  # what remains is removed by the next save


def _nothing() -> None:
    pass


def _write(
    target: SaveTarget, save: str, pieces: Sequence[Sequence[Piece]], then: Callable[[], None] | None, where: str,
    begun: Future[None],
) -> None:
    """Begin, write the arrays, wait for the other processes, and commit; the first one, which has ``then``, begins and
    commits.

    Raises at ``where``.
    """
    begin, commit = (_nothing, _nothing) if then is None else (target.begin, target.commit)
    try:
        together(begin, f"{save}/begun")
        begun.set_result(None)
        together(lambda: target.write(pieces), f"{save}/arrays")
        together(commit, f"{save}/table")
        if then is not None:
            then()
    except HandlaxError as error:
        error.moved(where)
        raise
    finally:
        if target.lock.is_held:
            target.clean()
        target.lock.release()
