"""A save is the old tree or the new one, whatever happens; values are those at the call."""

import errno
import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import wait

import numpy as np
import pytest
from helpers.many_processes import in_processes, launch
from helpers.new_process import in_new_process, inherited
from helpers.saved_trees import same

import handlax as hx
from handlax import errors
from handlax import numpy as hnp
from handlax.checkpoints import restore, save, save_async, saving
from handlax.checkpoints.folder_lock import FolderLock
from handlax.testing.faults import failing_files, full_disk, interrupts, kills

OLD = {"x": np.arange(4.0), "n": 1}
NEW = {"x": np.arange(4.0) + 1, "n": 2}


@pytest.fixture
def folder(tmp_path):
    """A folder with the old tree."""
    save(tmp_path / "saved", OLD)
    return tmp_path / "saved"


def files(folder):
    """The files and folders in a folder, but for the lock."""
    return sorted([path.name.partition(".")[0] for path in folder.iterdir() if path.name != "lock"])


def test_a_save_replaces_the_one_before(folder):
    save(folder, NEW)
    same(restore(folder), NEW)
    assert files(folder) == ["data", "zarr"]


def test_values_are_those_at_the_call(folder):
    x, y = np.zeros(1 << 16), hnp.ones((1 << 16,))
    double = hx.jit(lambda y: y * 2, donate_argnums=0)
    tree = {"x": x, "y": y, "list": [1]}
    saved = save_async(folder, tree)
    x += 1
    assert double(y)[0] == 2 and y.is_deleted()
    tree["list"].append(2)
    saved.result(60)
    same(restore(folder), {"x": np.zeros(1 << 16), "y": hnp.ones((1 << 16,)), "list": [1]})


def test_one_save_at_a_time_writes_to_a_folder(folder):
    lock = FolderLock(folder)
    lock.acquire()
    with pytest.raises(errors.NotSaved, match=r"one save at a time .* got another one that goes on") as caught:
        save(folder, NEW)
    assert "wait for its result()" in caught.value.hint
    lock.release()
    same(restore(folder), OLD)
    save(folder, NEW)
    same(restore(folder), NEW)


def test_while_another_process_saves_there_a_save_is_refused(folder):
    program = f"""
from handlax.checkpoints.folder_lock import FolderLock
lock = FolderLock(__import__("pathlib").Path({str(folder)!r}))
lock.acquire()
print("locked", flush=True)
input()
"""
    other = subprocess.Popen([sys.executable, "-c", program], env=inherited(), stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    assert other.stdout.readline() == "locked\n"
    with pytest.raises(errors.NotSaved):
        save(folder, NEW)
    other.kill()  # a process that ends holds no lock
    other.communicate(timeout=60)
    save(folder, NEW)


def test_a_full_disk_leaves_the_old_tree_and_no_new_files(folder):
    with full_disk(2048):
        saved = save_async(folder, {"x": np.zeros(10_000)})
        with pytest.raises(errors.NotSaved, match=r"^save: the leaf at \['x'\] must be written, got .*File too large"):
            saved.result(60)
        assert "test_saving.py" in str(saved.exception())
    same(restore(folder), OLD)
    assert files(folder) == ["data", "zarr"]
    save(folder, NEW)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS])
def test_any_file_that_cannot_be_written_leaves_the_old_tree_or_the_new_one(folder, error):
    for fault in failing_files(lambda: save(folder, NEW), folder, error):
        assert fault.left is None or isinstance(fault.left, errors.NotSaved)
        assert restore(folder)["n"] in (OLD["n"], NEW["n"])
    same(restore(folder), NEW)
    assert files(folder) == ["data", "zarr"]


def test_places_that_cannot_be_written_to_are_errors(folder, tmp_path):
    (tmp_path / "file").write_text("")
    for place, found in ((tmp_path / "file", "File exists"), (tmp_path / "file" / "below", "Not a directory"),
                         ("/proc/nothing", "No such file or directory")):
        with pytest.raises(errors.NotSaved, match=f"^save: files must be written to {place}, got {found}"):
            save(place, NEW)
    (tmp_path / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group", "attributes": {}}')
    with pytest.raises(errors.NotSaved, match="must be new or of a saved tree, got another group of Zarr's"):
        save(tmp_path, NEW)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_an_error(folder):
    folder.chmod(0o500)
    try:
        with pytest.raises(errors.NotSaved, match="got Permission denied"):
            save(folder, NEW)
    finally:
        folder.chmod(0o700)
    same(restore(folder), OLD)


@pytest.mark.parametrize(("leaf", "error", "message"), [
    (object(), errors.NotAnArray, r"tree\['a'\] must be a number or an array, got object"),
    (np.array(["x"]), errors.DTypeMismatch, r"the leaf at \['a'\]: .* got dtype <U1"),
    (np.ma.masked_array([1], [True]), errors.BadArgument, "every element must have a value"),
], ids=["an object", "texts", "masked"])
def test_a_leaf_that_cannot_be_saved_is_an_error_and_changes_nothing(folder, leaf, error, message):
    with pytest.raises(error, match=message):
        save(folder, {"a": leaf})
    same(restore(folder), OLD)


def test_a_value_that_is_only_traced_is_an_error(folder):
    with pytest.raises(errors.TracerArrayConversionError):
        hx.jit(lambda x: save(folder, x))(1.0)


def test_an_interrupt_leaves_a_folder_that_can_be_saved_in(folder):
    def saved():
        save_async(folder, NEW).result(60)

    for _ in interrupts(saved, at="calls", every=60):
        for _ in range(600):  # a thread that has begun goes on
            try:
                lock = FolderLock(folder)
                lock.acquire()
                break
            except errors.NotSaved:
                time.sleep(0.1)
        lock.release()
        same(restore(folder), OLD) if restore(folder)["n"] == 1 else same(restore(folder), NEW)


@pytest.mark.parametrize("place", ["folder", "file.safetensors"])
def test_an_interrupted_call_leaves_the_lock_to_the_thread_that_writes(tmp_path, monkeypatch, place):
    """An interrupt that comes when the thread has just begun."""
    place, writes, goes_on = tmp_path / place, threading.Event(), threading.Event()
    target = saving.FileTarget if place.suffix else saving.FolderTarget
    begin, start = target.begin, threading.Thread.start

    def slow(self):
        begin(self)
        writes.set()
        assert goes_on.wait(60)

    def interrupted(self):
        start(self)
        assert writes.wait(60)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(target, "begin", slow)
        patched.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            save_async(place, {"x": np.zeros(3)})
    thread, = [thread for thread in threading.enumerate() if thread.name == "handlax save"]
    with pytest.raises(errors.NotSaved, match="another one that goes on"):
        save(place, {"x": np.ones(3)})
    goes_on.set()
    thread.join(60)
    assert restore(place)["x"].tolist() == [0, 0, 0]
    save(place, {"x": np.ones(3)})


def test_what_no_save_has_made_stays(tmp_path):
    for name in ("data.train", "data.01234567"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.csv").touch()
    save(tmp_path, OLD)
    save(tmp_path, NEW)
    assert (tmp_path / "data.train" / "x.csv").exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "zarr.json").write_text("{}")
    for _ in range(2):  # what was refused has left nothing
        with pytest.raises(errors.NotSaved, match="another group of Zarr's"):
            save(tmp_path / "other", OLD)
    (tmp_path / "new" / "data.01234567").mkdir(parents=True)
    save(tmp_path / "new", OLD)
    assert (tmp_path / "new" / "data.01234567").exists()


@pytest.mark.parametrize("damage", [b"", b"\xff", b"{}"])
def test_a_damaged_table_is_replaced(folder, damage):
    (folder / "zarr.json").write_bytes(damage)
    save(folder, NEW)
    same(restore(folder), NEW)
    assert files(folder) == ["data", "zarr"]


def result_of(saved):
    with pytest.raises(errors.NotSaved):
        saved.result(60)


@pytest.mark.parametrize(("ask", "count"), [
    (lambda saved: None, 1), (lambda saved: saved.exception(60), 0), (result_of, 0),
], ids=["nobody", "exception", "result"])
def test_a_failure_for_which_nobody_asks_is_a_warning(folder, ask, count):
    with full_disk(2048):
        saved = save_async(folder, {"x": np.zeros(10_000)})
        wait([saved], 60)
    ask(saved)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        del saved
        gc.collect()
    assert len(told) == count
    for each in told:
        assert "nobody has asked for the result().\nNotSaved: save: the leaf at ['x'] must be" in str(each.message)


def test_a_failure_for_which_nobody_asks_is_told_when_python_ends(tmp_path):
    program = f"""
import numpy as np
from handlax.checkpoints import save_async
from handlax.testing.faults import full_disk
with full_disk(2048):
    saved = save_async({str(tmp_path)!r}, np.zeros(10_000))
    while not saved.done():
        pass
"""
    done = subprocess.run([sys.executable, "-c", program], env=inherited(), timeout=120, check=True,
                          capture_output=True, text=True)
    assert "UserWarning: save_async: a tree was not saved" in done.stderr and "at <string>:6" in done.stderr


SAVING = """
import handlax as hx, numpy as np
from handlax import checkpoints
checkpoints.save({folder!r}, {{"x": np.arange(4.0) + 1, "n": 2}})
"""


def test_a_kill_before_any_change_leaves_the_old_tree_or_the_new_one(folder):
    for _ in kills(SAVING.format(folder=str(folder)), folder):
        found = restore(folder)
        same(found, OLD if found["n"] == 1 else NEW)
    same(restore(folder), NEW)
    assert files(folder) == ["data", "zarr"]


@pytest.mark.parametrize("count", [3, pytest.param(100, marks=pytest.mark.sweep)])
def test_kills_at_random_moments_leave_a_tree_that_was_saved(folder, count):
    """Process after process saves trees of which all arrays are the same; each is killed at some moment."""
    program = f"""
import itertools, numpy as np
from handlax import checkpoints
from handlax import numpy as hnp
print("begun", flush=True)
for i in itertools.count(int(checkpoints.restore({str(folder)!r})[0][0]) + 1):
    checkpoints.save({str(folder)!r}, [np.full(1000, i)] * 3 + [hnp.full((5, 7), i)])
"""
    save(folder, [np.zeros(1, int)] * 4)
    moments, before = random.Random(7), 0
    for _ in range(count):
        process = subprocess.Popen([sys.executable, "-c", program], env=inherited(), stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        time.sleep(moments.uniform(0, 2))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        numbers = {int(n) for x in restore(folder) for n in np.unique(x)}
        assert len(numbers) == 1 and before <= min(numbers)
        before = min(numbers)
    save(folder, NEW)
    assert files(folder) == ["data", "zarr"]


def test_a_process_ends_when_what_it_saves_is_whole(tmp_path):
    program = SAVING.replace("checkpoints.save(", "checkpoints.save_async(").format(folder=str(tmp_path))
    assert subprocess.run([sys.executable, "-c", program], env=inherited(), timeout=120, check=False).returncode == 0
    same(restore(tmp_path), NEW)


MANY = """
import os
import numpy as np
from handlax import NamedSharding, P, random, checkpoints, numpy as hnp
folder, me, count = os.environ["FOLDER"], hx.process_index(), hx.process_count()

def told(f):
    try:
        return f()
    except hx.errors.HandlaxError as error:
        return f"{type(error).__name__} {error.what}"

def tree(rows, start=0):
    mesh = hx.make_mesh((rows, 4 // rows), ("a", "b"))
    x = np.arange(64, dtype=np.float32).reshape(8, 8) + start
    put = lambda x, *spec: hx.device_put(x, NamedSharding(mesh, P(*spec)))
    keys = put(random.split(random.key(0), 4), "b")
    return {"both": put(x, "a", "b"), "row": put(x, None, "a"), "whole": put(x), "keys": keys,
            "own": hnp.arange(3.0) + start, "host": np.arange(3) + start, "n": 7 + start, "text": "a"}

def same(found, wanted):
    data = lambda x: random.key_data(x) if "key" in str(x.dtype) else x
    parts = lambda x: [data(shard.data) for shard in x.addressable_shards] if isinstance(x, hx.Array) else [x]
    return all(type(x) is type(y) and all((np.asarray(p) == np.asarray(q)).all() for p, q in zip(parts(x), parts(y)))
               for x, y in zip(hx.tree.leaves(found), hx.tree.leaves(wanted), strict=True))
"""


@pytest.mark.parametrize("counts", [(2, 1), pytest.param((4, 2, 1), marks=pytest.mark.sweep)])
def test_what_so_many_processes_save_others_restore(tmp_path, counts):
    """Over four devices of so many processes."""
    save_it = MANY + """
checkpoints.save(f"{folder}/{count}", tree(2))
with checkpoints.CheckpointManager(f"{folder}/steps {count}", keep=2) as manager:
    for step in range(3):
        manager.save(step, {"x": tree(2, step)["both"]}, loss=step)
step, found = manager.resume(0, {"x": tree(2)["row"]})
assert manager.steps() == [1, 2] and step == 2 and same(found, {"x": tree(2, 2)["row"]})
"""
    restore_it = MANY + """
for saved in os.environ["COUNTS"].split():
    print(all(same(checkpoints.restore(f"{folder}/{saved}", tree(rows, 1)), tree(rows)) for rows in (4, 2, 1)))
"""
    for count in counts:
        in_processes(save_it, count, 4 // count, FOLDER=str(tmp_path))
    options = {"FOLDER": str(tmp_path), "COUNTS": " ".join(map(str, counts))}
    for count in counts:
        assert in_processes(restore_it, count, 4 // count, **options) == [["True"] * len(counts)] * count


def test_mistakes_of_one_process_are_errors_of_all(tmp_path):
    program = MANY + """
print(told(lambda: checkpoints.save(folder, [1, 2 + me])))
print(told(lambda: checkpoints.save(folder, {"x": np.arange(2) + me})))
print(told(lambda: checkpoints.save("/proc/nothing", [1])))
here = folder + "/" + ["here", "there"][me]
print(told(lambda: checkpoints.save(here, tree(2))))
checkpoints.save(folder, {"x": 3})
print(told(lambda: checkpoints.restore([folder, here][me])))
print(told(lambda: checkpoints.restore(here)))
print(told(lambda: checkpoints.restore(folder)))
"""
    lines = in_processes(program, 2, 2, FOLDER=str(tmp_path))
    assert lines[1][2].removesuffix(", in process 0.") + "." == lines[0][2]
    assert lines[0][:2] == lines[1][:2] and lines[0][:3] == [
        "ProcessesDiffer save: every process must save the same, got 3 in process 1 where the first has 2, at [1].",
        "ProcessesDiffer save: every process must save the same, got array([1, 2]) in process 1 where the first has "
        "array([0, 1]), at ['x'].",
        "NotSaved save: files must be written to /proc/nothing, got No such file or directory.",
    ]
    for number in (0, 1):
        assert lines[number][3].startswith("NotSaved save: all processes must have one folder, got none at ")
        assert lines[number][4].startswith("ProcessesDiffer restore: every process must find the same tree")
        kind = ("BadCheckpoint", "MissingCheckpoint")[number]  # process 0 has made the folder of its lock
        assert lines[number][5].startswith(f"{kind} restore:") and lines[number][6] == "{'x': 3}"


def test_what_one_process_cannot_save_or_read_is_an_error_of_all(tmp_path):
    program = MANY + """
own = hnp.arange(3.0)
if me == 1:
    own.delete()
print(told(lambda: checkpoints.save(folder, {"x": tree(2)["row"], "own": own})))
print(told(lambda: checkpoints.save(folder, {"x": object() if me else 1})))
x = tree(4)["both"]
checkpoints.save(folder, {"x": x})
if me == 0:
    chunk = sorted(__import__("pathlib").Path(folder).glob("data.*/*/c/*/*"))[-1]
    data = chunk.read_bytes()
    chunk.write_bytes(bytes([data[0] ^ 1]) + data[1:])
hx.experimental.multihost_utils.sync_global_devices("damaged")
print(told(lambda: checkpoints.restore(folder, {"x": x})))
checkpoints.save(folder, {"x": x})
print(same(checkpoints.restore(folder, {"x": x}), {"x": x}))
"""
    first, second = in_processes(program, 2, 2, FOLDER=str(tmp_path))
    assert "delete" in second[0] and first[0].startswith("NotSaved ") and first[0].endswith(", in process 1.")
    assert second[1].startswith("NotAnArray ") and first[1].startswith("NotSaved ")
    assert second[2].startswith("DamagedCheckpoint restore: the leaf at ['x'] must be as it was saved, got ")
    assert first[2].startswith("DamagedCheckpoint restore: the leaf at ['x']") and first[2].endswith(", in process 1.")
    assert first[3:] == second[3:] == ["True"]


def test_a_process_that_dies_while_all_save_leaves_the_old_tree(tmp_path):
    program = MANY + """
from handlax.checkpoints import saving
checkpoints.save(folder, {"x": tree(2)["row"], "n": 1})
if me == 1:
    saving.write_arrays = lambda *arguments, **options: os._exit(3)
print(told(lambda: checkpoints.save(folder, {"x": tree(2, 5)["row"], "n": 2})))
"""
    done = launch(program, 2, 2, FOLDER=str(tmp_path))
    assert done.status != 0
    assert restore(tmp_path)["n"] == 1
    save(tmp_path, NEW)
    assert files(tmp_path) == ["data", "zarr"]


CHILD = """
import os
from handlax.checkpoints.saving import Saved
from handlax.errors import NotSaved

ended, going_on = Saved(), Saved()
ended.become(lambda: None)
if os.fork() == 0:
    try:
        ended.result(5)
        going_on.result(5)
    except NotSaved as error:
        print(error.what, flush=True)
    os._exit(0)
os.wait()
"""


def test_a_forked_child_does_not_wait_for_the_save_of_its_parent():
    said = "save: who has begun a save must wait for it, got a child that was forked then."
    assert in_new_process(CHILD) == said
