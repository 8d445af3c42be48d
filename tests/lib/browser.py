"""browser.py - a tab of a real Chromium, driven by its own protocol through a pipe: no port, no other program.

    with tab(size=(1280, 800), dark=False, scripts=True) as t:
        t.open("file:///x.html", "document.querySelector('.fg-view')")   # waits until that is true
        t.js("1 + 1"), t.click(x, y), t.point(x, y), t.key("Enter"), t.type("text"), t.picture("x.png")
        t.requests, t.complaints()          # what was asked for; errors of scripts, of the console, of the policy

It keeps to a temporary folder, and ends with its with-block.  Without Chromium a test is skipped.
"""
import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile

from harness import DEADLINE, Skip, equal, need, poll

KEYS = {"Enter": "\r", "Backspace": "", "Escape": "", "Tab": ""}


class Tab:
    def __init__(self, process, write, read, size, dark, scripts):
        self.process, self.write, self.read = process, write, read
        self.rest, self.count, self.events, self.session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Log", "Network":
            self.call(domain + ".enable")
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.resize(*size)

    def message(self):
        while b"\0" not in self.rest:
            need(select.select([self.read], [], [], DEADLINE)[0], "Chromium does not answer")
            data = os.read(self.read, 1 << 20)
            need(data, "Chromium has ended")
            self.rest += data
        one, _, self.rest = self.rest.partition(b"\0")
        return json.loads(one)

    def call(self, method, **params):
        self.count += 1
        body = {"id": self.count, "method": method, "params": params}
        if self.session:
            body["sessionId"] = self.session
        data = json.dumps(body).encode() + b"\0"
        while data:
            data = data[os.write(self.write, data):]
        while True:
            answer = self.message()
            if answer.get("id") == self.count:
                need("error" not in answer, "%s: %s" % (method, answer.get("error")))
                return answer["result"]
            self.events.append(answer)

    def resize(self, width, height, ratio=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=ratio, mobile=width < 500)

    def js(self, expression):
        """Its value, or that of its promise."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        need("exceptionDetails" not in answer, "%s: %s" % (expression[:200], answer.get("exceptionDetails")))
        return answer["result"].get("value")

    def until(self, condition):
        poll(lambda: self.js("!!(%s)" % condition), "in the page: " + condition)

    def open(self, url, condition="document.readyState === 'complete'"):
        self.call("Page.navigate", url=url)
        self.until("location.href !== 'about:blank' && (%s)" % condition)

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def point(self, x, y):
        self.mouse("mouseMoved", x, y)

    def click(self, x, y, count=1):
        self.point(x, y)
        for n in range(1, count + 1):
            self.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=n)
            self.mouse("mouseReleased", x, y, button="left", clickCount=n)

    def click_on(self, selector):
        """The middle of an element, which is brought into sight."""
        box = self.js("(() => { const e = document.querySelector(%s); e.scrollIntoView({ block: 'nearest' }); "
                      "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()" % json.dumps(selector))
        self.click(*box)

    def key(self, name):
        text = KEYS.get(name, name if len(name) == 1 else "")
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name)

    def type(self, text):
        for letter in text:
            self.key(letter)

    def picture(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def of(self, *methods):
        self.js("0")  # events of before have come by then
        return [e["params"] for e in self.events if e.get("method") in methods]

    @property
    def requests(self):
        return [e["request"]["url"] for e in self.of("Network.requestWillBeSent")]

    def complaints(self):
        said = [e["exceptionDetails"] for e in self.of("Runtime.exceptionThrown")]
        said += [e["entry"] for e in self.of("Log.entryAdded") if e["entry"]["level"] in ("error", "warning")]
        return said + [e for e in self.of("Runtime.consoleAPICalled") if e["type"] in ("error", "warning", "assert")]

    def is_content(self):
        equal(self.complaints(), [], "the page's complaints")


@contextlib.contextmanager
def tab(size=(1280, 800), dark=False, scripts=True):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        raise Skip("no Chromium is here")
    ours, theirs = os.pipe(), os.pipe()  # commands, answers
    with tempfile.TemporaryDirectory(prefix="component-test-", ignore_cleanup_errors=True) as d:
        def descriptors_3_and_4():
            high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (ours[0], theirs[1])]
            for fd, name in zip(high, (3, 4)):  # where it wants them
                os.dup2(fd, name)

        process = subprocess.Popen(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir=" + d,
             "--remote-debugging-pipe"], preexec_fn=descriptors_3_and_4, pass_fds=(3, 4), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ, HOME=d))
        os.close(ours[0])
        os.close(theirs[1])
        try:
            t = Tab(process, ours[1], theirs[0], size, dark, scripts)
            yield t
            t.call("Browser.close")
        finally:
            try:
                process.wait(10 if process.poll() is None else None)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(ours[1])
            os.close(theirs[0])
