"""The launcher: what processes are told, their output, and their end when one fails."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.new_process import inherited
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


@pytest.mark.parametrize(("fail", "status", "cause"), [
    ("sys.exit(7)", 7, "with status 7"), ("raise ValueError", 1, "with status 1"),
    ("os.kill(os.getpid(), signal.SIGKILL)", 128 + signal.SIGKILL, "by SIGKILL (was the memory used up?)"),
    ("os.abort()", 128 + signal.SIGABRT, "by SIGABRT"),
])
def test_all_end_when_one_fails_with_its_status_and_it_is_said_which_and_how(fail, status, cause, capsys):
    begin = time.monotonic()
    assert launch(["-c", SOME_FAIL.format(fail=fail)], 3) == status
    assert time.monotonic() - begin < 30
    assert f"handlax.launch: process 1 ended {cause}, the others are ended." in capsys.readouterr().err


def test_all_are_started_again_as_often_as_is_asked_until_they_succeed(capsys):
    program = "import os, sys\nsys.exit(9 if os.environ['HANDLAX_LAUNCH_RESTART'] != '2' else 0)"
    assert launch(["-c", program], 2, restarts=1) == 9
    assert main(["-n", "2", "--restarts", "5", "-c", program]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if "again" in line]
    assert told == [f"handlax.launch: all are started again, {n} times." for n in ("1 of 1", "1 of 5", "2 of 5")]


CHILDREN = """
import os, pathlib, sys, time
pathlib.Path(sys.argv[1], os.environ["HANDLAX_LAUNCH_PROCESS"]).write_text(str(os.getpid()))
time.sleep(120)
"""


def test_all_end_with_the_launcher_however_it_ends(tmp_path):
    command = [sys.executable, "-m", "handlax.launch", "-n", "2", "-c", CHILDREN, str(tmp_path)]
    launcher = subprocess.Popen(command, env=inherited(), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    try:
        while sum(path.stat().st_size > 0 for path in tmp_path.iterdir()) < 2 and time.monotonic() < until:
            time.sleep(0.02)
    finally:
        launcher.kill()
        launcher.wait(60)
    alive = [int(path.read_text()) for path in tmp_path.iterdir()]
    assert len(alive) == 2
    while alive and time.monotonic() < until:
        alive = [number for number in alive if exists(number)]
        time.sleep(0.02)
    assert not alive


def exists(number):
    """Whether a process is there; one that has ended and is not awaited, as no one may be here to do so, is not."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


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


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_all_end_without_a_word_when_nobody_reads_what_they_write(stream):
    code = f"import sys\nwhile True: print('line', file=sys.{stream})"
    other = "stderr" if stream == "stdout" else "stdout"
    launcher = subprocess.Popen(
        [sys.executable, "-m", "handlax.launch", "-n", "2", "--restarts", "1", "-c", code], env=inherited(),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        read = getattr(launcher, stream)
        assert read.readline().endswith(b"] line\n")
        read.close()
        assert launcher.wait(60) == 128 + signal.SIGPIPE
        assert getattr(launcher, other).read() == b""
    finally:
        launcher.kill()
        launcher.communicate(timeout=60)


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
                                       ["--processes", "1", "--devices", "0", "x.py"],
                                       ["--processes", "1", "--restarts", "-1", "x.py"]])
def test_what_makes_no_sense_is_said(arguments, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "error: " in capsys.readouterr().err
