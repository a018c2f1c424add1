"""`make docs`: runs what the pages say, against a server of the embedded models.

`python -m tests.docs.run [PAGE...]` runs only the pages that are named. The server has a free port,
which takes the place of 8000 in every block. Each page has a folder of its own, where its files are
written; `nano-omni` is this checkout's, and `ffplay` is one that only listens.
"""

import os
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from tests.conformance.run import node_home, python_of
from tests.docs.blocks import ROOT, blocks_of, pages

LIMIT_S = 180
SHIMS = {
    "nano-omni": f'exec "{sys.executable}" -m server.cli.main "$@"',
    "python": f'exec "{sys.executable}" "$@"',
    "ffplay": '[ "$(wc -c)" -gt 1000 ]',
}


@contextmanager
def served():
    """The port of a server as the pages mean it: embedded models, timelines open."""
    options = ("--port", "0", "--debug-routes", "--log-level", "warning")
    command = (sys.executable, "-u", "-m", "server.cli.main", "serve", *options)
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        ready = next((line for line in server.stdout if " is ready on " in line), "")
        yield re.search(r":(\d+)/v1", ready)[1]
    finally:
        server.terminate()
        server.communicate(timeout=60)


def commands_of(text):
    """Each command of a console block and the output that it shows, `...` standing for anything."""
    lines = text.splitlines()
    while lines:
        command = lines.pop(0).removeprefix("$ ")
        while lines and _is_open(command):
            command += "\n" + lines.pop(0)
        output = []
        while lines and not lines[0].startswith("$ "):
            output.append(lines.pop(0))
        yield command, "\n".join(output)


def _is_open(command):
    """Whether the shell waits for more lines."""
    checked = subprocess.run(("bash", "-n", "-c", command), capture_output=True, text=True)
    return bool(checked.stderr) or command.endswith("\\")


def fits(shown, printed):
    """Whether a page shows what was printed."""
    pattern = ".*".join(map(re.escape, shown.strip().split("...")))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


class Page:
    """The blocks of a page, run in order in one folder. `port` stands for 8000."""

    def __init__(self, page, folder, port="8000"):
        self._page, self._folder, self._port = page, folder, port
        shims = folder / ".bin"
        shims.mkdir()
        for name, script in SHIMS.items():
            (shims / name).write_text(f"#!/bin/sh\n{script}\n")
            (shims / name).chmod(0o755)
        path = os.pathsep.join((str(shims), os.environ["PATH"]))  # noqa: TID251
        here = {"PATH": path, "PYTHONPATH": f"{folder}:{ROOT}"}
        self._env = {**os.environ, **here}  # noqa: TID251 - what a page's commands are run in

    def failures(self):
        """A line for each block that did not do what it says."""
        for block in blocks_of(self._page):
            if block.runs and (why := self._run(block)):
                yield f"{block.name}: {why}"

    def _run(self, block):
        text = re.sub(r"\b8000\b", self._port, block.text)
        if name := block.value("file"):
            (self._folder / name).write_text(text)
            return ""
        if block.language == "console":
            return self._compare(text, exact="varies" not in block.words)
        return self._why(self._command(block, text))

    def _command(self, block, text):
        if block.language == "sh":
            return ("bash", "-euo", "pipefail", "-c", text)
        if block.language == "js":
            script = node_home() / "page.mjs"
            script.write_text(text)
            return ("node", script)
        environment = block.value("env")
        return (python_of(environment) if environment else sys.executable, "-c", text)

    def _compare(self, text, exact):
        for command, shown in commands_of(text):
            done = self._do(("bash", "-o", "pipefail", "-c", command))
            if shown and exact:
                if not fits(shown, done.stdout + done.stderr):
                    return f"{command!r} printed {done.stdout + done.stderr!r}"
            elif done.returncode:
                return f"{command!r} ended with {done.returncode}: {done.stderr[-800:]}"
        return ""

    def _why(self, command):
        done = self._do(command)
        return f"ended with {done.returncode}: {done.stderr[-800:]}" if done.returncode else ""

    def _do(self, command):
        return subprocess.run(
            command,
            cwd=self._folder,
            env=self._env,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            stdin=subprocess.DEVNULL,
        )


def main():
    """The exit status."""
    failed = False
    with served() as port:
        for page in sys.argv[1:] or pages():
            with tempfile.TemporaryDirectory() as folder:
                failures = list(Page(page, Path(folder), port).failures())
            num = sum(block.runs for block in blocks_of(page))
            sys.stdout.write(f"{page:28} {num - len(failures):3} of {num} hold\n")
            sys.stdout.writelines(f"  {failure}\n" for failure in failures)
            sys.stdout.flush()
            failed = failed or bool(failures)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
