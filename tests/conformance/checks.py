"""Runs the checks of one module in this folder, in the environment of a client, and reports them.

    python checks.py MODULE URL FAULTY_URL KEY

Each function `check_*` takes the target and raises if the server is wrong. Each check writes one
line of JSON. This file uses only the standard library: the environment belongs to the client.
"""

import importlib
import json
import sys
import traceback
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """A server of fakes, a server whose stages fail after their first output, and their API key."""

    url: str
    faulty_url: str
    key: str


def checks_of(module):
    """The checks of a module, in the order of the file."""
    return [member for name, member in vars(module).items() if name.startswith("check_")]


def run(check, target):
    """Run one check and return its report."""
    name = check.__name__.removeprefix("check_").replace("_", " ")
    try:
        check(target)
    except Exception as error:  # noqa: BLE001 - the report has it
        where = traceback.extract_tb(error.__traceback__)[-1]
        why = f"{type(error).__name__}: {error} ({where.name}:{where.lineno})"
        return {"check": name, "ok": False, "why": why}
    return {"check": name, "ok": True, "why": ""}


def main():
    """Run and report all checks of the module. Failed checks do not change the exit status."""
    name, *target = sys.argv[1:]
    for check in checks_of(importlib.import_module(name)):
        sys.stdout.write(json.dumps(run(check, Target(*target))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
