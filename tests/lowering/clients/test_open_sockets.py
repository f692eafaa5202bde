"""Connections are found by the ports that they lead to, and ended."""

import socket

import pytest
from helpers.runtime_in_memory import Two


@pytest.fixture
def two():
    pair = Two()
    yield pair
    pair.close()


def test_who_learns_of_a_failure_breaks_the_connections_of_collectives(two):
    first, second = two.each
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as connected:
        first.note_listener(listener.getsockname()[1])
        second.note_listener(None)
        connected.connect(listener.getsockname())
        second._break_connections()
        assert connected.recv(1) == b""
        assert connected.send(b"written")  # Gloo waits for ever for what it could not write
