"""Generates the page on settings: `python -m server.document.settings_page > docs/settings.md`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from server.cli.commands.options import choices_of, format_value
from server.config.settings import FIELDS, STAGE_FIELDS, StageSettings
from stages.contract.roles import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic.fields import FieldInfo

HEAD = """\
# Settings

This page is generated: `python -m server.document.settings_page > docs/settings.md`.

There are three ways to set a setting. If it is set in several ways, the first of these wins:

1. an option of `nano-omni serve`: `--max-running 4`
2. an environment variable: `NANO_OMNI_MAX_RUNNING=4`
3. the settings file, in TOML: `max_running = 4`

Some settings are more than one value:

- **A list** has commas, or the option is repeated: `--model A,B` or `--model A --model B`,
  `NANO_OMNI_MODEL=A,B`, `model = ["A", "B"]`.
- **A mapping** has pairs: `--aliases tts-1=A,gpt-audio=B`, `NANO_OMNI_ALIASES=tts-1=A,gpt-audio=B`,
  and in the file a table, `[aliases]` with `tts-1 = "A"` and `gpt-audio = "B"`.
- **A setting of one stage** has the stage's role in its name: `--stages.talker.device cuda:0`,
  `NANO_OMNI_STAGES__TALKER__DEVICE=cuda:0`, and in the file `device` in the table
  `[stages.talker]`. They are [at the end](#settings-of-one-stage).

Name the file with `--config` or `NANO_OMNI_CONFIG`. Without them it is
`$XDG_CONFIG_HOME/nano-omni/config.toml` (usually `~/.config/nano-omni/config.toml`), if it exists:

```toml
host = "0.0.0.0"
port = 9000
api_keys_file = "~/keys.txt"
cors_origins = ["https://example.org"]

[stages.talker]
device = "cuda:0"
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
STAGE_HEAD = f"""
## Settings of one stage

A stage has the general settings, such as `device`, unless a setting for its role is set. `ROLE` is
one of {", ".join(f"`{role}`" for role in Role)}. [scaling.md](scaling.md) shows examples.

| setting | default | meaning |
|---|---|---|
"""


def page() -> str:
    """The text of the page."""
    general = {name: field for name, field in FIELDS.items() if name not in STAGE_FIELDS}
    of_stages = {f"stages.ROLE.{key}": field for key, field in StageSettings.model_fields.items()}
    return HEAD + _rows(general) + STAGE_HEAD + _rows(of_stages)


def _rows(fields: Mapping[str, FieldInfo]) -> str:
    return "".join(f"{_row(name, field)}\n" for name, field in fields.items())


def _row(name: str, field: FieldInfo) -> str:
    text = " ".join((field.description or "").split())
    choices = choices_of(field)
    values = f" One of {', '.join(f'`{choice}`' for choice in choices)}." if choices else ""
    return f"| `{name}` | {format_value(field.default)} | {text}{values} |"


if __name__ == "__main__":
    sys.stdout.write(page())
