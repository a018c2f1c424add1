"""Makes docs/settings.md from the settings.

`python -m server.document.settings_page > docs/settings.md`
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from server.cli.commands.options import choices_of, shown
from server.config.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = """\
# Settings

Written by `python -m server.document.settings_page > docs/settings.md`; a test holds it to the
code.

A setting is given, and the first of these counts,

1. as an option of `nano-omni serve`: `--max-running 4`,
2. as an environment variable: `NANO_OMNI_MAX_RUNNING=4`,
3. in the settings file, which is TOML: `max_running = 4`.

The file is the one that `--config` or `NANO_OMNI_CONFIG` names, else
`~/.config/nano-omni/config.toml` (below `$XDG_CONFIG_HOME`) if it is there:

```toml
host = "0.0.0.0"
port = 9000
api_keys_file = "~/keys.txt"
cors_origins = ["https://example.org"]
```

`nano-omni config` shows what is in force and where each value comes from; of keys only how many
there are. A name that is no setting is an error, and so is a value that does not fit. `api_keys` is
no option, because other users of the machine see command lines. `say`, `chat` and `models` take
those that say what to run. `NANO_OMNI_API_KEY` is the key that `chat --url`, `bench` and `selftest`
send to a server.

| setting | default | what it is |
|---|---|---|
"""


def page() -> str:
    """The page."""
    return HEAD + "".join(f"{row}\n" for row in _rows())


def _rows() -> Iterator[str]:
    for name, field in Settings.model_fields.items():
        text = " ".join((field.description or "").split())
        choices = choices_of(field)
        values = f" One of {', '.join(f'`{choice}`' for choice in choices)}." if choices else ""
        yield f"| `{name}` | {shown(field.default)} | {text}{values} |"


if __name__ == "__main__":
    sys.stdout.write(page())
