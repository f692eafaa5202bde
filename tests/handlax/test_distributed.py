"""initialize: what it is told, what it finds in the environment, and what it refuses."""

import os
from types import SimpleNamespace

import pytest
from helpers.new_process import in_new_process
from helpers.stand_in_clusters import CERTIFICATE, KEY

import handlax as hx
from handlax import errors
from handlax.effects.base.errors import BadArgument, BadCall, ProcessFailure
from handlax.lowering.clients import processes
from handlax.lowering.xla.lazy import runtime


@pytest.fixture
def joined(monkeypatch):
    """A function that calls ``initialize`` in an environment and gives the membership, without joining anything."""
    for name in [name for name in os.environ if name.startswith(("HANDLAX_LAUNCH", "SLURM_", "OMPI_", "KUBERNETES_"))]:
        monkeypatch.delenv(name)
    found = []
    monkeypatch.setattr(runtime, "connect", found.append, raising=False)
    monkeypatch.setattr(runtime, "is_used", lambda: False, raising=False)

    def call(*args, environment=(), **kwargs):
        for name, value in dict(environment).items():
            monkeypatch.setenv(name, value)
        hx.distributed.initialize(*args, **kwargs)
        return found.pop()

    return call


def test_what_is_told_is_taken(joined):
    found = joined("10.0.0.1:99", 3, 2, [0, 1], initialization_timeout=7, coordinator_bind_address="10.0.0.1:99",
                   partition_index=4)
    assert (found.coordinator_address, found.count, found.index) == ("10.0.0.1:99", 3, 2)
    assert found.bind_address == "10.0.0.1:99"
    assert (found.local_devices, found.partition, found.start_timeout) == ((0, 1), 4, 7)
    assert (found.heartbeat_timeout, found.end_timeout) == (100, 300)
    assert found.credentials == {}


@pytest.fixture
def credentials(tmp_path):
    """The three files of mutual TLS."""
    for name, text in (("cert", CERTIFICATE), ("key", KEY), ("ca", CERTIFICATE)):
        (tmp_path / name).write_text(text)
    return {f"mtls_{name}_file": str(tmp_path / name) for name in ("cert", "key", "ca")}


@pytest.mark.parametrize(("name", "text", "said"), [
    ("ca", CERTIFICATE[:300], "a certificate"), ("cert", CERTIFICATE.replace("M", "?", 1), "a certificate"),
    ("cert", "", "a certificate"), ("key", KEY[:90], "the key of mtls_cert_file"),
    ("key", CERTIFICATE, "the key of mtls_cert_file"),
], ids=["half an authority", "a damaged certificate", "an empty certificate", "half a key", "no key"])
def test_a_damaged_file_of_mutual_tls_is_named(joined, credentials, tmp_path, monkeypatch, name, text, said):
    monkeypatch.setattr(runtime, "HAS_MUTUAL_TLS", True, raising=False)
    (tmp_path / name).write_text(text)
    with pytest.raises(BadArgument, match=f"mtls_{name}_file must be {said} in PEM, got '{tmp_path / name}': "):
        joined("h:1", 2, 0, **credentials)


def test_mutual_tls_needs_three_files_and_a_jaxlib_that_has_it(joined, credentials, monkeypatch):
    files = credentials
    monkeypatch.setattr(runtime, "HAS_MUTUAL_TLS", True, raising=False)
    assert joined("h:1", 2, 0, mtls_peer_uri_prefix="spiffe://", **files).credentials == {
        **files, "mtls_peer_uri_prefix": "spiffe://"}
    for wrong in ("nothing", None):
        with pytest.raises(BadArgument, match=f"mtls_key_file must name a file, got {wrong!r}"):
            joined("h:1", 2, 0, **files | {"mtls_key_file": wrong})
    monkeypatch.setattr(runtime, "HAS_MUTUAL_TLS", False, raising=False)
    with pytest.raises(BadArgument, match=r"for mtls_cert_file jaxlib must be 0\.11\.2 or later, got "):
        joined("h:1", 2, 0, **files)


SLURM = {
    "SLURM_JOB_ID": "1", "SLURM_STEP_NODELIST": "n[7-9]", "SLURM_NTASKS": "8", "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
}


def test_a_cluster_tells_what_is_left_out(joined):
    found = joined(environment=SLURM)
    assert (found.coordinator_address, found.count, found.index, found.local_devices) == ("n7:61441", 8, 5, (1,))
    assert found.bind_address == "n7:61441"  # where the others find it, and nowhere else
    assert joined(num_processes=6, local_device_ids=3).count == 6
    assert joined(environment={"JAX_COORDINATOR_PORT": "77"}).coordinator_address == "n7:77"
    with pytest.raises(BadArgument, match="coordinator_address must be given"):
        joined(cluster_detection_method="deactivate")


def test_the_secret_is_of_the_environment_or_of_a_file(joined, tmp_path):
    assert joined("h:1", 2, 0).secret == ""
    assert joined("h:1", 2, 0, environment={"HANDLAX_LAUNCH_SECRET": "swordfish"}).secret == "swordfish"
    file = tmp_path / "secret"
    file.write_text("shark\n")
    found = joined("h:1", 2, 0, environment={"HANDLAX_LAUNCH_SECRET_FILE": str(file)})
    assert found.secret == "shark" and "shark" not in repr(found)


def test_variables_of_jax_are_read(joined):
    variables = {"JAX_COORDINATOR_ADDRESS": "h:1", "JAX_LOCAL_DEVICE_IDS": "2,3", "JAX_COORDINATOR_BIND_ADDRESS": "i:2",
                 "JAX_PARTITION_INDEX": "5"}
    found = joined(None, 2, 1, environment=variables)
    assert (found.coordinator_address, found.bind_address, found.local_devices) == ("h:1", "i:2", (2, 3))
    assert found.partition == 5 and joined(None, 2, 1, slice_index=6).partition == 6


@pytest.mark.parametrize(("arguments", "error", "message"), [
    (("h:1", 2, None), BadArgument, "process_id must be given where no cluster is recognised"),
    (("h:1", None, 0), BadArgument, "num_processes must be given"),
    ((None, 2, 0), BadArgument, "coordinator_address must be given"),
    (("h:1", 2, 2), BadArgument, "between 0 and num_processes - 1, got 2 of 2"),
    (("h:1", 2, -1), BadArgument, "got -1 of 2"),
    (("h:1", 2, "0"), BadCall, "process_id must be an integer, got '0'"),
    (("h:1", 2.0, 0), BadCall, "num_processes must be an integer, got 2.0"),
    (("host", 2, 0), BadArgument, "coordinator_address must be 'host:port', got 'host'"),
])
def test_what_cannot_be_is_refused(joined, arguments, error, message):
    with pytest.raises(error, match=message):
        joined(*arguments)


def test_an_unknown_cluster_is_refused(joined):
    with pytest.raises(BadArgument, match="cluster_detection_method must be one of"):
        joined(cluster_detection_method="pbs")


def test_processes_are_joined_once_and_before_a_device_is_used(joined, monkeypatch):
    monkeypatch.setattr(processes, "_CURRENT", [object()])
    assert hx.distributed.is_initialized()
    with pytest.raises(ProcessFailure, match="they are already"):
        joined("h:1", 2, 0)
    monkeypatch.undo()
    assert not hx.distributed.is_initialized()
    hx.devices()
    with pytest.raises(ProcessFailure, match="before a device is used"):
        hx.distributed.initialize("h:1", 2, 0)


def test_a_program_that_was_never_joined_has_nothing_to_leave():
    assert hx.distributed.shutdown() is None
    assert in_new_process("import sys, handlax as hx; hx.distributed; print('jaxlib' in sys.modules)") == "False"


def test_failures_of_the_client_are_errors_of_handlax(monkeypatch):
    def key_value_try_get(key):
        raise processes.RuntimeFailure(f"NOT_FOUND: Config key {key} not found.")

    client = SimpleNamespace(key_value_try_get=key_value_try_get, key_value_set=lambda key, value: (key, value))
    monkeypatch.setattr(processes, "_CURRENT", [SimpleNamespace(client=client)])
    with pytest.raises(errors.JaxRuntimeError, match=r"^NOT_FOUND: Config key a not found\.") as caught:
        hx.distributed.global_state.client.key_value_try_get("a")
    assert isinstance(caught.value, errors.HandlaxError)
    assert hx.distributed.global_state.client.key_value_set("a", value="b") == ("a", "b")


def test_a_process_that_is_alone_is_the_first_of_one():
    state = hx.distributed.global_state
    assert (state.client, state.process_id, state.num_processes) == (None, 0, 1)
