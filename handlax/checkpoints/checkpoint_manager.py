"""``CheckpointManager``: the saved trees of a run, by step."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from concurrent.futures import Future
from contextlib import suppress
from math import nan
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..effects.base.errors import BadArgument, BadCheckpoint, DamagedCheckpoint, NotSaved, need_count, need_one_of
from ..effects.base.source_locations import warn_user
from ..lowering.clients.agreement import said_by_all
from ..lowering.clients.processes import connection
from .contents import TABLE, data_in, is_saved, new_table, read_contents
from .folder_lock import FolderLock, place_of
from .restoring import restore
from .saving import start_saving

_STEP = re.compile("0|[1-9][0-9]*")


class CheckpointManager:
    """The trees that a run saves in a folder, ``folder/step`` for each step: the last ones, and the best ones.

        step, state = manager.resume(0, initial)        the last one that is whole, or the initial one
        manager.save(step, state, loss=0.3)             in a thread: it goes on while the next step is computed

    A run that is killed at any moment and started again computes what it would have computed, where its state has all
    that a step depends on. What killed saves have left is removed by the next one.

    Args:
        keep: how many of the last steps are kept; None: all.
        keep_best: how many of the best steps are kept beside them, by ``metric``, the name of a number that is passed
            to ``save``.
        mode: whether the best are those with the least number, ``"min"``, or with the greatest, ``"max"``.

    Every process calls its methods. As a context, ``with CheckpointManager(folder) as manager``, it waits at the end.
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, keep: int | None = 1, keep_best: int = 0, metric: str = "loss",
        mode: str = "min",
    ):
        need_one_of("CheckpointManager: mode", mode, ("min", "max"))
        self.folder = place_of("CheckpointManager", folder)
        self.keep = None if keep is None else need_count("CheckpointManager: keep", keep, 1)
        self.keep_best = need_count("CheckpointManager: keep_best", keep_best)
        self.metric, self.mode = metric, mode
        self._saving: Future[None] | None = None
        self._last = max(self.steps(), default=-1)

    def save(self, step: int, tree: Any, **metrics: float) -> None:
        """Begin to save a tree as that of a step, with numbers by which steps are compared, when the save before has
        ended; what went wrong in that is raised.

        Raises: NotSaved: the save before failed, or the folder cannot be written to. And as ``checkpoints.save``.
        """
        if need_count("CheckpointManager.save: step", step) < self._last:
            raise BadArgument(f"CheckpointManager.save: steps must ascend, got {step} after {self._last}.",
                              hint="a run that goes on from an earlier step has a folder of its own.")
        numbers = {name: float(number) for name, number in metrics.items()}
        if self.keep_best and self.metric not in numbers:
            raise BadArgument(f"CheckpointManager.save: the number {self.metric!r} must be given, got {[*numbers]}.",
                              hint=f"manager.save(step, tree, {self.metric}=...).")
        self.wait()
        self._saving = start_saving(self.folder / str(step), tree, numbers, self._remove_others)
        self._last = step

    def wait(self) -> None:
        """Wait for the save that goes on. Raises: NotSaved: it failed."""
        saving, self._saving = self._saving, None
        if saving is not None:
            saving.result()

    def steps(self) -> list[int]:
        """The steps whose trees are whole, in ascending order, as process 0 finds them."""
        self.wait()
        return [int(step) for step in json.loads(said_by_all(json.dumps(self._whole()))[0])]

    def metrics(self, step: int) -> dict[str, float]:
        """The numbers that were saved with a step. Raises: BadCheckpoint: it has no whole tree."""
        return dict(read_contents("CheckpointManager.metrics", self.folder / str(step)).notes)

    def restore(self, like: Any = None, *, step: int | None = None) -> Any:
        """The tree of a step, by default the last one, as ``checkpoints.restore(path, like)`` gives it.

        Raises: BadCheckpoint: the step, or any, has no whole tree. And as ``checkpoints.restore``.
        """
        steps = self.steps()
        if step is None and not steps:
            raise BadCheckpoint(f"CheckpointManager.restore: {self.folder} must have a whole tree, got none.")
        return restore(self.folder / str(steps[-1] if step is None else step), like)

    def resume(self, start: int, initial: Any) -> tuple[int, Any]:
        """The last step and its tree, which is like ``initial``; ``(start, initial)`` where no step was saved.

        Steps after it whose bytes are not as they were saved are skipped with a warning, and their folders renamed.

        Raises: DamagedCheckpoint: all steps are damaged. BadCheckpoint: one cannot be read, or is of another version;
        none is renamed. And as ``checkpoints.restore``.
        """
        damaged: list[tuple[int, DamagedCheckpoint]] = []
        for step in reversed(self.steps()):
            try:
                tree = restore(self.folder / str(step), initial)
            except DamagedCheckpoint as error:
                damaged.append((step, error))
            else:
                for skipped, why in damaged:
                    self._skip(skipped, step, why)
                self._last = step
                return step, tree
        if damaged:
            raise damaged[0][1]
        return start, initial

    def _skip(self, step: int, instead: int, error: DamagedCheckpoint) -> None:
        """Rename a damaged step, which would be kept in place of the steps that are saved from now on."""
        joined = connection()
        said = said_by_all(self._set_aside(step) if joined is None or joined.index == 0 else "")[0]
        warn_user(f"CheckpointManager.resume: step {step} is damaged, and step {instead} is restored. "
                  f"Its folder {said}.\n{error.what}")

    def _set_aside(self, step: int) -> str:
        """Rename the folder of a step, so that it is none; what is said of the folder."""
        try:
            aside = tempfile.mkdtemp(prefix=f"{step}.damaged.", dir=self.folder)
            try:
                os.rename(self.folder / str(step), aside)
            except OSError:
                os.rmdir(aside)
                raise
        except OSError as error:
            return f"cannot be renamed, and is in the way of later saves: {error.strerror or error}"
        return f"is now {Path(aside).name}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.wait()

    def _whole(self) -> list[int]:
        return sorted([int(path.name) for path in self._folders() if (path / TABLE).exists()])

    def _folders(self) -> list[Path]:
        """The folders of steps, whole or not, in which saves have been: not links, nor what else is there."""
        return [path for path in self.folder.glob("[0-9]*")
                if _STEP.fullmatch(path.name) and not path.is_symlink() and path.is_dir() and is_saved(path)]

    def _best(self, steps: list[int]) -> list[int]:
        """The steps from the best one on; without those that have no number, NaN, or a damaged table, and the later
        one first of two equals.
        """
        sign, found = 1 if self.mode == "min" else -1, []
        for step in steps:
            with suppress(BadCheckpoint):
                found.append((sign * self.metrics(step).get(self.metric, nan), -step))
        return [-step for number, step in sorted(found) if number == number]

    def _remove_others(self) -> None:
        """Remove the trees that are not to be kept, and what killed saves have left."""
        whole = self._whole()
        kept = {*(whole if self.keep is None else whole[-self.keep:])}
        if self.keep_best:
            kept |= {*self._best(whole)[:self.keep_best]}
        for path in self._folders():
            if int(path.name) not in kept:
                _remove(path)


def _remove(folder: Path) -> None:
    """Remove a saved tree, the table of contents first, so that a kill leaves no table of what is not whole, and the
    lock last, by which the rest is known.

    One to which another process is saving is left alone, and so is what is no save's.
    """
    lock = FolderLock(folder)
    try:
        lock.acquire()
    except NotSaved:
        return
    with suppress(OSError):  # what remains is removed by the next save
        for table in (folder / TABLE, new_table(folder)):
            table.unlink(missing_ok=True)
        for arrays in data_in(folder):
            shutil.rmtree(arrays)
        lock.remove()
        folder.rmdir()
    lock.release()
