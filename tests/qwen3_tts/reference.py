"""Stores what the public `qwen-tts` package computes from the small checkpoints, or compares it.

It runs in an environment of its own (`requirements/qwen3-tts-reference.txt`):

    .venvs/qwen/bin/python -m tests.qwen3_tts.reference --check

`--write` stores two things: the names and shapes of the tensors (`layout.json`, also for the sizes
of the public checkpoints, which the GPU benchmark uses), and the values that the tests compare with
(`reference.safetensors`).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors.numpy import load_file, save_file

from benchmarks.gpu import sizes as real
from tests.qwen3_tts import sizes
from tests.qwen3_tts.cases import CASES, NUM_FRAMES, REFERENCE_TEXT, TEXTS, reference_audio
from tests.qwen3_tts.checkpoint import KINDS, LAYOUT, write_checkpoint
from tests.qwen3_tts.stored import VALUES

if TYPE_CHECKING:
    from collections.abc import Iterator


REAL_LAYOUT = Path(real.__file__).parent / "layout.json"
LOGIT_FRAMES = 8
CODE2WAV_FRAMES = 32
TOLERANCE = 1e-4


def _stand_in_for_torchaudio() -> None:
    """Replace torchaudio by empty modules.

    Only the 25 Hz tokenizer uses it, and the package on PyPI does not load beside a CPU-only torch.
    """
    for name in ("torchaudio", "torchaudio.compliance", "torchaudio.compliance.kaldi"):
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        sys.modules[name] = module


def main() -> int:
    """Store or compare. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true")
    action.add_argument("--check", action="store_true")
    options = parser.parse_args()
    _stand_in_for_torchaudio()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layouts = {LAYOUT: _layout(_small_configs()), REAL_LAYOUT: _layout(_real_configs())}
    if options.write:
        for path, layout in layouts.items():
            path.write_text(_compact(layout))
    with tempfile.TemporaryDirectory() as folder:
        values = _values(Path(folder))
    if options.write:
        save_file(values, VALUES)
        _print(f"{VALUES}: {VALUES.stat().st_size} bytes, {len(values)} tensors")
        return 0
    problems = _differences(values, load_file(VALUES))
    for path, layout in layouts.items():
        if layout != json.loads(path.read_text()):
            problems.append(f"{path} differs from the layout of the package")
    _print("\n".join(problems) or f"{len(values)} tensors equal the stored ones")
    return 1 if problems else 0


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _compact(layout: dict[str, dict[str, list[int]]]) -> str:
    """JSON with one tensor per line."""
    parts = []
    for part, shapes in layout.items():
        lines = ",\n".join(f"  {json.dumps(name)}: {shape}" for name, shape in shapes.items())
        parts.append(f" {json.dumps(part)}: {{\n{lines}\n }}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _small_configs() -> dict[str, dict[str, Any]]:
    return {kind: sizes.model_config(kind) for kind in KINDS}


def _real_configs() -> dict[str, dict[str, Any]]:
    return {size: real.model_config(size) for size in real.TALKERS}


def _layout(configs: dict[str, dict[str, Any]]) -> dict[str, dict[str, list[int]]]:
    """The names and shapes of the tensors of each model file."""
    from qwen_tts.core.models.configuration_qwen3_tts import Qwen3TTSConfig
    from qwen_tts.core.models.modeling_qwen3_tts import Qwen3TTSForConditionalGeneration
    from qwen_tts.core.tokenizer_12hz.configuration_qwen3_tts_tokenizer_v2 import (
        Qwen3TTSTokenizerV2Config,
    )
    from qwen_tts.core.tokenizer_12hz.modeling_qwen3_tts_tokenizer_v2 import (
        Qwen3TTSTokenizerV2Model,
    )

    speech = sizes.SPEECH_TOKENIZER if KINDS[0] in configs else real.SPEECH_TOKENIZER
    with torch.device("meta"):
        models: dict[str, Any] = {
            name: Qwen3TTSForConditionalGeneration(Qwen3TTSConfig(**config))
            for name, config in configs.items()
        }
        config = Qwen3TTSTokenizerV2Config(**speech)
        models["speech_tokenizer"] = Qwen3TTSTokenizerV2Model(config)
    return {
        part: {name: list(tensor.shape) for name, tensor in sorted(model.state_dict().items())}
        for part, model in models.items()
    }


def _values(folder: Path) -> dict[str, Any]:
    from qwen_tts import Qwen3TTSModel

    values: dict[str, Any] = {}
    for kind in KINDS:
        path = write_checkpoint(folder / kind, kind)
        tts = Qwen3TTSModel.from_pretrained(str(path), dtype=torch.float32)
        for case in (case for case in CASES if case.kind == kind):
            for name, value in _run(tts, case).items():
                values[f"{case.name}.{name}"] = value
        if kind == "base":
            values |= _reference_audio(tts)
    for i, text in enumerate(TEXTS):
        values[f"text.{i}"] = tts.processor(text=text, return_tensors="np")["input_ids"][0]
    values |= _code2wav_values(tts, values[f"{CASES[0].name}.codes"])
    return {name: np.ascontiguousarray(value) for name, value in values.items()}


def _run(tts: Any, case: Any) -> dict[str, Any]:
    """The prompt, the first logits of both models, and the codes of a greedy speech."""
    talker = tts.model.talker
    prompts: list[Any] = []
    generate = talker.generate

    def recorded(**arguments: Any) -> Any:
        prompts.append(arguments)
        return generate(**arguments)

    talker.generate = recorded
    with _recorded(talker.codec_head) as logits, _recorded(talker.code_predictor.lm_head) as rest:
        codes = _codes(tts, case)
    talker.generate = generate
    return {
        "prompt": prompts[0]["inputs_embeds"][0].numpy(),
        "trailing": prompts[0]["trailing_text_hidden"][0].numpy(),
        "logits": torch.stack([x[0, -1] for x in logits[:LOGIT_FRAMES]]).numpy(),
        "predictor_logits": torch.stack([x[0, -1] for x in rest[: 2 * (sizes.GROUPS - 1)]]).numpy(),
        "codes": codes.numpy(),
    }


@contextmanager
def _recorded(module: Any) -> Iterator[list[Any]]:
    outputs: list[Any] = []
    modules = module if isinstance(module, torch.nn.ModuleList) else [module]
    hooks = [m.register_forward_hook(lambda _m, _i, out: outputs.append(out)) for m in modules]
    yield outputs
    for hook in hooks:
        hook.remove()


def _codes(tts: Any, case: Any) -> Any:
    """The codes of a speech, by the package's own methods in the layout for streamed text."""
    found: list[Any] = []
    generate = tts.model.generate

    def kept(**arguments: Any) -> Any:
        result = generate(**arguments)
        found.append(result[0][0])
        return result

    tts.model.generate = kept
    options = {
        "text": case.text,
        "language": case.language,
        "non_streaming_mode": False,
        "max_new_tokens": NUM_FRAMES + 1,
    }
    if case.kind == "custom_voice":
        tts.generate_custom_voice(speaker=case.speaker, instruct=case.instructions, **options)
    elif case.kind == "voice_design":
        tts.generate_voice_design(instruct=case.instructions, **options)
    else:
        audio = (reference_audio(), 24000)
        text = REFERENCE_TEXT if case.in_context else None
        tts.generate_voice_clone(
            ref_audio=audio, ref_text=text, x_vector_only_mode=not case.in_context, **options
        )
    tts.model.generate = generate
    return found[0]


def _reference_audio(tts: Any) -> dict[str, Any]:
    audio = reference_audio()
    items = tts.create_voice_clone_prompt((audio, 24000), ref_text=REFERENCE_TEXT)
    return {
        "reference.speaker": items[0].ref_spk_embedding.numpy(),
        "reference.codes": items[0].ref_code.numpy(),
    }


def _code2wav_values(tts: Any, codes: Any) -> dict[str, Any]:
    codes = torch.as_tensor(codes[:CODE2WAV_FRAMES])
    samples, _ = tts.model.speech_tokenizer.decode([{"audio_codes": codes}])
    return {"code2wav.codes": codes.numpy(), "code2wav.samples": samples[0].astype(np.float32)}


def _differences(now: dict[str, Any], stored: dict[str, Any]) -> list[str]:
    problems = [f"{name}: only in one of the two" for name in now.keys() ^ stored.keys()]
    for name in sorted(now.keys() & stored.keys()):
        if now[name].shape != stored[name].shape:
            problems.append(f"{name}: {now[name].shape}, stored {stored[name].shape}")
        elif now[name].dtype.kind == "i" and (now[name] != stored[name]).any():
            problems.append(f"{name}: different codes")
        elif np.abs(now[name] - stored[name]).max() > TOLERANCE:
            problems.append(
                f"{name}: {np.abs(now[name] - stored[name]).max():g} apart, more than {TOLERANCE:g}"
            )
    return problems


if __name__ == "__main__":
    sys.exit(main())
