"""The coordinator gathers the processes of a program, whoever else visits it."""

import socket
import threading
from contextlib import ExitStack, suppress

import pytest

from handlax.lowering.clients import coordinator


@pytest.fixture
def meeting():
    """``gather``, and a function that visits: it connects and says some words."""
    with ExitStack() as stack:
        listener = coordinator.listen("127.0.0.1:0")
        address = listener.getsockname()
        stack.callback(listener.close)

        def visit(words):
            visitor = stack.enter_context(socket.create_connection(address))
            visitor.sendall(words)
            return visitor

        def gather(processes, timeout):
            found = coordinator.gather(listener, processes, timeout)
            for connection in found.values():
                stack.enter_context(connection)
            return found

        yield gather, visit


@pytest.mark.parametrize("stranger", [b"77\n", b"-1\n", b"GET / HTTP/1.1\r\n", b"\n", b"1" * 100, b"\xff\n", b"2\n"])
def test_a_visitor_that_is_none_of_the_processes_is_sent_away(meeting, stranger):
    gather, visit = meeting
    first, other = visit(b"0\n"), visit(stranger)
    threading.Timer(0.1, visit, (b"1\n",)).start()
    found = gather(2, 60.0)
    assert sorted(found) == [0, 1] and found[0].getpeername() == first.getsockname()
    other.settimeout(60)
    with suppress(ConnectionResetError):  # it was closed before all was read
        assert other.recv(1) == b""


def test_a_visitor_that_says_little_at_a_time_holds_up_no_other(meeting):
    gather, visit = meeting
    slow = visit(b"")
    threading.Timer(0.1, visit, (b"1\n",)).start()
    threading.Timer(0.2, slow.sendall, (b"0",)).start()
    threading.Timer(0.3, slow.sendall, (b"\n",)).start()
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
    visit(b"1\n")
    assert [*gather(2, 0.2)] == [1]
    ended.set()
    thread.join(60)


def test_one_that_has_left_is_waited_for_until_it_comes_again(meeting):
    gather, visit = meeting
    visit(b"0\n").close()
    visit(b"1\n")
    assert [*gather(2, 0.5)] == [1]


def test_the_latest_connection_of_a_process_is_taken(meeting):
    gather, visit = meeting
    first = visit(b"0\n")
    again = visit(b"0\n")
    threading.Timer(0.1, first.close).start()
    threading.Timer(0.2, visit, (b"1\n",)).start()
    assert gather(2, 60.0)[0].getpeername() == again.getsockname()
