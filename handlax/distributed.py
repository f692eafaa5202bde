"""``handlax.distributed``, under JAX's names: the processes of a program joined.

What a process needs to know comes from arguments, variables of the environment, and clusters.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

from .effects.base.errors import BadArgument, BadCall, JaxRuntimeError, ProcessFailure
from .effects.base.jax_settings import from_environment
from .lowering.clients.clusters import Cluster, find
from .lowering.clients.coordinator import LAUNCH_SECRET
from .lowering.xla.lazy import runtime

__all__ = ["initialize", "is_initialized", "shutdown"]


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
    mtls_cert_file: str | None = None,
    mtls_key_file: str | None = None,
    mtls_ca_file: str | None = None,
    mtls_peer_uri_prefix: str | None = None,
    verify_secure_credentials: bool | None = None,
) -> None:
    """Join this process with the others of its program, before it uses a device; all of them call it.

        devices() == the devices of process 0, then those of process 1, ...

    Under ``python -m handlax.launch``, SLURM, Open MPI and in Kubernetes' indexed jobs no argument is needed.
    Who does not know the secret of the launch, in ``HANDLAX_LAUNCH_SECRET`` or a file ``HANDLAX_LAUNCH_SECRET_FILE``,
    cannot join.
    A process leaves the program when Python ends, or by ``shutdown``.

    Args:
        coordinator_address: ``host:port`` of process 0, where a port is free, as the others reach it.
        process_id: from 0 to ``num_processes - 1``.
        local_device_ids: the GPUs of this process; on a cluster by default the one with its number on its machine, or
            all that it sees where no other process sees them.
        cluster_detection_method: the cluster's name; ``"mpi4py"`` for other MPIs; ``"deactivate"`` looks for none.
        initialization_timeout: the seconds in which all processes must come.
        heartbeat_timeout_seconds: a process that has not answered for so long has failed; waiting for it raises
            ProcessFailure.
        shutdown_timeout_seconds: how long a process that has come to its end waits for the others.
        coordinator_bind_address: where process 0 listens; by default at ``coordinator_address`` and nowhere else.
            ``"[::]:1234"``: at this port on all interfaces.
        partition_index: the number of the group of machines, told to GPUs. ``slice_index`` is its former name.
        mtls_cert_file: with the key and the authority's certificate: mutual TLS, for which jaxlib 0.11.2 is needed.

    Raises: ProcessFailure: a device was used before, or it was called before, or a process is missing. BadArgument: an
    argument is neither given nor known from the environment or the cluster.
    """
    if runtime.connection() is not None:
        raise ProcessFailure("distributed.initialize: processes are joined once, and they are already.")
    if runtime.is_used():
        raise ProcessFailure(
            "distributed.initialize: processes must be joined before a device is used, and one was used.",
            hint="call it at the top: before hx.devices(), device_put, jit and every computation.",
        )
    address = coordinator_address or from_environment("coordinator_address")[1] or None
    local = _local_devices(local_device_ids)
    if cluster_detection_method != "deactivate" and None in (address, num_processes, process_id, local):
        cluster = find(cluster_detection_method)
        if cluster is not None:
            address = address or _address(cluster)
            num_processes = cluster.count() if num_processes is None else num_processes
            process_id = cluster.index() if process_id is None else process_id
            own = cluster.local_device() if local is None else None
            local = local if own is None else (own,)
    address, count, index = _checked(address, num_processes, process_id)
    bind = coordinator_bind_address or from_environment("coordinator_bind_address")[1]
    partition = slice_index if partition_index is None else partition_index
    text = from_environment("partition_index")[1]
    credentials = _credentials(
        mtls_cert_file=mtls_cert_file, mtls_key_file=mtls_key_file, mtls_ca_file=mtls_ca_file,
        mtls_peer_uri_prefix=mtls_peer_uri_prefix, verify_secure_credentials=verify_secure_credentials,
    )
    runtime.connect(runtime.Membership(
        address, count, index, bind or address, local,
        int(text) if partition is None and text else partition,
        initialization_timeout, heartbeat_timeout_seconds, shutdown_timeout_seconds, credentials, _secret(),
    ))


def is_initialized() -> bool:
    """Whether this process is joined with others, or with itself alone, by ``initialize``.

    >>> is_initialized()
    False
    """
    return runtime.connection() is not None


def shutdown() -> None:
    """Wait until all processes call it, and leave them; nothing where ``initialize`` was not called.

    Raises: ProcessFailure: one did not come in time.
    """
    runtime.disconnect()


class DistributedClient:
    """jaxlib's client of the coordinator, whose failures are ``errors.JaxRuntimeError``."""

    def __init__(self, client: Any):
        self._client = client

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return method(*args, **kwargs)
            except runtime.RuntimeFailure as error:
                raise JaxRuntimeError(str(error)) from error

        return call


class GlobalState:
    """This process among the others, as libraries ask for it; ``client`` is None where ``initialize`` was not called.
    """

    @property
    def client(self) -> DistributedClient | None:
        joined = runtime.connection()
        return None if joined is None else DistributedClient(joined.client)

    @property
    def process_id(self) -> int:
        joined = runtime.connection()
        return 0 if joined is None else joined.index

    @property
    def num_processes(self) -> int:
        joined = runtime.connection()
        return 1 if joined is None else joined.count


global_state = GlobalState()


def _credentials(**options: Any) -> dict[str, Any]:
    """jaxlib's options for mutual TLS. Raises BadArgument: it has none, or a file is not there."""
    given = {name: value for name, value in options.items() if value is not None}
    if given and not runtime.HAS_MUTUAL_TLS:
        raise BadArgument(f"distributed.initialize: for {next(iter(given))} jaxlib must be 0.11.2 or later, got "
                          f"{runtime.JAXLIB_VERSION}.")
    for name in [name for name in options if name.endswith("_file") and given]:
        if not Path(options[name] or "").is_file():
            raise BadArgument(f"distributed.initialize: {name} must name a file, got {options[name]!r}.",
                              hint="mutual TLS has a certificate, its key, and the certificate of its authority.")
    if given:
        _check_certificates(options)
    return given


def _check_certificates(files: Mapping[str, Any]) -> None:
    """Raises BadArgument: a file is damaged, or not what it is to be, which jaxlib would say of no file."""
    context, own = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), files["mtls_cert_file"]
    for name, what, load in (
        ("mtls_ca_file", "a certificate", context.load_verify_locations),
        ("mtls_cert_file", "a certificate", context.load_verify_locations),
        ("mtls_key_file", "the key of mtls_cert_file", lambda file: context.load_cert_chain(own, file, password="")),
    ):
        try:
            load(files[name])
        except ssl.SSLError as error:
            raise BadArgument(f"distributed.initialize: {name} must be {what} in PEM, got {files[name]!r}: "
                              f"{error.reason or error.args[-1]}.") from error


def _secret() -> str:
    """What the processes of a launch know, and nobody else: of the environment, or of the file that it names; "": none.
    """
    file = os.environ.get(f"{LAUNCH_SECRET}_FILE")
    return Path(file).read_text().strip() if file else os.environ.get(LAUNCH_SECRET, "")


def _local_devices(given: int | Sequence[int] | None) -> tuple[int, ...] | None:
    """The numbers of this process's devices, by default from the environment; None: not known."""
    if given is None:
        text = from_environment("local_device_ids")[1]
        return tuple(map(int, text.split(","))) if text else None
    return (given,) if isinstance(given, int) else tuple(given)


def _address(cluster: Cluster) -> str:
    """``host:port`` of process 0 on a cluster."""
    host, port = cluster.host(), from_environment("coordinator_port")[1] or cluster.port()
    return f"[{host}]:{port}" if ":" in host and host[0] != "[" else f"{host}:{port}"


def _checked(address: str | None, count: Any, index: Any) -> tuple[str, int, int]:
    """The three arguments. Raises BadArgument: one is not known, or out of range. BadCall: a number is no integer."""
    for name, value in (("coordinator_address", address), ("num_processes", count), ("process_id", index)):
        if value is None:
            raise BadArgument(
                f"distributed.initialize: {name} must be given where no cluster is recognised, got none.",
                hint="python -m handlax.launch --processes 4 script.py starts processes that need no argument.",
            )
        if name != "coordinator_address" and (not isinstance(value, int) or isinstance(value, bool)):
            raise BadCall(f"distributed.initialize: {name} must be an integer, got {value!r}.")
    if not 0 <= index < count:
        raise BadArgument(
            f"distributed.initialize: process_id must be between 0 and num_processes - 1, got {index} of {count}."
        )
    if not isinstance(address, str) or not address.rpartition(":")[2].isdecimal():
        raise BadArgument(f"distributed.initialize: coordinator_address must be 'host:port', got {address!r}.")
    return address, count, index
