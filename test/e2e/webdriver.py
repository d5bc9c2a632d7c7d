# SPDX-License-Identifier: MIT
"""A browser for tests: headless chromium, through chromedriver's WebDriver interface (https://www.w3.org/TR/webdriver2/)."""
import base64
import json
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import tbdtest

KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "Tab": "\ue004", "Down": "\ue015", "Up": "\ue013", "Home": "\ue011", "End": "\ue010"}
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Refused(Exception):
    """The browser's error, as WebDriver names it."""


class Browser:
    """Use it in `with`; `folder` is where the profile goes."""

    def __init__(self, folder, width=1400, height=900):
        tbdtest.need("chromium", "chromedriver")
        self.size = (width, height)
        self.profile = tempfile.mkdtemp(dir=folder, prefix="profile-")

    def __enter__(self):
        env = dict(tbdtest.clean_env(), HOME=self.profile, XDG_CONFIG_HOME=self.profile, XDG_CACHE_HOME=self.profile)
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env)
        try:
            self._start()
        except BaseException:
            self.driver.kill()
            self.driver.wait()
            raise
        return self

    def __exit__(self, *error):
        try:
            self._call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait(timeout=30)
            self.driver.stdout.close()

    def _start(self):
        for line in self.driver.stdout:
            found = re.search(rb"started successfully on port (\d+)", line)
            if found:
                break
        else:
            raise Refused("chromedriver does not start")
        self.base = "http://127.0.0.1:%s" % found[1].decode()
        args = ["--headless=new", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run",
                "--disable-dev-shm-usage", "--hide-scrollbars", "--force-device-scale-factor=1", "--window-size=%d,%d" % self.size,
                "--user-data-dir=" + self.profile]
        # Fewer processes: each page that is opened would begin two, of which one waits for a page that never comes.
        args += ["--in-process-gpu", "--disable-site-isolation-trials",
                 "--disable-features=SpareRendererForSitePerProcess,ProactivelySwapBrowsingInstance,BackForwardCache,IsolateOrigins,site-per-process"]
        args.append("--no-sandbox")  # it needs namespaces, which a container or root may not have; the pages are ours
        wanted = {"browserName": "chrome", "timeouts": {"script": 120000}, "goog:chromeOptions": {"args": args}, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        reply = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self.session = "/session/" + reply["sessionId"]

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data=data, method=method, headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise Refused("%s: %s" % (value["error"], value["message"])) from error

    def _of(self, method, path, body=None):
        return self._call(method, self.session + path, body)

    def open(self, url):
        self._of("POST", "/url", {"url": url})

    def url(self):
        return self._of("GET", "/url")

    def back(self):
        self._of("POST", "/back", {})

    def run(self, script, *args):
        """The value of a function's body in the page; it may return a promise."""
        return self._of("POST", "/execute/sync", {"script": script, "args": list(args)})

    def await_true(self, script, *args, seconds=60):
        """Runs the expression until it is true, and returns what it is."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.run("return " + script, *args)
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError("not within %d s: %s\n%s" % (seconds, script, self.run("return document.body.innerText")[:3000]))

    def find(self, selector):
        return self._of("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self._of("POST", "/element/%s/click" % self.find(selector), {})

    def type(self, selector, text):
        self._of("POST", "/element/%s/value" % self.find(selector), {"text": text})

    def press(self, key, shift=False):
        """A key of the keyboard, wherever the focus is."""
        key = KEYS.get(key, key)
        held = [{"type": "keyDown", "value": "\ue008"}] if shift else []
        released = [{"type": "keyUp", "value": "\ue008"}] if shift else []
        actions = held + [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}] + released
        self._of("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).innerText", selector)

    def texts(self, selector):
        return self.run("return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText)", selector)

    def errors(self):
        """What the browser's console has of severe messages since the last call."""
        return [row["message"] for row in self._of("POST", "/se/log", {"type": "browser"}) if row["level"] == "SEVERE"]

    def requests(self):
        """The addresses that were requested since the last call."""
        rows = [json.loads(row["message"])["message"] for row in self._of("POST", "/se/log", {"type": "performance"})]
        return [row["params"]["request"]["url"] for row in rows if row["method"] == "Network.requestWillBeSent"]

    def resize(self, width, height):
        self._of("POST", "/window/rect", {"width": width, "height": height})

    def make_dark(self, dark=True):
        """As if the user wanted dark pages, or light ones."""
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._of("POST", "/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}})

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self._of("GET", "/screenshot")))
