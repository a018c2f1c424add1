"""Runs the checks of one module beside it, in whatever environment this is, and reports them.

    python checks.py MODULE URL FAULTY_URL KEY

Each function `check_*` takes the target and raises if the server is not as it must be. One line of
JSON for each. Only the standard library: the environment belongs to the client that is checked.
"""

import importlib
import json
import sys
import traceback
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A server of fakes, one whose stages fail after their first output, and the key to both."""

    url: str
    faulty_url: str
    key: str


def checks_of(module):
    """The checks of a module, in the order in which they are written."""
    return [member for name, member in vars(module).items() if name.startswith("check_")]


def run(check, target):
    """The report of one check."""
    name = check.__name__.removeprefix("check_").replace("_", " ")
    try:
        check(target)
    except Exception as error:  # noqa: BLE001 - the outermost frame: it is the report
        where = traceback.extract_tb(error.__traceback__)[-1]
        why = f"{type(error).__name__}: {error} ({where.name}:{where.lineno})"
        return {"check": name, "ok": False, "why": why}
    return {"check": name, "ok": True, "why": ""}


def main():
    """All checks of the module that is named; the exit status is that of the run itself."""
    name, *target = sys.argv[1:]
    for check in checks_of(importlib.import_module(name)):
        sys.stdout.write(json.dumps(run(check, Target(*target))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
