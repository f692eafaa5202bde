"""Several processes as one program: they are joined, compute the same as one, and miss each other in time."""

import json
import socket
import threading
import time
from contextlib import ExitStack, suppress
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.many_processes import await_all, in_processes, start
from helpers.other_threads import OtherThread
from helpers.runtime_in_memory import BOTH, Two

import handlax as hx
from handlax.effects.base.errors import ProcessesDiffer, ProcessFailure
from handlax.lowering.clients import processes
from handlax.lowering.clients.processes import Connection, Membership, connect, connection, failure_of_others
from handlax.lowering.xla import executables

# Every line is the same for any number of processes: eight devices together.
PROGRAM = """
import json
import numpy as np
from handlax import NamedSharding, P, lax, numpy as hnp
from handlax.experimental import multihost_utils as mh
X = np.linspace(-1, 2, 64, dtype=np.float32).reshape(8, 8)
me, count = hx.process_index(), hx.process_count()
mesh = hx.make_mesh((4, 2), ("a", "b"))
by_both, by_row = NamedSharding(mesh, P("a", "b")), NamedSharding(mesh, P(("a", "b")))

def show(name, x):
    print(name, json.dumps(np.asarray(x if x.is_fully_addressable else mh.process_allgather(x)).tolist()))

x = hx.device_put(X, by_both)
assert (len(x.addressable_shards), len(x.global_shards), len(x.devices())) == (8 // count, 8, 8)
assert x.is_fully_addressable == (count == 1) and hx.local_device_count() == 8 // count and hx.device_count() == 8
assert hx.process_indices() == [*range(count)] and [d.process_index for d in hx.local_devices()] == [me] * (8 // count)
rows = X[me * 8 // count : (me + 1) * 8 // count]
parts = [hx.device_put(X[index], device) for device, index in by_both.addressable_devices_indices_map((8, 8)).items()]
for made in (
    hx.make_array_from_callback((8, 8), by_both, lambda index: X[index]),
    hx.make_array_from_process_local_data(by_row, rows),
    hx.make_array_from_single_device_arrays((8, 8), by_both, parts),
    mh.host_local_array_to_global_array(rows, mesh, P(("a", "b"))),
    hx.device_put(x, NamedSharding(mesh, P(None, "a"))),
    hx.device_put(x, NamedSharding(hx.make_mesh((8,), ("i",)), P("i"))),
):
    assert (mh.process_allgather(made, tiled=True) == X).all()
assert (np.asarray(mh.global_array_to_host_local_array(hx.device_put(X, by_row), mesh, P(("a", "b")))) == rows).all()

whole = NamedSharding(mesh, P())
loss = lambda w, x: (hnp.tanh(x @ w) ** 2).sum()
show("eager", hnp.sin(x) + 1)
show("jit", hx.jit(lambda x: hnp.matmul(x, x.T, out_sharding=whole), in_shardings=by_both, out_shardings=whole)(x))
show("host", hx.jit(lambda x: x.sum(0), in_shardings=by_both)(X))
show("grad", hx.jit(hx.grad(loss))(hx.device_put(X, whole), x))
mapped = hx.shard_map(lambda x: lax.psum(hnp.sin(x).sum(), ("a", "b")), mesh=mesh, in_specs=P("a", "b"), out_specs=P())
show("shard_map", mapped(x))
show("shard_map_grad", hx.grad(mapped)(x))
show("ppermute", hx.shard_map(lambda x: lax.ppermute(x, "a", [(i, (i + 1) % 4) for i in range(4)]), mesh=mesh,
                              in_specs=P("a", "b"), out_specs=P("a", "b"))(x))
show("gathered", hx.shard_map(lambda x: lax.all_gather(x, "b").sum((0, 2)), mesh=mesh, in_specs=P("a", "b"),
                              out_specs=P("a"), check_vma=False)(x))
lanes = hx.pmap(lambda row: row - lax.pmean(row, "i"), axis_name="i")(rows)
assert lanes.shape == (8 // count, 8) and lanes.is_fully_addressable
show("pmap", hnp.asarray(mh.process_allgather(lanes, tiled=True)).reshape(8, 8))
show("copy", hnp.array(x, copy=True))
show("vmap", hx.vmap(lambda row: row / (row**2).sum())(x))
show("element", x[3, 4])
"""


def value(line):
    return np.array(json.loads(line.partition(" ")[2]))


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.sweep)])
def test_one_program_gives_the_same_on_one_process_and_on_several(count):
    lines: list[str] = []
    exec(PROGRAM, {"hx": hx, "print": lambda *words: lines.append(" ".join(words))})
    found = {line.split()[0]: value(line) for line in lines}
    for output in in_processes(PROGRAM, count, 8 // count):
        assert [line.split()[0] for line in output] == [*found]
        assert all(np.allclose(value(line), found[line.split()[0]], atol=1e-5) for line in output)
    x = np.linspace(-1, 2, 64, dtype=np.float32).reshape(8, 8)
    h = np.tanh(x @ x)
    expected = {"eager": np.sin(x) + 1, "jit": x @ x.T, "host": x.sum(0), "grad": x.T @ (2 * h * (1 - h**2)),
                "shard_map_grad": np.cos(x), "ppermute": np.roll(x, 2, 0),
                "pmap": x - x.mean(0), "copy": x, "vmap": x / (x**2).sum(1, keepdims=True)}
    for name, array in expected.items():
        assert np.allclose(found[name], array, atol=2e-5), name


APART = """
import numpy as np
from handlax import NamedSharding, P, lax
from handlax.experimental import multihost_utils as mh
me = hx.process_index()
sharding = NamedSharding(hx.make_mesh((2,), ("i",)), P("i"))

def told(f):
    try:
        print(f())
    except hx.errors.HandlaxError as error:
        print(type(error).__name__, str(error).splitlines()[0])

x = hx.make_array_from_process_local_data(sharding, np.array([me, me + 1.0], np.float32))
told(lambda: repr(x))
told(lambda: str(x))
told(lambda: x.tolist())
told(lambda: hx.device_put(np.arange(2.0) + me, sharding))
told(lambda: mh.assert_equal(np.arange(2) + me, "unequal"))
told(lambda: mh.assert_equal({"a": 1, "b": np.ones(2 + me)}))
told(lambda: mh.assert_equal({"a": 1, "b": np.arange(2)}))
told(lambda: mh.sync_global_devices(f"step {me}"))
told(lambda: mh.sync_global_devices("step"))
told(lambda: [x.sum().item() for x in [hx.jit(lambda x: x + me)(np.ones(2))]])      # its own program on its own device
sums = [lambda x: lax.psum(x, "i"), lambda x: lax.psum(x * 2, "i")[:1]]
over = lambda f: hx.jit(hx.shard_map(f, mesh=sharding.mesh, in_specs=P("i"), out_specs=P()))
told(lambda: over(sums[me])(x))
told(lambda: over(sums[0])(x).tolist())
told(lambda: mh.broadcast_one_to_all(np.float32(me + 5)))
told(lambda: mh.process_allgather(np.float32(me + 5)).tolist())
told(lambda: hx.jit(hx.pmap(lambda x: x))(np.ones(1) + me).tolist())
told(lambda: hx.distributed.initialize())
told(hx.distributed.is_initialized)
far = hx.sharding.SingleDeviceSharding(hx.devices()[1 - me])
told(lambda: hx.make_array_from_callback((4,), far, lambda index: 1 / 0))
keys = hx.random.split(hx.random.key(0), 4)
for there in (far, NamedSharding(sharding.mesh, P("i"))):
    told(lambda: repr(hx.make_array_from_callback((4,), there, lambda index: keys[index], keys.dtype)))
told(lambda: hx.make_array_from_callback((4,), far, lambda index: 1 / 0, dtype="int8").addressable_shards)
hx.distributed.shutdown()
told(hx.distributed.is_initialized)
"""


def test_what_processes_do_not_share_is_said():
    first, second = in_processes(APART, 2)
    part = "NotAddressable array: this process must hold all of the data, got f32[4] by P('i',) over 2 devices, "
    part += "1 of them its own."
    assert first[:3] == second[:3] == ["Array(shape=(4,), dtype=float32)", part, part]
    assert first[3].startswith("ProcessesDiffer device_put: every process must put the same array over devices of all")
    assert [lines[3].rstrip(".")[-1] for lines in (first, second)] == ["1", "0"]
    differ = ["unequal, got array([1, 2]) in process 1 where the first has array([0, 1]).",
              "assert_equal: every process must have the same, got array([1., 1., 1.]) in process 1 where the first "
              "has array([1., 1.]), at ['b']."]
    assert first[4:6] == second[4:6] == [f"ProcessesDiffer {text}" for text in differ]
    name = "sync_global_devices: every process must give the same name, got 'step 1' in process 1 where the first has"
    assert first[6:9] == second[6:9] == ["None", f"ProcessesDiffer {name} 'step 0'.", "None"]
    assert (first.pop(9), second.pop(9)) == ("[2.0]", "[4.0]")
    for number, lines in enumerate((first, second)):
        program = lines.pop(9)
        assert program.startswith("ProcessesDiffer jit__lambda: every process must launch the same programs")
        assert program.endswith(f"got jit__lambda here, and another program, jit__lambda in process {1 - number}.")
    assert first.pop(9) == second.pop(9) == "[1.0, 3.0]"
    del first[4:9], second[4:9]
    assert first[4:6] == second[4:6] == ["5.0", "[5.0, 6.0]"]
    refused = "ProcessFailure distributed.initialize: processes are joined once, and they are already."
    assert (first[6], second[6]) == ("[1.0]", "[2.0]")
    needed = "BadArgument make_array_from_callback: dtype must be given in a process that has no device of the sharding"
    elsewhere = [f"{needed}, got None.", *["Array(shape=(4,), dtype=key<fry>)"] * 2, "[]"]
    assert first[7:] == second[7:] == [refused, "True", *elsewhere, "False"]


# Processes that fail: what the others are told, and when.

MEETING = """
import os, signal, time
import numpy as np
from handlax import NamedSharding, P, lax
me, mode = hx.process_index(), sys.argv[1]
mesh = hx.make_mesh((2,), ("i",))
x = hx.make_array_from_process_local_data(NamedSharding(mesh, P("i")), np.array([me + 1.0], np.float32))
total = hx.jit(hx.shard_map(lambda x: lax.psum(x, "i"), mesh=mesh, in_specs=P("i"), out_specs=P()))
print(float(total(x)[0]))
if me == int(sys.argv[2]):
    if mode == "killed":
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
    if mode == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    if mode == "raises":
        raise ValueError("its own")
    if mode in ("ends", "alone"):
        sys.exit(0)
    if mode == "slow":
        time.sleep(3.5)
if mode == "alone":
    time.sleep(4)
    print(hx.jit(lambda x: x + 1)(2.0).item())
    sys.exit(0)
if mode == "ends" and me == 0:      # a program that was never launched
    total = hx.jit(hx.shard_map(lambda x: lax.pmax(x, "i"), mesh=mesh, in_specs=P("i"), out_specs=P()))
begin = time.monotonic()
try:
    print(float(total(x)[0]))
except hx.errors.ProcessFailure as error:
    print(time.monotonic() - begin < 20, str(error).splitlines()[0].partition(" (")[0])
"""


@pytest.mark.parametrize(("mode", "who", "expected", "heartbeat", "status"), [
    ("killed", 0, "process 0 has left.", 100, -9),
    pytest.param("killed", 1, "process 1 has left.", 100, -9, marks=pytest.mark.sweep),
    pytest.param("raises", 1, "process 1 has ended.", 100, 1, marks=pytest.mark.sweep),
    ("stopped", 1, "process 1 has left, or has not answered for 3 s.", 3, -9),
    pytest.param("ends", 0, "process 0 has ended.", 3, 0, marks=pytest.mark.sweep),      # waited for within a program
    pytest.param("ends", 1, "process 1 has ended.", 3, 0, marks=pytest.mark.sweep),      # and before one
])
def test_who_waits_for_one_that_fails_or_has_ended_is_told_and_ends(mode, who, expected, heartbeat, status):
    statuses, lines = await_all(start(MEETING, 2, mode, who, heartbeat=heartbeat), who if mode == "stopped" else None)
    other = 1 - who
    assert lines[other] == ["3.0", f"True process {other}: all 2 processes must take part, {expected}"]
    assert (statuses[other], statuses[who]) == (0, status)


def test_one_that_has_ended_and_is_not_needed_is_no_failure():
    statuses, lines = await_all(start(MEETING, 2, "alone", 1, heartbeat=2))
    assert statuses == [0, 0] and lines == [["3.0", "3.0"], ["3.0"]]


@pytest.mark.sweep
def test_who_is_slow_is_waited_for():
    statuses, lines = await_all(start(MEETING, 2, "slow", 0, heartbeat=3))
    assert statuses == [0, 0] and lines == [["3.0", "3.0"]] * 2


AFTER_A_DEATH = """
import os, signal, time
from handlax.experimental import multihost_utils as mh
from handlax.lowering.clients.processes import connection
joined = connection()
if hx.process_index() == 1:
    joined._ended = True                # it answers no more who is alive
    joined.ask()
    joined._asker.join(60)
mh.sync_global_devices("step")
joined.ask()
time.sleep(1)
if hx.process_index() == 1:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    mh.sync_global_devices("another step")
except hx.errors.ProcessFailure as error:
    print("told")
if sys.argv[1] == "shutdown":
    hx.distributed.shutdown()
    print(joined._asker.is_alive())     # in the runtime, where the end of Python aborts it
sys.exit(7)
"""


@pytest.mark.parametrize(("how", "said"), [
    ("shutdown", ["told", "False"]), pytest.param("exit", ["told"], marks=pytest.mark.sweep),
])
def test_the_end_after_a_death_waits_for_no_answer_and_has_the_status_of_the_program(how, said):
    statuses, lines = await_all(start(AFTER_A_DEATH, 2, how, heartbeat=100))
    assert (statuses, lines[0]) == ([7, -9], said)


SAVING = """
import os, signal, time
from handlax.experimental import multihost_utils as mh
for step in range(1000):
    if mh.reached_preemption_sync_point(step):
        print(step)
        break
    if step == 3 and hx.process_index() == 1:
        os.kill(os.getpid(), signal.SIGTERM)
    mh.sync_global_devices("step")
"""


def test_all_save_at_the_same_step_when_one_is_told_to_end():
    first, second = [[int(line) for line in lines if line.isdecimal()] for lines in in_processes(SAVING, 2)]
    assert first == second and first[0] > 3  # the runtime writes of the signal too


# Processes that do not do the same

DIFFERENT = """
import numpy as np
from handlax import NamedSharding, P, lax
me, mode = hx.process_index(), sys.argv[1]
mesh = hx.make_mesh((2,), ("i",))
x = hx.make_array_from_process_local_data(NamedSharding(mesh, P("i")), np.array([me + 1.0], np.float32))
over = lambda f: hx.jit(hx.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P()))
def total(x): return lax.psum(x, "i")
def twice(x): return lax.psum(2 * x, "i")
def largest(x): return lax.pmax(x, "i")
programs = [over(total), over(twice)]
print(*[float(f(x)[0]) for f in programs])
if mode == "again":                         # compiled in one process once more, not in the other
    if me:
        hx.clear_caches()
        programs[0] = over(total)
    print(float(programs[0](x)[0]))
    sys.exit()
try:
    if mode == "new" and me:                # a new program, where the other launches a known one
        programs[1] = over(largest)
    while mode != "ends":
        programs[me](x)[0].block_until_ready()
        programs[1 - me](x)[0].block_until_ready()
except hx.errors.ProcessesDiffer as error:
    print(error.what)
    sys.exit(3)
programs[me](x), programs[1 - me](x)        # known programs in different orders, then the end
"""


@pytest.mark.parametrize(("mode", "first", "second", "status"), [
    pytest.param("ends", "jit_total", "jit_twice", 1, marks=pytest.mark.sweep),
    pytest.param("known", "jit_total", "jit_twice", 3, marks=pytest.mark.sweep),
    ("new", "jit_total", "jit_largest", 3),
])
def test_the_first_launch_that_is_not_the_same_is_told_to_both(mode, first, second, status):
    statuses, lines = await_all(start(DIFFERENT, 2, mode))
    assert statuses == [status, status]
    for me, here, there in ((0, first, second), (1, second, first)):
        said = next(line for line in lines[me] if "same programs" in line)
        assert f"process {me}: every process must launch the same programs over devices of all" in said
        assert f"got as number 6 {here} at <string>:" in said
        assert f"here, and {there} at <string>:" in said and said.endswith(f"in process {1 - me}.")


def test_a_program_that_one_process_compiles_once_more_is_the_same():
    assert await_all(start(DIFFERENT, 2, "again")) == ([0, 0], [["3.0 6.0", "3.0"]] * 2)


LEFT_ALONE = """
import time
import numpy as np
from handlax import NamedSharding, P, lax
me = hx.process_index()

def total_over(devices):
    mesh = hx.sharding.Mesh(np.array(devices), ("i",))
    x = hx.make_array_from_process_local_data(NamedSharding(mesh, P("i")), np.array([me + 1.0], np.float32))
    total = hx.jit(hx.shard_map(lambda x: lax.psum(x, "i"), mesh=mesh, in_specs=P("i"), out_specs=P()))
    return lambda: float(total(x)[0])

of_three = total_over(hx.devices())
print(of_three())
if me == 2:
    sys.exit(0)
of_two = total_over(hx.devices()[:2])
for step in range(6):
    of_two()
    time.sleep(1)
print(of_two())
try:
    of_three()
except hx.errors.ProcessFailure as error:
    print("failed")
"""


@pytest.mark.sweep
def test_others_go_on_without_one_that_has_ended_and_waited_for_them_in_vain():
    statuses, lines = await_all(start(LEFT_ALONE, 3, heartbeat=3, shutdown=2))
    assert statuses == [0, 0, 0] and lines == [["6.0", "3.0", "failed"]] * 2 + [["6.0"]]


def free_address():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize(("index", "seconds", "expected"), [
    (0, 5, "process 1, 2 is missing"),  # it must reach the coordinator in this time
    (1, 1, "it cannot be reached"),
])
def test_who_is_missing_at_the_start_is_named(index, seconds, expected):
    address = free_address()
    with pytest.raises(ProcessFailure, match=f"all 3 processes must come to {address} within {seconds} s, {expected}"):
        connect(Membership(address, 3, index, address, start_timeout=seconds))
    assert connection() is None


def test_who_comes_while_others_are_about_to_end_comes_again():
    visits = []

    def runtime(listener):  # XLA's, which listens where processes have met, and speaks first
        with ExitStack() as opened, suppress(TimeoutError):
            while True:
                visits.append(opened.enter_context(listener.accept()[0]))
                visits[-1].sendall(b"\x00\x00\x18\x04\x00\xfe")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(3)
        running = OtherThread(runtime, listener)
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(ProcessFailure, match="it sends this process away"):
            connect(Membership(address, 2, 1, address, start_timeout=1))
        running.result()
    assert len(visits) > 1


def test_a_port_that_is_in_use_is_named():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(ProcessFailure, match=f"able to listen at {address}, got .*[Aa]ddress already in use"):
            connect(Membership(address, 2, 0, address, start_timeout=1))


@pytest.fixture
def coordinator(tmp_path, monkeypatch):
    """Has another program in place of the coordinator."""

    def write(program):
        path = tmp_path / "coordinator.py"
        path.write_text(program)
        monkeypatch.setattr(processes, "_COORDINATOR", path)

    return write


def test_a_coordinator_that_does_not_answer_is_ended_in_time(coordinator, monkeypatch):
    monkeypatch.setattr(processes, "_SHORTEST_START", 1)
    coordinator("import time\ntime.sleep(600)")
    address, begin = free_address(), time.monotonic()
    with pytest.raises(ProcessFailure, match=r"able to listen at .*, got no answer within 1 s"):
        connect(Membership(address, 2, 0, address, start_timeout=1))
    assert time.monotonic() - begin < 300


def test_whatever_the_coordinator_writes_does_not_stop_it(coordinator):
    coordinator("import sys\nsys.stderr.write('x' * 10**6 + '\\nthe last line\\n')")
    address = free_address()
    with pytest.raises(ProcessFailure, match=r"got the last line\.\n"):
        connect(Membership(address, 2, 0, address, start_timeout=300))


# Two processes in one

@pytest.fixture
def two():
    pair = Two()
    yield pair
    pair.close()


def test_two_meet_say_and_end_together(two):
    two(lambda each: each.meet("here", 60))
    for turn in range(3):
        said = two(lambda each: each.all_say(f"{each.index} in turn {turn}", BOTH, "words"))
        assert said == [{index: f"{index} in turn {turn}" for index in range(2)}] * 2
    assert [each.actions.shared_with(1 - each.index).count for each in two.each] == [4, 4]
    two(lambda each: each.close())
    assert two.table.left == BOTH and two.started.stdin.getvalue() == "done\n" and two.failed == [[], []]
    assert not any([each.failure or each._asker.is_alive() for each in two.each])


@pytest.mark.parametrize(("sent", "line", "rest"), [
    (b"missing 3\nmore", "missing 3", b"more"), (b"missing", "missing", b""), (b"", "", b""), (b"a\0b\n", "", b"b\n"),
])
def test_a_line_is_read_to_its_end_and_no_further(sent, line, rest):
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            theirs.sendall(sent)
        assert processes._line_of(ours) == line and ours.recv(64) == rest


def test_who_does_not_come_in_time_is_waited_for_no_longer(two):
    with pytest.raises(ProcessFailure, match="one did not come to here within 0 s"):
        two.each[0].meet("here", 0)


@pytest.mark.parametrize(("leaves", "told"), [
    (lambda table, each: each.line.shutdown(socket.SHUT_RDWR), "process 1 has left"),
    (lambda table, each: table.dead.add(1), "process 1 has left, or has not answered for 1 s"),
    (lambda table, each: each.close(wait=False), "process 1 has ended"),
], ids=["its connection", "no answer", "it ended"])
def test_who_fails_is_told_to_who_waits(two, leaves, told):
    first, second = two.each
    waiting = OtherThread(first.meet, "here", 60)
    leaves(two.table, second)
    with pytest.raises(ProcessFailure, match=f"all 2 processes must take part, {told}"):
        waiting.result()
    assert len(two.failed[0]) == 1 and told in two.failed[0][0]
    with pytest.raises(ProcessFailure, match=told):
        first.check()
    first.close()
    assert two.started.stdin.getvalue() == "left\n"  # they have not ended together


def test_who_has_ended_and_is_not_needed_is_no_failure(two):
    first, second = two.each
    ending = OtherThread(second.close)
    for each in two.each:
        each.ask()
    first.all_say("alone", frozenset([0]), "words")
    first.close()
    ending.result()
    assert two.failed == [[], []]


def test_who_ends_before_a_joint_action_is_told_by_it(two):
    first, second = two.each
    ending = OtherThread(second.close)
    with pytest.raises(ProcessFailure, match="process 1 has ended"):
        first.meet("here", 60)
    first.close()
    with pytest.raises(ProcessFailure, match="process 0 has ended"):
        ending.result()


def test_the_action_that_is_another_one_is_named_by_both(two):
    for each in two.each:
        each.take_part(BOTH, "the same")
        each.take_part(BOTH, f"that of {each.index}")
    for index, each in enumerate(two.each):
        with pytest.raises(ProcessesDiffer, match=f"got as number 2 that of {index} at .*, and that of {1 - index} at"):
            each.meet(f"of {index} alone", 60)


def test_an_error_of_the_runtime_that_another_process_has_caused_is_told_as_its_failure(two, monkeypatch):
    first, second = two.each
    error = RuntimeError("INTERNAL: Gloo: connection closed by peer")
    assert failure_of_others(error) is None  # this process is alone
    monkeypatch.setattr(processes, "_CURRENT", [first])
    monkeypatch.setattr(processes, "_SOON", 0.01)
    assert failure_of_others(RuntimeError("out of memory")) is None
    assert "one has ended or cannot be reached (INTERNAL: Gloo" in str(failure_of_others(error))
    monkeypatch.setattr(processes, "_CURRENT", [second])
    monkeypatch.setattr(processes, "_SOON", 60)
    two.table.dead.add(0)
    found = failure_of_others(error)
    assert "process 0 has left" in str(found) and found.__cause__ is error


def test_after_a_failure_nothing_is_launched(two, monkeypatch):
    first = two.each[0]
    monkeypatch.setattr(executables, "connection", lambda: first)
    program, launched = executables.Executable.__new__(executables.Executable), []
    program._joint = (BOTH, "jit_step", 1)
    launch = program._together(launched.append)
    first.note_meeting(BOTH, 1)
    launch("before")
    first._fail("process 1 has left")
    with pytest.raises(ProcessFailure, match="process 1 has left"):
        launch("after")
    assert launched == ["before"]


def test_a_launch_that_goes_on_long_after_a_failure_ends_with_its_process(two, monkeypatch):
    ended = threading.Event()
    monkeypatch.setattr(Connection, "end_process", lambda each: ended.set())
    first, second = two.each
    with second.turn(BOTH):
        second.take_part(BOTH, "what goes on")
        first.close(wait=False)
        assert ended.wait(60)
    second._asker.join(60)
    assert "process 0 has ended" in two.failed[1][0]


def test_programs_that_were_met_are_forgotten_first_ones_first(two, monkeypatch):
    monkeypatch.setattr(processes, "_MET", 3)
    first, _ = two.each
    for number in range(5):
        first.note_meeting(BOTH, number)
    assert [number for number in range(5) if first.has_met(BOTH, number)] == [2, 3, 4]
    assert not first.has_met(frozenset([0]), 4)


@pytest.mark.parametrize(("host", "listens"), [
    ("localhost", "127.0.0.1"), ("127.0.0.2", "127.0.0.2"), ("[::1]", "::1"), ("10.0.0.1", None), ("node001", None),
])
def test_collectives_listen_where_the_coordinator_is_reached(host, listens):
    told = SimpleNamespace(membership=Membership(f"{host}:1", 2, 0, ""))
    assert Connection.local_host(told) == listens


def test_what_a_client_of_gpus_is_told():
    told = lambda **facts: Connection.gpu_options(
        SimpleNamespace(index=1, count=2, membership=Membership("a:1", 2, 1, "", **facts)))
    assert told() == {"node_id": 1, "num_nodes": 2}
    assert told(partition=0, local_devices=(3, 5)) == {
        "node_id": 1, "num_nodes": 2, "partition_index": 0, "visible_devices": [3, 5]}
