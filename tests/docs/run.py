"""`make docs`: runs the code blocks of the pages against a server with the embedded models.

`python -m tests.docs.run [PAGE...]` runs only the named pages. The server listens on a free port,
which replaces 8000 in every block. Each page runs in a folder of its own. `nano-omni` is that of
this checkout, and `ffplay` is a script that only checks that it gets audio.
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

TIMEOUT_S = 180
SHIMS = {
    "nano-omni": f'exec "{sys.executable}" -m server.cli.main "$@"',
    "python": f'exec "{sys.executable}" "$@"',
    "ffplay": '[ "$(wc -c)" -gt 1000 ]',
}


@contextmanager
def running_server():
    """Run a server with the embedded models and debug routes. Yields its port."""
    options = ("--port", "0", "--debug-routes", "--log-level", "warning")
    command = (sys.executable, "-u", "-m", "server.cli.main", "serve", *options)
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        ready_line = next((line for line in server.stdout if " is ready on " in line), "")
        yield re.search(r":(\d+)/v1", ready_line)[1]
    finally:
        server.terminate()
        server.communicate(timeout=60)


def commands_of(text):
    """Each command of a console block, with the output that the block shows for it."""
    lines = text.splitlines()
    while lines:
        command = lines.pop(0).removeprefix("$ ")
        while lines and _is_incomplete(command):
            command += "\n" + lines.pop(0)
        output = []
        while lines and not lines[0].startswith("$ "):
            output.append(lines.pop(0))
        yield command, "\n".join(output)


def _is_incomplete(command):
    """Whether the shell needs more lines to complete the command."""
    checked = subprocess.run(("bash", "-n", "-c", command), capture_output=True, text=True)
    return bool(checked.stderr) or command.endswith("\\")


def matches(shown, printed):
    """Whether the output shown on a page matches what was printed. `...` matches anything."""
    pattern = ".*".join(map(re.escape, shown.strip().split("...")))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


class Page:
    """Runs the blocks of a page in order in one folder. `port` replaces 8000."""

    def __init__(self, page, folder, port="8000"):
        self._page, self._folder, self._port = page, folder, port
        shims = folder / ".bin"
        shims.mkdir()
        for name, script in SHIMS.items():
            (shims / name).write_text(f"#!/bin/sh\n{script}\n")
            (shims / name).chmod(0o755)
        path = os.pathsep.join((str(shims), os.environ["PATH"]))  # noqa: TID251
        variables = {"PATH": path, "PYTHONPATH": f"{folder}:{ROOT}"}
        self._env = {**os.environ, **variables}  # noqa: TID251 - the commands inherit it

    def failures(self):
        """Run the blocks. Yields a line for each block that failed."""
        for block in blocks_of(self._page):
            if block.is_runnable and (failure := self._run(block)):
                yield f"{block.name}: {failure}"

    def _run(self, block):
        """Run a block. Returns a description of the failure, or an empty string."""
        text = re.sub(r"\b8000\b", self._port, block.text)
        if name := block.option("file"):
            (self._folder / name).write_text(text)
            return ""
        if block.language == "console":
            return self._run_console(text, compare="varies" not in block.flags)
        return self._failure(self._command(block, text))

    def _command(self, block, text):
        if block.language == "sh":
            return ("bash", "-euo", "pipefail", "-c", text)
        if block.language == "js":
            script = node_home() / "page.mjs"
            script.write_text(text)
            return ("node", script)
        environment = block.option("env")
        return (python_of(environment) if environment else sys.executable, "-c", text)

    def _run_console(self, text, compare):
        for command, shown in commands_of(text):
            done = self._execute(("bash", "-o", "pipefail", "-c", command))
            if shown and compare:
                if not matches(shown, done.stdout + done.stderr):
                    return f"{command!r} printed {done.stdout + done.stderr!r}"
            elif done.returncode:
                return f"{command!r} ended with {done.returncode}: {done.stderr[-800:]}"
        return ""

    def _failure(self, command):
        done = self._execute(command)
        return f"ended with {done.returncode}: {done.stderr[-800:]}" if done.returncode else ""

    def _execute(self, command):
        return subprocess.run(
            command,
            cwd=self._folder,
            env=self._env,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )


def main():
    """Run the named pages, or all of them. Return the exit status."""
    has_failed = False
    with running_server() as port:
        for page in sys.argv[1:] or pages():
            with tempfile.TemporaryDirectory() as folder:
                failures = list(Page(page, Path(folder), port).failures())
            num_blocks = sum(block.is_runnable for block in blocks_of(page))
            num_passed = num_blocks - len(failures)
            sys.stdout.write(f"{page:28} {num_passed:3} of {num_blocks} blocks passed\n")
            sys.stdout.writelines(f"  {failure}\n" for failure in failures)
            sys.stdout.flush()
            has_failed = has_failed or bool(failures)
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main())
