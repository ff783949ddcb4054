"""A stop signal ends the command, whenever it arrives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from compress import cli
from compress.errors import CheckFailed, Interrupted
from compress.processes import signals

LOST = """
import os, signal, sys, time
from compress.processes import signals
from compress.errors import Interrupted

class Finalized:
    def __del__(self):
        os.kill(os.getpid(), signal.{name})
        for _ in range(1000):  # the handler runs between two lines of Python
            pass

signals.install()
try:
    Finalized()
    time.sleep(30)
except Interrupted as stop:
    sys.exit(stop.exit_code)
"""


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_in_a_finalizer_of_which_python_drops_what_is_raised_still_stops(name: str, code: int):
    done = subprocess.run([sys.executable, "-c", LOST.format(name=name)], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stderr) == (code, "")


def test_what_else_a_finalizer_raises_is_shown_as_ever():
    lines = (
        "from compress.processes import signals",
        "signals.install()",
        "type('Broken', (), {'__del__': lambda self: 1 / 0})()",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0
    assert "ZeroDivisionError" in done.stderr


CLASS = """
import os, signal
from compress import cli

class Attribute:
    def __set_name__(self, owner, name):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass

def app(**anything):
    type("Owner", (), {"attribute": Attribute()})

cli.app = app
cli.main()
"""


def test_a_signal_in_the_middle_of_a_class_statement_ends_the_command_as_any():
    done = subprocess.run([sys.executable, "-c", CLASS], capture_output=True, text=True, timeout=20)
    assert done.returncode == 130
    assert done.stderr.startswith("error: interrupted; ")


@pytest.fixture
def installed():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    hook = sys.unraisablehook
    signals.install()
    yield
    sys.unraisablehook = hook
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("installed")
def test_a_signal_is_not_forgotten_where_what_it_waits_for_fails():
    with pytest.raises(Interrupted, match="step 3: loss is nan") as stop, signals.deferred():
        os.kill(os.getpid(), signal.SIGINT)
        raise CheckFailed("step 3: loss is nan")
    assert stop.value.exit_code == 130
    assert isinstance(stop.value.__cause__, CheckFailed)
    assert signals.requested_signal() is None


@pytest.mark.usefixtures("installed")
def test_a_failure_alone_comes_out_as_it_is():
    with pytest.raises(CheckFailed, match=r"^nan$"), signals.deferred():
        raise CheckFailed("nan")


@pytest.mark.usefixtures("installed")
def test_a_second_signal_stops_at_once():
    with pytest.raises(Interrupted) as stop, signals.deferred():
        os.kill(os.getpid(), signal.SIGTERM)
        assert signals.requested_signal() == signal.SIGTERM
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("went on")
    assert stop.value.exit_code == 130


@pytest.mark.usefixtures("installed")
def test_only_commands_that_continue_are_said_to(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    app, continued = cli.app, set[str]()
    monkeypatch.setattr(cli, "app", lambda **_: signal.raise_signal(signal.SIGINT))
    names = {each.name or getattr(each.callback, "__name__", "") for each in app.registered_commands}
    for name in names:
        monkeypatch.setattr(sys, "argv", ["compress", name, "x"])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        line = capsys.readouterr().err
        assert stop.value.code == 130
        if line == "error: interrupted; run the same command to continue: it does not repeat finished steps\n":
            continued.add(name)
        else:
            assert line == "error: interrupted; the same command starts from the beginning\n"
    assert {"predict", "ship", "bench"} < names
    assert continued == {"run", "ablate", "search", "reproduce"}
