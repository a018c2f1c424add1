"""The fenced blocks of README.md and docs/*.md: what is in them, and how each is meant.

The words after a block's language say it. Without any, `sh`, `console`, `python` and `js` are run:

- `not-run`: needs what is not here; the page is listed as such in docs/README.md
- `varies`: the output of a `console` block is not compared
- `file=NAME`: is written under that name, for the blocks after it, and not run
- `env=NAME`: `python` runs in that environment of tests/conformance
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
RUNNABLE = ("sh", "console", "python", "js")
SHOWN = ("", "json", "toml", "yaml", "nginx", "diff")  # nothing to run
_FENCE = re.compile(
    r"^(?P<fence>```+)(?P<info>[^\n]*)\n(?P<text>.*?)^(?P=fence)$", re.MULTILINE | re.DOTALL
)
_WORD = re.compile(r"not-run|varies|file=[\w.-]+|env=[\w-]+")


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    words: tuple[str, ...]
    text: str

    @property
    def name(self):
        return f"{self.page}:{self.line}"

    @property
    def runs(self):
        return self.language in RUNNABLE and "not-run" not in self.words

    @property
    def is_known(self):
        return self.language in (*RUNNABLE, *SHOWN) and all(map(_WORD.fullmatch, self.words))

    def value(self, key):
        """What follows `key=` after the language; None where it is not there."""
        return next(
            (w.removeprefix(f"{key}=") for w in self.words if w.startswith(f"{key}=")), None
        )


def pages():
    """The README and the pages of docs/, from the root. Decisions are apart."""
    found = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    return [path.relative_to(ROOT).as_posix() for path in found]


def decisions():
    """The pages of docs/decisions/, its list too, from the root."""
    return [p.relative_to(ROOT).as_posix() for p in sorted((ROOT / "docs/decisions").glob("*.md"))]


def blocks_of(page):
    """A page's blocks, in order."""
    content = (ROOT / page).read_text()
    return [_block(page, content, match) for match in _FENCE.finditer(content)]


def _block(page, content, match):
    language, *words = match["info"].split() or [""]
    line = content.count("\n", 0, match.start()) + 1
    return Block(page, line, language, tuple(words), match["text"])
