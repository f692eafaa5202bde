"""The last steps and the best ones are kept, and a run that was killed goes on where it was."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from helpers.many_processes import in_processes
from helpers.saved_trees import same

from handlax import errors
from handlax import numpy as hnp
from handlax.checkpoints import CheckpointManager, contents, restore, save
from handlax.checkpoints.contents import TABLE
from handlax.checkpoints.folder_lock import FolderLock


def tree(step):
    return {"w": hnp.arange(3.0) + step, "step": step}


@pytest.mark.parametrize(("options", "kept"), [
    (dict(keep=None), [0, 1, 2, 3, 4, 5]),
    (dict(), [5]),
    (dict(keep=2), [4, 5]),
    (dict(keep=2, keep_best=1), [1, 4, 5]),
    (dict(keep=1, keep_best=3, mode="max"), [0, 2, 3, 5]),
    (dict(keep_best=1, metric="other"), [0, 5]),
], ids=str)
def test_the_last_and_the_best_are_kept(tmp_path, options, kept):
    losses = [3.0, 0.5, 2.0, 1.0, float("nan"), 0.75]
    with CheckpointManager(tmp_path, **options) as manager:
        for step, loss in enumerate(losses):
            manager.save(step, tree(step), loss=loss, other=step)
    assert manager.steps() == kept
    assert sorted(path.name for path in tmp_path.iterdir()) == [str(step) for step in kept]
    for step in kept:
        same(manager.restore(step=step), tree(step))
        np.testing.assert_equal(manager.metrics(step), {"loss": losses[step], "other": step})
    same(manager.restore(tree(0)), tree(5))


def test_a_run_begins_or_goes_on(tmp_path):
    with CheckpointManager(tmp_path) as manager:
        assert manager.resume(7, "initial") == (7, "initial")
        manager.save(3, tree(3))
    step, found = CheckpointManager(tmp_path).resume(0, tree(0))
    assert step == 3
    same(found, tree(3))


def test_what_killed_saves_and_removals_have_left_is_not_seen_and_is_removed(tmp_path):
    with CheckpointManager(tmp_path, keep=3) as manager:
        manager.save(0, tree(0))
        manager.save(1, tree(1))
    (tmp_path / "1" / TABLE).unlink()
    (tmp_path / "2").mkdir()
    (tmp_path / "notes").mkdir()
    lock = FolderLock(tmp_path / "2")
    lock.acquire()  # as by a save that goes on
    (tmp_path / "3").mkdir()
    (tmp_path / "3" / lock.file.name).touch()
    with CheckpointManager(tmp_path, keep=3) as manager:
        assert manager.steps() == [0]
        manager.save(4, tree(4))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "2", "4", "notes"]
    lock.release()
    with manager:
        manager.save(5, tree(5))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "4", "5", "notes"]


def test_what_no_save_has_made_is_no_step_and_stays(tmp_path):
    (tmp_path / "2023").mkdir()
    (tmp_path / "2023" / "x.csv").touch()
    (tmp_path / "2024").touch()
    save(tmp_path / "elsewhere", tree(3))
    (tmp_path / "3").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "5").mkdir()
    (tmp_path / "5" / TABLE).write_text('{"zarr_format": 3, "node_type": "group", "attributes": {}}')
    for name in ("007", "٣"):
        save(tmp_path / name, tree(7))
    with CheckpointManager(tmp_path) as manager:
        assert manager.steps() == []
        manager.save(1, tree(1))
        manager.save(2, tree(2))
    assert manager.steps() == [2]
    assert {path.name for path in tmp_path.iterdir()} == {"2", "2023", "2024", "3", "5", "007", "٣", "elsewhere"}
    assert (tmp_path / "2023" / "x.csv").exists() and (tmp_path / "5" / TABLE).exists()
    same(restore(tmp_path / "elsewhere"), tree(3))


def test_what_was_added_to_a_step_stays(tmp_path):
    with CheckpointManager(tmp_path) as manager:
        manager.save(1, tree(1))
        manager.wait()
        (tmp_path / "1" / "notes").touch()
        manager.save(2, tree(2))
    assert manager.steps() == [2]
    assert [path.name for path in (tmp_path / "1").iterdir()] == ["notes"]


@pytest.mark.parametrize("damage", [
    lambda data: b"", lambda data: data[:-5], lambda data: data.replace(b"loss", b"\xff"),
], ids=["empty", "cut", "no text"])
def test_a_damaged_table_stops_no_later_save(tmp_path, damage):
    with CheckpointManager(tmp_path, keep=1, keep_best=1) as manager:
        manager.save(1, tree(1), loss=1.0)
        manager.wait()
        table = tmp_path / "1" / TABLE
        table.write_bytes(damage(table.read_bytes()))
        with pytest.raises(errors.BadCheckpoint):
            manager.metrics(1)
        for step in (2, 3):
            manager.save(step, tree(step), loss=step)
        assert manager.steps() == [2, 3]
        same(manager.restore(), tree(3))


def damage(path):
    """Change a byte of the first array of a saved tree."""
    file = next(file for file in sorted(path.glob("data.*/**/c/*")) if file.is_file())
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)


def test_a_run_goes_on_from_the_last_step_that_is_not_damaged(tmp_path):
    with CheckpointManager(tmp_path, keep=3) as manager:
        for step in (10, 20, 30):
            manager.save(step, tree(step))
    damage(tmp_path / "30")
    (tmp_path / "20" / TABLE).write_text("{}")
    manager = CheckpointManager(tmp_path)
    with pytest.warns(UserWarning, match="is damaged") as warned:
        step, state = manager.resume(0, tree(0))
    assert step == 10
    same(state, tree(10))
    said = [str(each.message) for each in warned]
    for text, step in zip(said, (30, 20), strict=True):
        assert text.startswith(f"CheckpointManager.resume: step {step} is damaged, and step 10 is restored.")
    assert "must be as it was saved" in said[0] and TABLE in said[1]
    manager.save(11, tree(11))
    manager.wait()
    assert manager.steps() == [11]
    assert sorted(path.name[:10] for path in tmp_path.iterdir()) == ["11", "20.damaged", "30.damaged"]


def test_a_damaged_step_is_an_error_where_it_is_asked_for_or_there_is_no_other(tmp_path):
    with CheckpointManager(tmp_path, keep=2) as manager:
        for step in (1, 2):
            manager.save(step, tree(step))
    damage(tmp_path / "2")
    for act in (lambda: manager.restore(tree(0)), lambda: manager.restore(step=2)):
        with pytest.raises(errors.BadCheckpoint, match="must be as it was saved"):
            act()
    damage(tmp_path / "1")
    with pytest.raises(errors.BadCheckpoint, match="must be as it was saved"):
        manager.resume(0, tree(0))
    assert manager.steps() == [1, 2]


def unreadable(monkeypatch, folder):
    """Have the system refuse to open, or to look at, the files of a folder."""
    refuse = lambda call: lambda path, *args, **options: (
        call(path, *args, **options) if folder not in Path(path).parents
        else (_ for _ in ()).throw(PermissionError(errno.EACCES, os.strerror(errno.EACCES))))
    for name in ("read_text", "stat"):
        monkeypatch.setattr(Path, name, refuse(getattr(Path, name)))


def of_another_version(monkeypatch, folder):
    table = folder / TABLE
    table.write_text(table.read_text().replace('"format": 1', '"format": 9'))


def unreadable_chunks(monkeypatch, folder):
    unreadable(monkeypatch, next(folder.glob("data.*")))


def without_memory(monkeypatch, folder):
    monkeypatch.setattr(contents.json, "loads", lambda text: (_ for _ in ()).throw(MemoryError()))


@pytest.mark.parametrize(("hinder", "kind"), [
    (unreadable, errors.BadCheckpoint), (unreadable_chunks, errors.BadCheckpoint),
    (of_another_version, errors.BadCheckpoint), (without_memory, MemoryError),
])
def test_a_step_that_cannot_be_read_now_is_an_error_and_stays(tmp_path, monkeypatch, hinder, kind):
    with CheckpointManager(tmp_path, keep=2) as manager:
        for step in (1, 2):
            manager.save(step, tree(step))
    with monkeypatch.context() as patched:
        patched.setattr(manager, "steps", lambda: [1, 2])
        hinder(patched, tmp_path / "2")
        with pytest.raises(kind) as caught:
            manager.resume(0, tree(0))
    assert not isinstance(caught.value, errors.DamagedCheckpoint)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2"]


def test_a_damaged_step_that_cannot_be_renamed_is_said_to_be_in_the_way(tmp_path, monkeypatch):
    with CheckpointManager(tmp_path, keep=2) as manager:
        for step in (1, 2):
            manager.save(step, tree(step))
    damage(tmp_path / "2")
    monkeypatch.setattr(os, "rename", lambda *paths: (_ for _ in ()).throw(OSError(errno.EBUSY, "Busy")))
    with pytest.warns(UserWarning, match="Its folder cannot be renamed, and is in the way of later saves: Busy"):
        assert manager.resume(0, tree(0))[0] == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2"]


def test_what_is_damaged_for_one_process_and_unreadable_for_another_is_skipped_by_none(tmp_path):
    for line in in_processes("""
import os
from handlax import errors
from handlax.checkpoints import CheckpointManager, zarr_arrays
manager, me = CheckpointManager(os.environ["FOLDER"], keep=2), hx.process_index()
for step in (1, 2):
    manager.save(step, {"w": hx.numpy.arange(3.0)})
manager.wait()
zarr_arrays.StoredArray.wait = lambda self: (_ for _ in ()).throw([self._damage, self._refusal][me]("it"))
try:
    manager.resume(0, {"w": hx.numpy.arange(3.0)})
except errors.BadCheckpoint as error:
    print(type(error).__name__, manager.steps())
""", 2, FOLDER=str(tmp_path)):
        assert line == ["BadCheckpoint [1, 2]"]


def test_a_save_that_failed_is_an_error_of_the_next_call(tmp_path):
    manager = CheckpointManager(tmp_path)
    manager.save(0, tree(0))
    manager.wait()
    (tmp_path / "1").write_text("a file")
    with pytest.raises(errors.NotSaved):
        manager.save(1, tree(1))
    assert manager.steps() == [0]


@pytest.mark.parametrize(("act", "error", "message"), [
    (lambda folder: CheckpointManager(folder, keep=0), errors.BadArgument, "keep must be at least 1, got 0"),
    (lambda folder: CheckpointManager(folder, mode="least"), errors.BadArgument, "mode must be 'min' or 'max'"),
    (lambda folder: CheckpointManager(folder).save(-1, 0), errors.BadArgument, "step must be at least 0, got -1"),
    (lambda folder: CheckpointManager(folder, keep_best=1).save(1, 0), errors.BadArgument, "'loss' must be given"),
    (lambda folder: CheckpointManager(folder).restore(), errors.BadCheckpoint, "must have a whole tree, got none"),
    (lambda folder: CheckpointManager(folder).restore(step=3), errors.MissingCheckpoint, "got no folder"),
    (lambda folder: [manager.save(step, 0) for manager in [CheckpointManager(folder)] for step in (3, 2)],
     errors.BadArgument, "steps must ascend, got 2 after 3"),
], ids=["keep", "mode", "step", "metric", "nothing", "no step", "descending"])
def test_mistakes(tmp_path, act, error, message):
    with pytest.raises(error, match=message):
        act(tmp_path)
