"""One process at a time has the right to write to a folder, or to a file in it."""

import subprocess

import pytest
from helpers.new_process import in_new_process

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


CHILD = """
import os, pathlib, tempfile
from handlax.checkpoints.folder_lock import FolderLock
from handlax.errors import NotSaved

def acquire():
    try:
        FolderLock(pathlib.Path(folder)).acquire()
        return "acquired"
    except NotSaved:
        return "refused"

with tempfile.TemporaryDirectory() as folder:
    ours, (from_child, to_parent), (from_parent, to_child) = FolderLock(pathlib.Path(folder)), os.pipe(), os.pipe()
    ours.acquire()
    if os.fork() == 0:
        os.write(to_parent, f"{ours.is_held} {acquire()} ".encode())
        os.read(from_parent, 1)
        os.write(to_parent, acquire().encode())
        os._exit(0)
    said = os.read(from_child, 100)
    os.close(ours._number)          # as a kill of this process does
    os.write(to_child, b"1")
    print((said + os.read(from_child, 100)).decode())
    os.wait()
"""


def test_a_forked_child_does_not_hold_what_its_parent_does():
    assert in_new_process(CHILD) == "False refused acquired"


def test_who_still_has_the_file_open_does_not_hold_what_was_released(tmp_path):
    lock = FolderLock(tmp_path)
    lock.acquire()
    program = subprocess.Popen(["sleep", "600"], pass_fds=[lock._number])  # as one between its fork and its exec has it
    try:
        lock.release()
        FolderLock(tmp_path).acquire()
    finally:
        program.kill()
        program.wait(60)
