"""Chromium without a window: a page that is opened, clicked, typed into and pictured.

It is spoken to over a pipe, in the protocol of its own developer tools, so no library is needed.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
PATIENCE: Final = 1200.0
"""Seconds after which a browser or a page hangs; on a busy machine one may need a minute."""
_KEYS: Final = {
    "Enter": ("Enter", 13, "\r"), "Escape": ("Escape", 27, ""), "Tab": ("Tab", 9, ""),
    "ArrowDown": ("ArrowDown", 40, ""), "ArrowUp": ("ArrowUp", 38, ""),
    "ArrowLeft": ("ArrowLeft", 37, ""), "ArrowRight": ("ArrowRight", 39, ""),
}  # fmt: skip


def browser() -> str:
    """The program; RuntimeError if there is none."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise RuntimeError(f"none of {', '.join(BROWSERS)} is installed: tools/setup_browser.sh")
    return found


class Page:
    """A page of a browser that runs as long as the `with` block of `page`."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back = to, back
        self._rest = b""
        self._number = 0
        self._session = ""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self._call("Page.enable")

    def open(self, url: str, ready: str = "true") -> None:
        """Goes to a page, and waits until an expression is true there."""
        self._call("Page.navigate", url=url)
        self.wait(f"document.readyState === 'complete' && ({ready})")

    def wait(self, expression: str) -> None:
        """Waits until an expression is true; TimeoutError if it does not become so."""
        until = time.monotonic() + PATIENCE
        while not self.ask(f"Boolean({expression})"):
            if time.monotonic() > until:
                raise TimeoutError(f"never true: {expression}")
            time.sleep(0.02)

    def ask(self, expression: str) -> Any:
        """The value of an expression, or of the promise that it is.

        Raises:
            RuntimeError: it throws.
        """
        told = self._call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in told:
            raise RuntimeError(f"{expression}: {told['exceptionDetails']}")
        return told["result"].get("value")

    def resize(self, width: int, height: int, *, sharp: float = 1.0) -> None:
        """Gives the page a size, and each of its pixels so many of the screen."""
        self._call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height,
            deviceScaleFactor=sharp, mobile=False,
        )  # fmt: skip

    def scheme(self, name: str) -> None:
        """Asks for "light" or "dark"."""
        feature = {"name": "prefers-color-scheme", "value": name}
        self._call("Emulation.setEmulatedMedia", features=[feature])

    def click(self, x: float, y: float, times: int = 1) -> None:
        """Clicks at a place."""
        for number in range(1, times + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self._call(
                    "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left",
                    clickCount=number,
                )  # fmt: skip

    def click_on(self, selector: str) -> None:
        """Clicks in the middle of an element."""
        where = self.ask(
            f"(() => {{ const b = document.querySelector({json.dumps(selector)})"
            ".getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        self.click(*where)

    def wheel(self, x: float, y: float, by: float) -> None:
        """Turns the wheel over a place."""
        self._call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=by)

    def press(self, name: str) -> None:
        """Presses a key: a character, or one of those with names."""
        key, code, text = _KEYS.get(name, (name, ord(name[0].upper()), name))
        self._call(
            "Input.dispatchKeyEvent", type="keyDown", key=key, text=text, windowsVirtualKeyCode=code
        )
        self._call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def type(self, text: str) -> None:
        """Types characters."""
        for character in text:
            self.press(character)

    def picture(self, file: Path | None = None) -> bytes:
        """The page as PNG, written to a file if there is one."""
        self.ask("new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")
        data = base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"])
        if file is not None:
            file.write_bytes(data)
        return data

    def printed(self) -> bytes:
        """The page as PDF."""
        told = self._call("Page.printToPDF", printBackground=False)
        return base64.b64decode(told["data"])

    def _call(self, method: str, **given: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": given}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + PATIENCE
        while True:
            told = self._next(until)
            if told.get("id") == self._number:
                if "error" in told:
                    raise RuntimeError(f"{method}: {told['error']}")
                return told["result"]

    def _next(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._back], [], [], max(until - time.monotonic(), 0))[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self._back, 1 << 16)
            if not part:
                raise RuntimeError("the browser has ended")
            self._rest += part
        told, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(told)
        return found


@contextlib.contextmanager
def page(width: int = 1280, height: int = 800) -> Iterator[Page]:
    """A page of a new browser, which has no memory of others and ends with the block."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        # A container's root has no sandbox and little shared memory; the pages are our own.
        command = [browser(), "--headless=new", "--no-sandbox", "--disable-gpu"]
        command += ["--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"]
        command += [f"--user-data-dir={home}", f"--window-size={width},{height}", "about:blank"]
        process, to, back = _started(command)
        try:
            found = Page(to, back)
            found.resize(width, height)
            yield found
        finally:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            os.close(to)
            os.close(back)


def _started(command: list[str]) -> tuple[int, int, int]:
    """A process that reads from its file 3 and writes to its file 4; our ends of both."""
    (its_in, to), (back, its_out) = os.pipe(), os.pipe()
    # Clear of 3 and 4, which one of them may be.
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (its_in, its_out)]
    actions = [
        (os.POSIX_SPAWN_DUP2, high[0], 3), (os.POSIX_SPAWN_DUP2, high[1], 4),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]  # fmt: skip
    process = os.posix_spawn(command[0], command, os.environ, file_actions=actions)
    for fd in (its_in, its_out, *high):
        os.close(fd)
    return process, to, back
