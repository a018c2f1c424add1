"""Voices that are added while the server runs, held-out texts read back, and captions of a chat."""

import base64
from functools import partial

import httpx2
import pytest

from benchmarks.held_texts import TEXTS
from benchmarks.read_back import num_errors, words
from server.config.settings import Settings
from server.serving.service import Service
from stages.models.registry import build
from stages.runtime.placement import BuildConfig, Placement
from tests.deployments import placed
from tests.server.loopback import serving
from tests.stages.weights.onnx_writer import write_voice

pytestmark = pytest.mark.model

HELLO = {"model": "tts-1", "input": "Hello there, my friend.", "response_format": "pcm", "seed": 1}
KINDS = ("money", "dates", "units", "abbreviations", "markdown", "lists", "links", "emoji")


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_a_new_voice_can_be_used_after_a_reload(model_cache_dir, tmp_path, executor):
    on = Placement(executor=executor)
    config = BuildConfig(model_cache_dir, placed(on, on, on), voices_dir=tmp_path)
    service = Service(Settings(port=0), partial(build, ["piper-joe"], config))
    with serving(service, start_s=120) as address:
        speech, reload = (
            partial(httpx2.post, f"{address.url}/v1/audio/{path}", timeout=60)
            for path in ("speech", "voices/reload")
        )
        before = speech(json={**HELLO, "voice": "toy"})
        write_voice(tmp_path, "toy", "low", 2)
        (tmp_path / "broken.onnx").write_bytes(b"no")
        listed = reload().json()["voices"]
        sounds = [
            speech(json={**HELLO, "voice": "toy", "speaker": speaker}) for speaker in (0, "s1")
        ]
        write_voice(tmp_path, "toy", "low", 2, seed=5)
        reload()
        replaced = speech(json={**HELLO, "voice": "toy", "speaker": 0})
        joe = speech(json={**HELLO, "voice": "joe"})
    assert before.status_code == 400
    assert [voice["id"] for voice in listed] == ["joe", "toy"]
    assert {reply.status_code for reply in (*sounds, replaced, joe)} == {200}
    assert len({reply.content for reply in (*sounds, replaced, joe)}) == 4


def test_speech_recognition_returns_the_held_out_texts(url, transcribe):
    """One text each of some kinds. `make read-back` tests all texts, beside the reference."""
    chosen = {kind: (text, reading) for kind, text, reading in TEXTS if kind in KINDS}
    wrong = num_words = 0
    for text, reading in chosen.values():
        body = {**HELLO, "voice": "alloy", "input": text}
        expected = words(reading or text)
        reply = httpx2.post(f"{url}/v1/audio/speech", json=body, timeout=60)
        wrong += num_errors(expected, words(transcribe(reply.content)))
        num_words += len(expected)
    assert wrong <= 0.15 * num_words


def test_captions_of_a_chat_are_words_of_its_transcript(client):
    transcript, spoken, pcm = "", [], b""
    for chunk in client.chat.completions.create(
        model="gpt-audio",
        messages=[{"role": "user", "content": "Tell me about the city of Paris."}],
        modalities=["text", "audio"],
        audio={"voice": "alloy", "format": "pcm16", "captions": True},
        temperature=0,
        max_completion_tokens=40,
        stream=True,
    ):
        audio = chunk.choices[0].delta.audio
        if audio is not None:
            transcript += audio.transcript or ""
            pcm += base64.b64decode(audio.data or "")
            captions = (audio.model_extra or {}).get("captions", ())
            spoken += [word for piece in captions for word in piece["words"]]
    caption_words = [transcript[word["start"] : word["end"]] for word in spoken]
    assert "Paris" in caption_words
    assert all(word.strip(" .,") == word for word in caption_words)
    assert max(word["end_s"] for word in spoken) <= len(pcm) / 48_000
