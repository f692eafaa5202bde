"""The launcher: what processes are told, their output, and their end when one fails."""

import os
import signal
import time

import pytest
from helpers.other_threads import OtherThread

from handlax.launch import launch, main

ENVIRONMENT = """
import os, sys
names = ("HANDLAX_LAUNCH_PROCESS", "HANDLAX_LAUNCH_PROCESSES", "HANDLAX_NUM_CPU_DEVICES")
print(*[os.environ[name] for name in names], os.environ["HANDLAX_LAUNCH_ADDRESS"].rpartition(":")[0], *sys.argv[1:])
print("to stderr", file=sys.stderr)
"""


def test_every_process_knows_its_number_and_marks_its_lines(capsys):
    assert main(["--processes", "3", "--devices", "2", "-c", ENVIRONMENT, "a", "--b"]) == 0
    written = capsys.readouterr()
    assert sorted(written.out.splitlines()) == [f"[{i}] {i} 3 2 127.0.0.1 a --b" for i in range(3)]
    assert sorted(written.err.splitlines()) == [f"[{i}] to stderr" for i in range(3)]


def test_a_script_and_a_module_are_started(tmp_path, capsys, monkeypatch):
    script = tmp_path / "its_name.py"
    script.write_text("import sys\nprint(__name__, sys.argv[1:])\n")
    assert main(["-n", "1", str(script), "-x", "1"]) == 0
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert main(["-n", "1", "-m", "its_name", "-x", "1"]) == 0
    assert capsys.readouterr().out.splitlines() == ["[0] __main__ ['-x', '1']"] * 2


SOME_FAIL = """
import os, signal, sys, time
index = int(os.environ["HANDLAX_LAUNCH_PROCESS"])
if index == 1:
    {fail}
time.sleep(60)
"""


@pytest.mark.parametrize(("fail", "status"), [
    ("sys.exit(7)", 7), ("raise ValueError", 1), ("os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL),
])
def test_all_end_when_one_fails_with_its_status(fail, status, capsys):
    begin = time.monotonic()
    assert launch(["-c", SOME_FAIL.format(fail=fail)], 3) == status
    assert time.monotonic() - begin < 30


def test_what_ignores_the_signal_is_killed(monkeypatch):
    monkeypatch.setattr("handlax.launch.launcher._GRACE", 0.2)
    ignores = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SOME_FAIL.format(
        fail="time.sleep(0.3); sys.exit(3)"
    )
    begin = time.monotonic()
    assert launch(["-c", ignores], 2) == 3 and time.monotonic() - begin < 30


HANDLES = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGINT, lambda *_: sys.exit(5))
pathlib.Path(sys.argv[1], os.environ["HANDLAX_LAUNCH_PROCESS"]).touch()
time.sleep(120)
"""


def test_signals_are_passed_on(tmp_path):
    def interrupt():
        end = time.monotonic() + 60
        while len([*tmp_path.iterdir()]) < 2 and time.monotonic() < end:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    watcher = OtherThread(interrupt)
    assert launch(["-c", HANDLES, str(tmp_path)], 2) == 5
    watcher.result()
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("arguments", [[], ["--processes", "2"], ["--processes", "0", "x.py"], ["x.py"],
                                       ["--processes", "1", "--devices", "0", "x.py"]])
def test_what_makes_no_sense_is_said(arguments, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "error: " in capsys.readouterr().err
