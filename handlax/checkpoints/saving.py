"""``save``: each process writes its arrays, all wait for each other, and process 0 writes the table of contents."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..effects.base.errors import BadCheckpoint, HandlaxError, NotSaved
from ..effects.base.lazy_module import optional_module
from ..effects.base.source_locations import Site, user_site
from ..effects.trees import pytrees
from ..effects.trees.paths import keystr
from ..lowering.clients.agreement import check_same, said_by_all, together
from ..lowering.clients.processes import connection
from .contents import TABLE, Contents, commit, outline_of, read_contents, sync_folder
from .stored_leaves import Piece, StoredLeaf, agreed_fact, described, known, own_pieces
from .zarr_arrays import write_arrays

_DATA = "data."


def save(path: str | os.PathLike[str], tree: Any) -> None:
    """Save a tree of arrays, numbers and texts in a folder, in place of what was saved there before.

        restore(path, like=tree) == tree            bit for bit, also after a kill at any moment: the old tree or this

    Every process calls it; each writes its own shards, and one of those that hold the same shard writes it. What each
    process has for itself, such as a NumPy array, must be the same in all, and process 0 writes it. Trees may have
    arrays of any dtype, sharded or not, random keys, NumPy arrays and scalars, and Python's ``bool``, ``int``,
    ``float``, ``complex`` and ``str``.

    Arrays are in Zarr's third format, with a checksum for each chunk; ``zarr.json`` is their group, and has the paths.

    Raises: NotSaved: the folder cannot be written to, or another save is writing to it. NotAnArray, DTypeMismatch: a
    leaf cannot be saved. ProcessesDiffer: the trees of the processes differ.
    """
    save_async(path, tree).result()


def save_async(path: str | os.PathLike[str], tree: Any) -> Future[None]:
    """``save`` in a thread: it returns when the values are copied, so that arrays may be changed or donated.

    ``save_async(path, tree).result()`` waits until the tree is whole on the disk, in all processes, and raises what
    went wrong since. Python does not end before that.
    """
    return start_saving(Path(os.path.abspath(path)), tree)


def start_saving(
    folder: Path, tree: Any, notes: Mapping[str, Any] | None = None, then: Callable[[], None] = lambda: None
) -> Future[None]:
    """``save_async`` with notes in the table of contents; process 0 calls ``then`` when the tree is whole."""
    optional_module("tensorstore", "save")
    values = [(keystr(path), x) for path, x in pytrees.leaves_with_path(tree)]
    values = [(path, known(path, x)) for path, x in values]
    leaves = tuple([described(number, path, x) for number, (path, x) in enumerate(values)])
    pieces = [(leaf, own_pieces(number, x)) for number, (leaf, (_, x)) in enumerate(zip(leaves, values)) if leaf.name]
    if connection() is not None:
        facts = [agreed_fact(leaf, x) for leaf, (_, x) in zip(leaves, values)]
        check_same(facts, "save: every process must save the same")
    lock = FolderLock(folder)
    try:
        contents = Contents(_begun(lock), outline_of(tree), leaves, notes or {})
        thread = ThreadPoolExecutor(1, "handlax save")
        saved = thread.submit(_write, lock, contents, pieces, then, f"at {Site(*user_site(1))}")
    except BaseException:
        lock.release()
        raise
    thread.shutdown(wait=False)
    return saved


class FolderLock:
    """The right to write to a folder, which one process has at a time, until it releases it or ends."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._number: int | None = None

    @property
    def is_held(self) -> bool:
        return self._number is not None

    def acquire(self) -> None:
        """Lock the checkpoint's folder, so that no other save writes there; it does not wait for one.

        Raises: NotSaved: another save has locked it.
        """
        self._number = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        with suppress(BlockingIOError):
            fcntl.flock(self._number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(self._number).st_nlink:  # or the folder has been removed meanwhile
                return
        self.release()
        raise NotSaved(
            f"save: one save at a time may write to {self.folder}, got another one that goes on.",
            hint="wait for its result(), or save in another folder.",
        )

    def release(self) -> None:
        """Does nothing if it is not held."""
        number, self._number = self._number, None
        if number is not None:
            fcntl.flock(number, fcntl.LOCK_UN)  # which forked children have open, too
            os.close(number)


def _begun(lock: FolderLock) -> str:
    """The name of a new folder for the arrays, which all processes get; process 0 locks the folder that it is in.

    Raises: NotSaved, in every process: it cannot be made, or another save is writing there.
    """
    joined = connection()
    said: dict[str, Any] = {}
    if joined is None:
        return _locked(lock)
    if joined.index == 0:
        try:
            said["data"] = _locked(lock)
        except NotSaved as error:
            said = {"what": error.what, "hint": error.hint}
    said = json.loads(said_by_all(json.dumps(said))[0])
    if "what" in said:
        raise NotSaved(said["what"], hint=said["hint"])
    return str(said["data"])


def _locked(lock: FolderLock) -> str:
    folder, data = lock.folder, f"{_DATA}{uuid.uuid4().hex[:8]}"
    with _refusals(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
        if (folder / TABLE).exists() and '"handlax"' not in (folder / TABLE).read_text():
            raise NotSaved(f"save: {folder} must be new or of a saved tree, got another group of Zarr's.")
        remove_unnamed(folder)
        (folder / data).mkdir()
    return data


@contextmanager
def _refusals(folder: Path) -> Iterator[None]:
    """A block whose failures to write are NotSaved."""
    try:
        yield
    except NotSaved:
        raise
    except OSError as error:
        raise NotSaved(f"save: files must be written to {folder}, got {error.strerror or error}.") from error


def remove_unnamed(folder: Path) -> None:
    """Remove the arrays that the table of contents does not name: they were replaced, or their save failed."""
    named = None
    if (folder / TABLE).exists():
        try:
            named = read_contents("save", folder).data
        except BadCheckpoint:
            return  # a damaged one: what it named is kept until another one is there
    for entry in folder.glob(f"{_DATA}*"):
        if entry.name != named:
            shutil.rmtree(entry, ignore_errors=True)  # what remains is removed by the next save


def _write(
    lock: FolderLock, contents: Contents, pieces: Sequence[tuple[StoredLeaf, Sequence[Piece]]],
    then: Callable[[], None], where: str,
) -> None:
    """Write the arrays, wait for the other processes, and write the table of contents; raises at ``where``."""
    folder, data, is_first = lock.folder, lock.folder / contents.data, lock.is_held

    def arrays() -> None:
        if not data.is_dir():
            raise NotSaved(f"save: all processes must have one folder, got none at {data}.", hint="a shared disk.")
        write_arrays(data, pieces, create=is_first)

    def table() -> None:
        if is_first:
            with _refusals(folder):
                sync_folder(data)
                commit(folder, contents)

    try:
        together(f"{contents.data}/arrays", arrays)
        together(f"{contents.data}/table", table)
        if is_first:
            then()
    except HandlaxError as error:
        error.moved(where)
        raise
    finally:
        if is_first:
            remove_unnamed(folder)
            lock.release()
