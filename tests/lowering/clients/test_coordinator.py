"""The coordinator gathers the processes of a program, whoever else visits it."""

import socket
import threading
from contextlib import ExitStack, suppress

import pytest
from helpers.many_processes import in_processes
from helpers.other_threads import OtherThread
from helpers.stand_in_clusters import CERTIFICATE, KEY

from handlax.errors import ProcessFailure
from handlax.lowering.clients import coordinator
from handlax.lowering.clients.coordinator import Duplicate, proof_of
from handlax.lowering.clients.jaxlib_modules import HAS_MUTUAL_TLS
from handlax.lowering.clients.processes import Membership, connect

SECRET = "swordfish"


def line_of(visitor):
    visitor.settimeout(60)
    return visitor.makefile("r").readline().strip()


def hello(visitor, index, name="h:1", secret=SECRET):
    """What process ``index`` says to the coordinator, whose number it has heard."""
    return f"{index} {name} {proof_of(secret, line_of(visitor), index)}\n".encode()


@pytest.fixture
def meeting():
    """``gather``, and a function that visits: it connects and says some words, or what a process of an index says."""
    with ExitStack() as stack:
        listener = coordinator.listen("127.0.0.1:0")
        address = listener.getsockname()
        stack.callback(listener.close)

        def visit(words, **facts):
            visitor = stack.enter_context(socket.create_connection(address))
            if isinstance(words, int):
                threading.Thread(target=lambda: visitor.sendall(hello(visitor, words, **facts)), daemon=True).start()
            else:
                visitor.sendall(words)
            return visitor

        def gather(processes, timeout):
            found = coordinator.gather(listener, processes, timeout, SECRET)
            for connection in found.values():
                stack.enter_context(connection)
            return found

        yield gather, visit


@pytest.mark.parametrize("stranger", [
    b"77\n", b"-1\n", b"GET / HTTP/1.1\r\n", b"\n", b"1" * 100, b"\xff\n", b"2\n", b"1 h:1 " + b"0" * 64 + b"\n",
    b"1 " + b"x" * 1000,
])
def test_a_visitor_that_is_none_of_the_processes_is_sent_away(meeting, stranger):
    gather, visit = meeting
    first, other = visit(0), visit(stranger)
    threading.Timer(0.1, visit, (1,)).start()
    found = gather(2, 60.0)
    assert sorted(found) == [0, 1] and found[0].getpeername() == first.getsockname()
    with suppress(ConnectionResetError):  # it was closed before all was read
        assert line_of(other) and other.recv(1) == b""


@pytest.mark.parametrize("index", [0, 1])
def test_a_process_says_its_line_and_no_more(index):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        visitor = coordinator.Visitor(ours)
        theirs.sendall(hello(theirs, index))
        assert visitor.hears(SECRET, 2) and visitor.index == index
        theirs.sendall(b"more")
        assert not visitor.hears(SECRET, 2)


def test_numbers_of_processes_are_below_their_count():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        visitor = coordinator.Visitor(ours)
        theirs.sendall(hello(theirs, 2))
        assert not visitor.hears(SECRET, 2) and visitor.index == -1


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="the system has one version of addresses")
def test_who_listens_everywhere_is_reached_by_addresses_of_both_versions():
    with coordinator.listen("[::]:0") as listener:
        for host in ("127.0.0.1", "::1"):
            with socket.create_connection((host, listener.getsockname()[1]), timeout=60), listener.accept()[0]:
                pass


def test_nobody_has_come_before_the_first_moment(meeting):
    gather, visit = meeting
    visit(b"")
    assert gather(1, 0.0) == {}


def test_a_port_is_connected_while_a_connection_to_it_is_open():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert not coordinator.is_connected(port)
        with socket.create_connection(("127.0.0.1", port)), listener.accept()[0]:
            assert coordinator.is_connected(port)
        assert not coordinator.is_connected(port)


def test_after_shutdown_the_coordinator_ends_and_is_reaped_though_another_holds_its_input():
    assert in_processes("""
import os, time
from handlax.lowering.clients.processes import connection
joined = connection()
held = os.dup(joined.coordinator.stdin.fileno())  # as a forked child has it
hx.distributed.shutdown()
until = time.monotonic() + 50
try:
    while time.monotonic() < until:
        os.kill(joined.coordinator.pid, 0)  # one that has ended and is not reaped is found, too
        time.sleep(0.1)
except ProcessLookupError:
    print("it is gone")
""", 1) == [["it is gone"]]


@pytest.mark.parametrize("facts", [{"secret": ""}, {"secret": "shark"}])
def test_who_does_not_know_the_secret_is_sent_away_and_takes_no_number(meeting, facts):
    gather, visit = meeting
    visit(1, **facts)
    right = visit(1)
    threading.Timer(0.1, visit, (0,)).start()
    assert gather(2, 60.0)[1].getpeername() == right.getsockname()


def test_what_another_process_has_said_is_no_proof(meeting):
    gather, visit = meeting
    spy = visit(b"")
    threading.Thread(target=lambda: visit(hello(spy, 1)), daemon=True).start()
    visit(0)
    assert [*gather(2, 0.5)] == [0]


def test_two_processes_of_one_number_are_both_named_to_both(meeting):
    gather, visit = meeting
    first, second = visit(1, name="a:17"), visit(0)
    threading.Timer(0.2, lambda: visits.append(visit(1, name="b:4"))).start()
    visits = []
    with pytest.raises(Duplicate):
        gather(3, 60.0)
    for visitor in (first, second, *visits):
        assert visitor.makefile("r").readlines()[-1] == "duplicate 1 a:17 b:4\n"


def test_a_process_whose_number_another_one_has_names_both(meeting):
    gather, visit = meeting
    address = f"127.0.0.1:{visit(1, name='a:17').getpeername()[1]}"
    gathering = OtherThread(gather, 2, 60.0)
    with pytest.raises(ProcessFailure, match=r"process 1 is there twice, .*a:17"):
        connect(Membership(address, 2, 1, address, start_timeout=60, secret=SECRET))
    with pytest.raises(Duplicate):
        gathering.result()


def test_many_silent_visitors_hold_up_no_process(meeting, monkeypatch):
    monkeypatch.setattr(coordinator, "_MOST", 8)
    gather, visit = meeting
    silent = [visit(b"") for _ in range(20)]
    threading.Timer(0.2, visit, (0,)).start()
    threading.Timer(0.3, visit, (1,)).start()
    assert sorted(gather(2, 60.0)) == [0, 1]
    assert silent[0].makefile("r").read().count("\n") == 1  # its end


def test_a_visitor_that_says_little_at_a_time_holds_up_no_other(meeting):
    gather, visit = meeting
    slow = visit(b"")
    words = threading.Thread(target=lambda: [slow.sendall(bytes([byte])) for byte in hello(slow, 0)])
    threading.Timer(0.1, visit, (1,)).start()
    threading.Timer(0.2, words.start).start()
    assert sorted(gather(2, 60.0)) == [0, 1]


def test_the_timeout_is_that_of_all_whatever_visitors_say(meeting):
    gather, visit = meeting
    dripping, ended = visit(b"0"), threading.Event()

    def drip():
        while not ended.wait(0.05):
            try:
                dripping.sendall(b"0")
            except OSError:
                break

    thread = threading.Thread(target=drip)
    thread.start()
    visit(1)
    assert [*gather(2, 0.4)] == [1]
    ended.set()
    thread.join(60)


def test_one_that_has_left_is_waited_for_until_it_comes_again(meeting):
    gather, visit = meeting
    gone = visit(0)
    threading.Timer(0.2, gone.close).start()
    visit(1)
    assert [*gather(3, 0.6)] == [1]


def test_the_latest_connection_of_a_process_is_taken(meeting):
    gather, visit = meeting
    first, seen = visit(0), threading.Event()
    visits = []

    def again():
        visits.append(visit(0))
        threading.Timer(0.1, first.close).start()
        threading.Timer(0.3, visit, (1,)).start()
        seen.set()

    threading.Timer(0.2, again).start()
    found = gather(2, 60.0)
    assert seen.is_set() and found[0].getpeername() == visits[0].getsockname()


UNDER_TLS = """
import os, socket, ssl
import handlax as hx
folder = os.environ["FOLDER"]
hx.distributed.initialize(initialization_timeout=60, mtls_cert_file=f"{folder}/cert", mtls_key_file=f"{folder}/key",
                          mtls_ca_file=f"{folder}/cert")
from handlax.experimental import multihost_utils as mh
PREFACE = b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])

def answers(named):
    port = int(os.environ["HANDLAX_LAUNCH_ADDRESS"].partition(":")[2])
    with socket.create_connection(("127.0.0.1", port), 60) as plain:
        line = plain
        if named is not None:
            context = ssl.create_default_context(cafile=f"{folder}/cert")
            context.set_alpn_protocols(["h2"])
            if named:
                context.load_cert_chain(f"{folder}/cert", f"{folder}/key")
            line = context.wrap_socket(plain, server_hostname="localhost")
        try:
            line.sendall(PREFACE)
            return len(line.recv(100)) > 0
        except OSError:
            return False

found = [answers(named) for named in (True, False, None)]
print(found, mh.process_allgather(hx.process_index()).tolist(), file=sys.stderr)
"""


@pytest.mark.skipif(not HAS_MUTUAL_TLS, reason="jaxlib 0.11.2 or later")
def test_under_mutual_tls_the_port_answers_those_who_show_a_certificate(tmp_path):
    (tmp_path / "cert").write_text(CERTIFICATE)
    (tmp_path / "key").write_text(KEY)
    lines = in_processes(UNDER_TLS, 2, prefix="import sys\n", FOLDER=str(tmp_path))
    assert lines == [["[True, False, False] [0, 1]"]] * 2
