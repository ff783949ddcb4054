"""A headless Chromium driven over its debugging pipe, and axe-core, without a package for either."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

AXE = "COMPRESS_AXE"  # path of axe.min.js, from the npm package axe-core
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--remote-debugging-pipe",
)


def chromium() -> str | None:
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


def axe_file() -> Path | None:
    """Return the `axe.min.js` named by `COMPRESS_AXE`, or that of a global `npm install -g axe-core`."""
    named = os.environ.get(AXE)
    if named:
        return Path(named)
    npm = shutil.which("npm")
    root = subprocess.run([npm, "root", "-g"], capture_output=True, text=True).stdout.strip() if npm else ""
    script = Path(root) / "axe-core" / "axe.min.js"
    return script if root and script.is_file() else None


class Tab:
    """One page in the browser."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back, self._rest, self._number = to, back, b"", 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._back, 1 << 20)
            if not part:
                raise RuntimeError("the browser ended")
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\0")
        return json.loads(line)

    def wait(self, event: str) -> None:
        while not any(message.get("method") == event for message in self.events):
            self.events.append(self._read())

    def open(self, page: Path | str, *, width: int = 1280, dark: bool = False, scripts: bool = True) -> None:
        """Open a file or a URL, and wait until it is fully drawn."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="", features=[scheme])
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.events.clear()
        self.call("Page.navigate", url=page if isinstance(page, str) else page.resolve().as_uri())
        self.wait("Page.loadEventFired")
        if scripts:
            self.run("new Promise(done => setTimeout(done, 700))")

    def run(self, script: str) -> Any:
        """Evaluate a script, await its result and return it."""
        reply = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in reply:
            raise RuntimeError(str(reply["exceptionDetails"]))
        return reply["result"].get("value")

    def requests(self) -> list[str]:
        """Return the URLs that the page requested, without its own."""
        sent = [message["params"] for message in self.events if message.get("method") == "Network.requestWillBeSent"]
        return [each["request"]["url"] for each in sent if each.get("type") != "Document"]

    def errors(self) -> list[str]:
        """Return the exceptions of the page's scripts."""
        thrown = [message for message in self.events if message.get("method") == "Runtime.exceptionThrown"]
        return [json.dumps(message["params"]["exceptionDetails"])[:500] for message in thrown]

    def axe(self, script: Path) -> list[str]:
        """Return `rule: target` for every violation, best practices included."""
        self.run(script.read_text(encoding="utf-8") + ";0")
        violations = self.run("axe.run(document).then(outcome => JSON.stringify(outcome.violations))")
        return [
            f"{violation['id']}: {node['target']} {node['html'][:120]}"
            for violation in json.loads(violations)
            for node in violation["nodes"]
        ]

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))

    def pdf(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"]))


@contextmanager
def tab(program: str, profile: Path) -> Iterator[Tab]:
    """Open a browser with one page. `profile`: an empty folder for its data."""
    theirs, to = os.pipe()
    back, answers = os.pipe()

    def hand_over() -> None:  # the browser reads file 3 and writes file 4
        low, high = os.dup(theirs), os.dup(answers)
        os.dup2(low, 3)
        os.dup2(high, 4)

    command = [program, *_FLAGS, f"--user-data-dir={profile}"]
    browser = subprocess.Popen(
        command, preexec_fn=hand_over, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(theirs)
    os.close(answers)
    try:
        yield Tab(to, back)
    finally:
        os.close(to)
        browser.kill()
        browser.wait()
        os.close(back)
