"""Settings: one default each, three sources, and errors for invalid values."""

from pathlib import Path

import pytest

from server.config.settings import FIELDS, Settings, SettingsError, values_of
from server.config.sources import load, load_settings, variable_of
from server.document.settings_page import page
from stages.contract.roles import Role


@pytest.fixture(autouse=True)
def no_settings_in_the_environment(monkeypatch):
    """Remove settings that the developer's environment may have."""
    for name in FIELDS:
        monkeypatch.delenv(variable_of(name), raising=False)


@pytest.fixture
def settings_file(tmp_path, monkeypatch):
    """The path of the default settings file, which does not exist yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "nano-omni").mkdir()
    return tmp_path / "nano-omni" / "config.toml"


def test_defaults():
    settings = load_settings({})
    assert (settings.host, settings.port, settings.models) == ("127.0.0.1", 8000, ("embedded",))
    assert settings.max_input_chars == 4096


def test_the_command_line_beats_the_environment(monkeypatch):
    monkeypatch.setenv("NANO_OMNI_PORT", "9000")
    monkeypatch.setenv("NANO_OMNI_HOST", "::1")
    settings = load_settings({"port": 9001})
    assert (settings.host, settings.port) == ("::1", 9001)


def test_an_unknown_name_is_an_error(monkeypatch):
    monkeypatch.setenv("NANO_OMNI_PROT", "9000")
    with pytest.raises(SettingsError, match="NANO_OMNI_PROT"):
        load_settings({})


@pytest.mark.parametrize(
    ("name", "value"), [("port", "70000"), ("port", "x"), ("deadline_s", "nan"), ("dtype", "int3")]
)
def test_an_invalid_value_is_an_error_of_one_line(monkeypatch, name, value):
    monkeypatch.setenv(f"NANO_OMNI_{name.upper()}", value)
    with pytest.raises(SettingsError, match=f"setting {name}: ") as refused:
        load_settings({})
    assert "\n" not in str(refused.value)


def test_lists_are_separated_by_commas_and_spaces(monkeypatch):
    monkeypatch.setenv("NANO_OMNI_CORS_ORIGINS", "https://a.example, http://localhost:3000")
    monkeypatch.setenv("NANO_OMNI_API_KEYS", "one,two three")
    settings = load_settings({})
    assert settings.cors_origins == ("https://a.example", "http://localhost:3000")
    assert len(set(settings.api_keys)) == 3


@pytest.mark.parametrize(
    "origin", ["a.example", "https://a.example/", "https://a.example/page", "**"]
)
def test_an_origin_needs_a_scheme_and_has_no_path(monkeypatch, origin):
    monkeypatch.setenv("NANO_OMNI_CORS_ORIGINS", origin)
    with pytest.raises(SettingsError, match="cors_origins"):
        load_settings({})


def test_a_file_beats_the_defaults_only(settings_file, monkeypatch):
    settings_file.write_text('port = 1\nhost = "::1"\nmax_running = 3\n')
    monkeypatch.setenv("NANO_OMNI_HOST", "localhost")
    loaded = load({"port": 2})
    settings = loaded.settings
    assert (settings.port, settings.host, settings.max_running) == (2, "localhost", 3)
    assert loaded.origins == {
        "port": "--port",
        "host": "NANO_OMNI_HOST",
        "max_running": str(settings_file),
    }


def test_an_option_or_a_variable_names_another_file(settings_file, tmp_path, monkeypatch):
    settings_file.write_text("port = 1")
    for name, port in (("a.toml", 2), ("b.toml", 3)):
        (tmp_path / name).write_text(f"port = {port}")
    monkeypatch.setenv("NANO_OMNI_CONFIG", str(tmp_path / "a.toml"))
    assert load_settings({}).port == 2
    assert load_settings({}, tmp_path / "b.toml").port == 3


def test_a_named_file_must_exist(settings_file, tmp_path):
    assert load_settings({}).port == 8000
    with pytest.raises(SettingsError, match=r"no\.toml: No such file"):
        load_settings({}, tmp_path / "no.toml")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("prot = 1", "no setting prot"),
        ("port = ", "config.toml: Invalid value"),
        ("[server]\nport = 1", "no setting server"),
        ('port = "x"', r"setting port: .* \(from .*config.toml\)"),
        ("[stages.speaker]", "no setting stages.speaker; stages are listener, thinker, talker"),
        ("[stages.talker]\ncolour = 1", "no setting stages.talker.colour; .* each has device"),
        ("[stages]\ntalker = 1", "no setting stages.talker; "),
        ("stages = 1", "no setting stages; "),
        ("[stages.talker]\ngpus = -1", r"setting stages.talker.gpus: .* \(from .*config.toml\)"),
        ("model = []", "setting model: .*at least 1 item"),
        ('model = [""]', "setting model: "),
        ("[aliases]\nnova = 1", "setting aliases: "),
    ],
)
def test_an_invalid_file_is_an_error_of_one_line(settings_file, content, said):
    settings_file.write_text(content)
    with pytest.raises(SettingsError, match=said) as refused:
        load_settings({})
    assert "\n" not in str(refused.value)


def test_a_file_may_contain_lists_and_paths_with_a_tilde(settings_file, monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    settings_file.write_text('cors_origins = ["https://a.example"]\ncache_dir = "~/cache"')
    settings = load_settings({})
    assert settings.cors_origins == ("https://a.example",)
    assert settings.cache_dir == Path("/home/somebody/cache")


def test_an_error_does_not_show_a_key(settings_file):
    settings_file.write_text('api_keys = {secret = "sk-secret"}')
    with pytest.raises(SettingsError) as refused:
        load_settings({})
    assert "sk-secret" not in str(refused.value)


@pytest.mark.parametrize("root", ["/", "omni", "/omni/", "/a b"])
def test_a_root_path_begins_with_a_slash_and_ends_without(monkeypatch, root):
    monkeypatch.setenv("NANO_OMNI_ROOT_PATH", root)
    with pytest.raises(SettingsError, match="root_path"):
        load_settings({})


def test_the_settings_of_a_stage_come_from_all_sources(settings_file, monkeypatch):
    settings_file.write_text(
        """
        executor = "process"
        [stages.talker]
        device = "cuda:0"
        dtype = "float32"
        replicas = 2
        [stages.code2wav]
        """
    )
    monkeypatch.setenv("NANO_OMNI_STAGES__TALKER__DTYPE", "bfloat16")
    monkeypatch.setenv("NANO_OMNI_STAGES__TALKER__REPLICAS", "3")
    loaded = load({"stages.talker.replicas": "4"})
    talker = loaded.settings.stages[Role.TALKER]
    assert (talker.device, talker.dtype, talker.replicas) == ("cuda:0", "bfloat16", 4)
    assert (talker.executor, talker.cpus, talker.gpus) == (None, None, None)
    assert loaded.origins == {
        "executor": str(settings_file),
        "stages.talker.device": str(settings_file),
        "stages.talker.dtype": "NANO_OMNI_STAGES__TALKER__DTYPE",
        "stages.talker.replicas": "--stages.talker.replicas",
    }


def test_every_role_has_settings():
    assert list(Settings().stages) == list(Role)
    assert list(Settings(stages={"talker": {"cpus": 2}}).stages) == list(Role)


@pytest.mark.parametrize(
    "variable", ["STAGES", "STAGES__SPEAKER__DEVICE", "STAGES__TALKER__COLOUR", "TALKER_DEVICE"]
)
def test_a_variable_of_an_unknown_role_or_key_is_an_error(monkeypatch, variable):
    monkeypatch.setenv(f"NANO_OMNI_{variable}", "cpu")
    with pytest.raises(SettingsError, match=f"there is no setting NANO_OMNI_{variable}(;|$)"):
        load_settings({})


def test_a_bad_value_for_a_stage_names_its_variable(monkeypatch):
    monkeypatch.setenv("NANO_OMNI_STAGES__TALKER__DEVICE", "tpu")
    with pytest.raises(
        SettingsError, match=r"stages\.talker\.device: .* \(from NANO_OMNI_STAGES__T"
    ):
        load_settings({})


@pytest.mark.parametrize(
    ("content", "models"),
    [
        ('model = "/a b/c"', ("/a b/c",)),
        ('model = "fake, piper-joe"', ("fake", "piper-joe")),
        ('model = ["fake", "/a,b"]', ("fake", "/a,b")),
    ],
)
def test_models_are_one_or_a_list(settings_file, content, models):
    settings_file.write_text(content)
    assert load_settings({}).models == models


def test_aliases_are_a_table_or_pairs(settings_file, monkeypatch):
    aliases = {"tts-1": "a", "gpt-audio": "b/c"}
    settings_file.write_text('[aliases]\ntts-1 = "a"\ngpt-audio = "b/c"')
    assert load_settings({}).aliases == aliases
    settings_file.unlink()
    monkeypatch.setenv("NANO_OMNI_ALIASES", "tts-1=a, gpt-audio=b/c")
    assert load_settings({}).aliases == aliases


@pytest.mark.parametrize("given", ["tts-1", "=a", "tts-1=", "tts-1=a,tts-1=b"])
def test_a_bad_alias_is_an_error(given):
    with pytest.raises(SettingsError, match=r"setting aliases: .* \(from --aliases\)"):
        load_settings({"aliases": given})


def test_values_are_listed_by_name():
    values = values_of(Settings(model="fake", stages={"talker": {"device": "cpu"}}))
    assert list(values) == list(FIELDS)
    assert (values["model"], values["stages.talker.device"]) == (("fake",), "cpu")


def test_every_setting_has_a_description():
    assert all(field.description for field in FIELDS.values())


def test_the_page_of_settings_is_up_to_date():
    assert (Path(__file__).parents[3] / "docs" / "settings.md").read_text() == page()
