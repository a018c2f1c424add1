"""Generates the page on settings: `python -m server.document.settings_page > docs/settings.md`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from server.cli.commands.options import choices_of, format_value
from server.config.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = """\
# Settings

This page is generated: `python -m server.document.settings_page > docs/settings.md`.

There are three ways to set a setting. If it is set in several ways, the first of these wins:

1. an option of `nano-omni serve`: `--max-running 4`
2. an environment variable: `NANO_OMNI_MAX_RUNNING=4`
3. the settings file, in TOML: `max_running = 4`

Name the file with `--config` or `NANO_OMNI_CONFIG`. Without them it is
`$XDG_CONFIG_HOME/nano-omni/config.toml` (usually `~/.config/nano-omni/config.toml`), if it exists:

```toml
host = "0.0.0.0"
port = 9000
api_keys_file = "~/keys.txt"
cors_origins = ["https://example.org"]
```

`nano-omni config` shows the value of each setting and where it comes from. Of API keys it shows
only their number. Unknown names and invalid values are errors.

`api_keys` is not a command line option, because other users of the machine can see command lines.
`say`, `chat` and `models` take the settings that choose models and devices.

`NANO_OMNI_API_KEY` is not a setting: it is the API key that `chat --url`, `bench`, `selftest` and
`trace` send to a server.

| setting | default | meaning |
|---|---|---|
"""


def page() -> str:
    """The text of the page."""
    return HEAD + "".join(f"{row}\n" for row in _rows())


def _rows() -> Iterator[str]:
    for name, field in Settings.model_fields.items():
        text = " ".join((field.description or "").split())
        choices = choices_of(field)
        values = f" One of {', '.join(f'`{choice}`' for choice in choices)}." if choices else ""
        yield f"| `{name}` | {format_value(field.default)} | {text}{values} |"


if __name__ == "__main__":
    sys.stdout.write(page())
