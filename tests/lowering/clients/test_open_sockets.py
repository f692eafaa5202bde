"""Connections are found by the ports that they lead to, and ended."""

import os
import socket

import pytest
from helpers.runtime_in_memory import Two

from handlax.lowering.clients.open_sockets import addresses_of, break_connections, listening


@pytest.fixture
def two():
    pair = Two()
    yield pair
    pair.close()


def test_who_learns_of_a_failure_breaks_the_connections_of_collectives(two):
    first, second = two.each
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as connected:
        first.note_listener(listener.getsockname())
        second.note_listener(None)
        connected.connect(listener.getsockname())
        second._break_connections()
        assert connected.recv(1) == b""
        assert connected.send(b"written")  # Gloo waits for ever for what it could not write


def test_open_files_of_other_kinds_are_left_alone(tmp_path):
    with (tmp_path / "held").open("w"), socket.create_server(("127.0.0.1", 0)) as listener:
        before = os.listdir("/proc/self/fd")
        for _ in range(3):
            assert listener.getsockname() in listening()
        assert os.listdir("/proc/self/fd") == before


@pytest.mark.parametrize(("host", "breaks"), [("localhost", True), ("127.0.0.2", False), ("no.host.invalid", False)])
def test_a_connection_to_the_same_port_of_another_host_is_not_broken(host, breaks):
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as ours:
        with listener.accept()[0] as theirs:
            break_connections(addresses_of(host, listener.getsockname()[1]))
            if not breaks:
                theirs.sendall(b"x")
            ours.settimeout(60)
            assert ours.recv(1) == (b"" if breaks else b"x")


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="the system has one version of addresses")
def test_an_address_of_version_4_within_one_of_version_6_is_the_same():
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_INET6) as ours:
        port = listener.getsockname()[1]
        ours.connect(("::ffff:127.0.0.1", port))
        break_connections(addresses_of("127.0.0.1", port))
        ours.settimeout(60)
        assert ours.recv(1) == b""
