"""Settings: one default each, read from the environment, refused where they do not fit."""

import pytest

from server.settings import SettingsError, load_settings


def test_defaults():
    settings = load_settings({})
    assert (settings.host, settings.port, settings.model) == ("127.0.0.1", 8000, "embedded")
    assert settings.max_input_chars == 4096


def test_what_is_given_beats_the_environment(monkeypatch):
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
def test_a_value_that_does_not_fit_is_one_line(monkeypatch, name, value):
    monkeypatch.setenv(f"NANO_OMNI_{name.upper()}", value)
    with pytest.raises(SettingsError, match=f"setting {name}: ") as refused:
        load_settings({})
    assert "\n" not in str(refused.value)


def test_lists_are_told_apart_by_commas_and_spaces(monkeypatch):
    monkeypatch.setenv("NANO_OMNI_CORS_ORIGINS", "https://a.example, http://localhost:3000")
    monkeypatch.setenv("NANO_OMNI_API_KEYS", "one,two three")
    settings = load_settings({})
    assert settings.cors_origins == ("https://a.example", "http://localhost:3000")
    assert len(set(settings.api_keys)) == 3


@pytest.mark.parametrize(
    "origin", ["a.example", "https://a.example/", "https://a.example/page", "**"]
)
def test_an_origin_has_a_scheme_and_no_path(monkeypatch, origin):
    monkeypatch.setenv("NANO_OMNI_CORS_ORIGINS", origin)
    with pytest.raises(SettingsError, match="cors_origins"):
        load_settings({})
