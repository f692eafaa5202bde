"""One process at a time has the right to write to a folder, or to a file in it."""

import pytest

from handlax import errors
from handlax.checkpoints import CheckpointManager, restore, save
from handlax.checkpoints.folder_lock import FolderLock


@pytest.mark.parametrize("path", [b"x", "a\0b", "x\udcff", "a.__lock", "a__lock/b", 3], ids=ascii)
@pytest.mark.parametrize("act", [
    CheckpointManager, restore, lambda path: save(path, 1),
], ids=["manager", "restore", "save"])
def test_what_is_no_path_is_an_error(act, path):
    with pytest.raises(errors.BadArgument, match="a path must be a text of Unicode without NUL"):
        act(path)


def test_one_at_a_time_has_it_until_it_releases_it(tmp_path):
    one, other = FolderLock(tmp_path), FolderLock(tmp_path)
    one.acquire()
    with pytest.raises(errors.NotSaved, match=f"one save at a time may write to {tmp_path}, got another one"):
        other.acquire()
    assert (one.is_held, other.is_held) == (True, False)
    FolderLock(tmp_path, "another").acquire()
    one.release()
    one.release()
    other.acquire()


@pytest.mark.parametrize("change", [
    lambda file: file.unlink(), lambda file: file.rename(file.with_name("renamed")),
], ids=["removed", "renamed"])
def test_of_a_file_that_is_not_there_any_more_it_is_not_held(tmp_path, change):
    one, other = FolderLock(tmp_path), FolderLock(tmp_path)
    one.acquire()
    change(one.file)
    assert not one.is_held
    other.acquire()
    assert other.is_held and not one.is_held
    other.release()
    one.release()
