"""Jobs of two processes, to one of which something happens in one of its phases, and the law that holds of each.

The other process ends by itself, with the error that tells what has happened; the tree that is saved is the old one or
the new one; and the job, started again, ends as one to which nothing happens.
"""

import os
import signal
import socket
import threading
import time
from contextlib import closing, suppress
from typing import NamedTuple

import numpy as np

from handlax.checkpoints import restore, save
from handlax.launch import free_port, start_process

HEARTBEAT = 4  # seconds; 2 of them without an answer and a process is dead
LIMIT = 180  # seconds in which every process must end
PHASES = ("joining", "meeting", "computing", "saving", "ending")
MOMENTS = ("before", "in", "after")

JOB = f"""
import os, signal, sys, threading, time
from contextlib import contextmanager, nullcontext
from pathlib import Path
import numpy as np
import handlax as hx
from handlax import NamedSharding, P, checkpoints, lax
from handlax.experimental import multihost_utils
from handlax.testing.faults import full_disk

me, fault, moment, at, folder = int(os.environ["HANDLAX_LAUNCH_PROCESS"]), *sys.argv[2:]
happens = me == int(sys.argv[1])

def befall():
    Path(folder, "befallen").touch()
    if fault == "slow":
        time.sleep({2 * HEARTBEAT})
    else:
        os.kill(os.getpid(), signal.SIGKILL if fault == "killed" else signal.SIGSTOP)

@contextmanager
def phase(name):
    due = happens and name == at and fault != "disk"
    if due and moment == "before":
        befall()
    if due and moment == "in":
        threading.Timer(0.03, befall).start()
    with full_disk(2048) if happens and name == at and fault == "disk" else nullcontext():
        yield
    if due and moment == "after":
        befall()

with phase("joining"):
    hx.distributed.initialize(initialization_timeout=20, heartbeat_timeout_seconds={HEARTBEAT})
with phase("meeting"):
    multihost_utils.sync_global_devices("here")
over = NamedSharding(hx.make_mesh((2,), ("i",)), P("i"))
with phase("computing"):
    x = hx.make_array_from_process_local_data(over, np.full(100_000, me + 1, np.float32))
    total = hx.jit(hx.shard_map(lambda x: lax.psum(x.sum(), "i"), mesh=over.mesh, in_specs=P("i"), out_specs=P()))
    assert float(total(x)) == 300_000
with phase("saving"):
    checkpoints.save(Path(folder, "saved"), {{"x": x, "step": 1}})
with phase("ending"):
    hx.distributed.shutdown()
"""


class Case(NamedTuple):
    """What happens to which process, when."""

    fault: str
    moment: str
    phase: str
    victim: int

    def __str__(self):
        return " ".join([f"process {self.victim}", self.fault, self.moment, self.phase])


CASES = [
    *[Case("killed", moment, phase, victim) for phase in PHASES for moment in MOMENTS for victim in (0, 1)],
    *[Case(fault, "before", phase, 1) for fault in ("stopped", "slow") for phase in PHASES],
    *[Case("disk", "in", "saving", victim) for victim in (0, 1)],
]


def start(case, folder, address, secret=""):
    words = ["9", "", "", ""] if case is None else [str(case.victim), case.fault, case.moment, case.phase]
    return [start_process(["-c", JOB, *words, str(folder)], 2, index, address, 1, secret) for index in range(2)]


def ends(started, but=None):
    """The statuses and the errors of processes, when each but that number has ended; that one is killed then."""
    try:
        errors = {index: started[index].communicate(timeout=LIMIT)[1] for index in range(2) if index != but}
        ended = time.time()
        if but is not None:
            started[but].kill()
            errors[but] = started[but].communicate(timeout=LIMIT)[1]
    finally:
        for process in started:
            process.kill()
    return [process.returncode for process in started], errors, ended


def is_whole(folder):
    """The step of the tree that is saved, all of whose arrays are of it."""
    tree = restore(folder / "saved")
    assert {*tree["x"].tolist()} == ({0.0} if tree["step"] == 0 else {1.0, 2.0})
    return tree["step"]


def seconds_until_the_others_end(case, folder):
    """Have something happen to a job, check the law, and give the seconds from then on; None: nothing happened."""
    save(folder / "saved", {"x": np.zeros(3), "step": 0})
    started = start(case, folder, f"127.0.0.1:{free_port()}")
    statuses, errors, ended = ends(started, case.victim if case.fault == "stopped" else None)
    other, befallen = 1 - case.victim, folder / "befallen"
    step = is_whole(folder)
    if case.fault == "slow":
        assert statuses == [0, 0] and step == 1, errors
    elif case.fault == "disk":
        assert statuses == [1, 1] and step == 0, errors
        assert all("NotSaved: save: the leaf at ['x'] must be written" in errors[index] for index in (0, 1)), errors
    else:
        assert befallen.exists() or case.moment == "in", errors
        assert statuses[case.victim] == -signal.SIGKILL or not befallen.exists(), errors
        if statuses[other]:
            assert statuses[other] == 1 and "ProcessFailure: " in errors[other], errors
            assert str(case.victim) in errors[other].rpartition("ProcessFailure: ")[2], errors
        else:
            assert case.phase == "ending" or (case.phase, case.moment) == ("saving", "after"), errors
    restarted = start(None, folder, f"127.0.0.1:{free_port()}")
    assert (ends(restarted)[0], is_whole(folder)) == ([0, 0], 1)
    return ended - befallen.stat().st_mtime if befallen.exists() else None


_GRPC = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def is_done_whatever_is_said_at_the_port(folder):
    """A job whose coordinator is spoken to by strangers, all the time: with random bytes, with none, and by gRPC."""
    port, over, heard = free_port(), threading.Event(), []

    def strangers():
        while not over.wait(0.02):
            for said in (os.urandom(300), b"", _GRPC + os.urandom(40), b"1 h:1 " + b"0" * 64):
                with suppress(OSError), closing(socket.create_connection(("127.0.0.1", port), 5)) as line:
                    line.sendall(said)
                    heard.append(said)

    thread = threading.Thread(target=strangers)
    thread.start()
    try:
        statuses, errors, _ = ends(start(None, folder, f"127.0.0.1:{port}"))
    finally:
        over.set()
        thread.join(60)
    assert statuses == [0, 0] and is_whole(folder) == 1, errors
    return len(heard)


def the_second_of_two_launches_is_refused(folder):
    """Two jobs at one address: the first one is done, and the second one is told that the port is in use, or that it is
    another job.
    """
    address = f"127.0.0.1:{free_port()}"
    jobs = [start(None, folder, address, secret) for secret in ("one", "two")]
    found = sorted([ends(job)[:2] for job in jobs], key=lambda pair: pair[0])
    (done, _), (failed, errors) = found
    assert (done, failed) == ([0, 0], [1, 1]) and is_whole(folder) == 1, found
    assert all("ProcessFailure: distributed.initialize: " in text for text in errors.values()), errors
