"""A Chromium that is told what to do, by way of tests/peers/js/browser.mjs."""

import json
import os
import shutil

from peers import folder_of
from procs import until

# A loaded machine is slow, not broken.
WAIT_S = 90  # a browser takes long to start on a busy machine


class Browser:
    def __init__(self, procs):
        chromium = shutil.which("chromium")
        assert chromium, "there is no chromium; ./dev installs it"
        self.proc = procs.start(os.path.join(folder_of("DAVIT_PEERS"), "js-browser"), chromium)
        self.n_lines = 0
        assert self._line() == "ready", self.proc.describe()

    def _line(self):
        """The next line, which is there before long or never."""
        until(lambda: len(self.proc.lines) > self.n_lines or not self.proc.is_alive, WAIT_S,
              "an answer of the browser")
        assert len(self.proc.lines) > self.n_lines, self.proc.describe()
        self.n_lines += 1
        return self.proc.lines[self.n_lines - 1]

    def tell(self, do, **what):
        self.proc.write_line(json.dumps({"do": do, **what}))
        answer = json.loads(self._line())
        assert "error" not in answer, f"{do} {what}: {answer['error']}"
        return answer["ok"]

    def until(self, expression):
        return self.tell("until", expression=expression)

    def until_text(self, selector, text):
        quoted = json.dumps(selector), json.dumps(text)
        return self.until("document.querySelector(%s).innerText.includes(%s)" % quoted)

    def eval(self, expression):
        return self.tell("eval", expression=expression)

    def text(self, selector):
        return self.tell("text", selector=selector)

    def legend(self):
        """{state: devices}"""
        return self.eval("Object.fromEntries([...document.querySelectorAll('#legend li')]"
                         ".map((one) => [one.dataset.state, Number(one.lastChild.textContent)]))")

    def until_legend(self, **counts):
        for state, n in counts.items():
            self.until(f"document.querySelector('#legend [data-state={state}] b')"
                       f"?.textContent === '{n}'")

    def complaints(self):
        """What has gone wrong in the page, or was refused by its policy, since it was asked."""
        return self.tell("complaints")
