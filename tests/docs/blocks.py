"""The fenced code blocks of README.md and docs/*.md, and the flags that say how to run them.

Blocks in `sh`, `console`, `python` and `js` are run. Flags after the language change that:

- `not-run`: the block needs something that is missing here; docs/README.md lists its page
- `varies`: do not compare the output of a `console` block
- `file=NAME`: write the block to this file, for the blocks after it, and do not run it
- `env=NAME`: run the `python` block in this environment of tests/conformance
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
RUNNABLE = ("sh", "console", "python", "js")
DATA_LANGUAGES = ("", "json", "toml", "yaml", "nginx", "diff")  # only shown, never run
_FENCE = re.compile(
    r"^(?P<fence>```+)(?P<info>[^\n]*)\n(?P<text>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL
)
_FLAG = re.compile(r"not-run|varies|file=[\w.-]+|env=[\w-]+")


@dataclass(frozen=True)
class Block:
    """A code block. `line` is the number of its first line in the page."""

    page: str
    line: int
    language: str
    flags: tuple[str, ...]
    text: str

    @property
    def name(self):
        return f"{self.page}:{self.line}"

    @property
    def is_runnable(self):
        return self.language in RUNNABLE and "not-run" not in self.flags

    @property
    def is_known(self):
        languages = (*RUNNABLE, *DATA_LANGUAGES)
        return self.language in languages and all(map(_FLAG.fullmatch, self.flags))

    def option(self, key):
        """The value of the flag `key=VALUE`; None if the block has no such flag."""
        prefix = f"{key}="
        return next((f.removeprefix(prefix) for f in self.flags if f.startswith(prefix)), None)


def pages():
    """The README and the pages of docs/, without the decisions, relative to the root."""
    found = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    return [path.relative_to(ROOT).as_posix() for path in found]


def decisions():
    """The pages of docs/decisions/, its README included, relative to the root."""
    return [p.relative_to(ROOT).as_posix() for p in sorted((ROOT / "docs/decisions").glob("*.md"))]


def blocks_of(page):
    """The blocks of a page, in order."""
    content = (ROOT / page).read_text()
    return [_block(page, content, match) for match in _FENCE.finditer(content)]


def _block(page, content, match):
    language, *flags = match["info"].split() or [""]
    line = content.count("\n", 0, match.start()) + 1
    return Block(page, line, language, tuple(flags), match["text"])
