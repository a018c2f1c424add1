"""The configuration of a Qwen3-TTS checkpoint: sizes, codes, speakers, languages, sampling.

Read from `config.json` and `generation_config.json`. A CheckpointError names the file and the field
that is wrong. The fields are documented with the public `qwen-tts` package. Torch-free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stages.contract.errors import CheckpointError
from stages.weights.json_file import read_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MODEL_TYPE = "qwen3_tts"
KINDS = ("custom_voice", "voice_design", "base")
TOKENIZER_TYPE = "qwen3_tts_tokenizer_12hz"
# The last ids of the talker's vocabulary are control codes. Only EOS among them may be sampled.
NUM_CONTROL_CODES = 1024


@dataclass(frozen=True, slots=True)
class LayerSizes:
    """Sizes of a decoder-only transformer."""

    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocab_size: int
    max_tokens: int
    rope_theta: float
    rms_eps: float
    qkv_bias: bool


@dataclass(frozen=True, slots=True)
class ControlCodes:
    """Ids of the talker's vocabulary that are not audio."""

    pad: int
    bos: int
    eos: int
    think: int
    no_think: int
    think_bos: int
    think_eos: int


@dataclass(frozen=True, slots=True)
class TextControlTokens:
    """Text tokens that control the talker."""

    im_start: int
    im_end: int
    pad: int
    bos: int
    eos: int


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    """How a code is chosen: greedily (`temperature` 0), or sampled from the most likely codes."""

    temperature: float
    top_k: int
    top_p: float


@dataclass(frozen=True, slots=True)
class SpeakerEncoderSizes:
    """Sizes of the network that computes a speaker embedding."""

    size: int
    channels: tuple[int, ...]
    kernels: tuple[int, ...]
    dilations: tuple[int, ...]
    res2net_scale: int
    mel_bins: int


@dataclass(frozen=True, slots=True)
class QwenTtsConfig:
    """The configuration of one checkpoint.

    `languages` and `speakers` map names to codes. `dialects` maps the speakers of a dialect to its
    language. The talker samples the first code of a frame by `first`; the code predictor samples
    the others by `rest`.
    """

    kind: str
    follows_instructions: bool
    talker: LayerSizes
    predictor: LayerSizes
    num_groups: int
    text_vocab_size: int
    text_hidden_size: int
    control: ControlCodes
    text: TextControlTokens
    languages: Mapping[str, int]
    speakers: Mapping[str, int]
    dialects: Mapping[str, str]
    speaker_encoder: SpeakerEncoderSizes
    first: SamplingConfig
    rest: SamplingConfig
    repetition_penalty: float
    max_frames: int


class _Section:
    """A JSON object with typed access to its values."""

    def __init__(self, path: Path, values: Mapping[str, Any], name: str = "") -> None:
        self._path = path
        self._values = values
        self._name = name

    def part(self, key: str) -> _Section:
        return _Section(self._path, self._get(key, dict, {}), f"{self._name}{key}.")

    def integer(self, key: str, default: int | None = None) -> int:
        return int(self._get(key, int, default))

    def number(self, key: str, default: float | None = None) -> float:
        return float(self._get(key, (int, float), default))

    def flag(self, key: str, *, default: bool) -> bool:
        return bool(self._get(key, bool, default))

    def text(self, key: str, default: str | None = None) -> str:
        return str(self._get(key, str, default))

    def integers(self, key: str, default: list[int]) -> tuple[int, ...]:
        return tuple(int(n) for n in self._get(key, list, default))

    def table(self, key: str) -> dict[str, Any]:
        return dict(self._get(key, dict, {}))

    def _get(self, key: str, kind: type | tuple[type, ...], default: Any) -> Any:
        value = self._values.get(key)
        value = default if value is None else value
        if value is None or not isinstance(value, kind):
            found = "is missing" if value is None else f"is {value!r}"
            raise CheckpointError(f"{self._path}: '{self._name}{key}' {found}")
        return value


def read_config(folder: Path) -> QwenTtsConfig:
    """Read the configuration of the checkpoint in `folder`. Raises CheckpointError."""
    path = folder / "config.json"
    top = _Section(path, read_json(path))
    kind = _checked_kind(path, top)
    talker = top.part("talker_config")
    predictor = talker.part("code_predictor_config")
    _check_rotary(path, talker)
    generation = _Section(
        folder / "generation_config.json", read_json(folder / "generation_config.json")
    )
    dialects = talker.table("spk_is_dialect")
    return QwenTtsConfig(
        kind=kind,
        # The 0.6B CustomVoice was not trained on instructions; qwen-tts drops them too.
        follows_instructions=kind == "voice_design"
        or (kind == "custom_voice" and top.text("tts_model_size", "") != "0b6"),
        talker=_sizes(talker),
        predictor=_sizes(predictor),
        num_groups=talker.integer("num_code_groups"),
        text_vocab_size=talker.integer("text_vocab_size", 151936),
        text_hidden_size=talker.integer("text_hidden_size"),
        control=_control_codes(talker),
        text=_text_control_tokens(top),
        languages={name.lower(): int(i) for name, i in talker.table("codec_language_id").items()},
        speakers={name.lower(): int(i) for name, i in talker.table("spk_id").items()},
        dialects={name.lower(): str(language) for name, language in dialects.items() if language},
        speaker_encoder=_speaker_encoder(top.part("speaker_encoder_config")),
        first=_sampling(generation, ""),
        rest=_sampling(generation, "subtalker_"),
        repetition_penalty=generation.number("repetition_penalty", 1.05),
        max_frames=generation.integer("max_new_tokens", 8192),
    )


def _checked_kind(path: Path, top: _Section) -> str:
    """The kind of the checkpoint. Raises CheckpointError if it cannot be served."""
    model_type = top.text("model_type", "")
    if model_type != MODEL_TYPE:
        raise CheckpointError(f"{path}: this is no Qwen3-TTS model (model_type is {model_type!r})")
    tokenizer, kind = top.text("tokenizer_type", ""), top.text("tts_model_type", "")
    if tokenizer != TOKENIZER_TYPE:
        raise CheckpointError(
            f"{path}: tokenizer_type is {tokenizer!r}; only the 12 Hz family is supported"
        )
    if kind not in KINDS:
        raise CheckpointError(f"{path}: tts_model_type is {kind!r}, not one of {', '.join(KINDS)}")
    return kind


def _check_rotary(path: Path, talker: _Section) -> None:
    """Check that the multimodal axes together cover all rotary frequencies of a head.

    Then positions of text and audio, which are equal on all axes, are plain rotary positions.
    """
    scaling = talker.part("rope_scaling")
    kind = scaling.text("rope_type", scaling.text("type", "default"))
    sections = scaling.integers("mrope_section", [])
    if kind != "default" or (sections and 2 * sum(sections) != talker.integer("head_dim")):
        raise CheckpointError(f"{path}: rope_scaling ({kind}, {list(sections)}) is not supported")


def _sizes(part: _Section) -> LayerSizes:
    if part.text("hidden_act", "silu") != "silu" or part.flag("use_sliding_window", default=False):
        raise CheckpointError("only gated SiLU layers with full attention are supported")
    hidden, heads = part.integer("hidden_size"), part.integer("num_attention_heads")
    return LayerSizes(
        hidden_size=hidden,
        intermediate_size=part.integer("intermediate_size"),
        num_layers=part.integer("num_hidden_layers"),
        num_heads=heads,
        num_kv_heads=part.integer("num_key_value_heads"),
        head_dim=part.integer("head_dim", hidden // heads),
        vocab_size=part.integer("vocab_size"),
        max_tokens=part.integer("max_position_embeddings", 32768),
        rope_theta=part.number("rope_theta"),
        rms_eps=part.number("rms_norm_eps", 1e-6),
        qkv_bias=part.flag("attention_bias", default=False),
    )


def _control_codes(talker: _Section) -> ControlCodes:
    return ControlCodes(
        pad=talker.integer("codec_pad_id"),
        bos=talker.integer("codec_bos_id"),
        eos=talker.integer("codec_eos_token_id"),
        think=talker.integer("codec_think_id"),
        no_think=talker.integer("codec_nothink_id"),
        think_bos=talker.integer("codec_think_bos_id"),
        think_eos=talker.integer("codec_think_eos_id"),
    )


def _text_control_tokens(top: _Section) -> TextControlTokens:
    return TextControlTokens(
        im_start=top.integer("im_start_token_id", 151644),
        im_end=top.integer("im_end_token_id", 151645),
        pad=top.integer("tts_pad_token_id", 151671),
        bos=top.integer("tts_bos_token_id", 151672),
        eos=top.integer("tts_eos_token_id", 151673),
    )


def _speaker_encoder(part: _Section) -> SpeakerEncoderSizes:
    return SpeakerEncoderSizes(
        size=part.integer("enc_dim", 1024),
        channels=part.integers("enc_channels", [512, 512, 512, 512, 1536]),
        kernels=part.integers("enc_kernel_sizes", [5, 3, 3, 3, 1]),
        dilations=part.integers("enc_dilations", [1, 2, 3, 4, 1]),
        res2net_scale=part.integer("enc_res2net_scale", 8),
        mel_bins=part.integer("mel_dim", 128),
    )


def _sampling(generation: _Section, prefix: str) -> SamplingConfig:
    """The sampling by the file. Missing values have the defaults of the public package."""
    if not generation.flag("subtalker_dosample" if prefix else "do_sample", default=True):
        return SamplingConfig(0.0, 0, 1.0)
    return SamplingConfig(
        generation.number(f"{prefix}temperature", 0.9),
        generation.integer(f"{prefix}top_k", 50),
        generation.number(f"{prefix}top_p", 1.0),
    )
