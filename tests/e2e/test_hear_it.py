"""Speech and chats of the embedded models through the official client, and speech recognition."""

import base64
import io
import re
import wave

import httpx2
import pytest

pytestmark = pytest.mark.model

TEXT = (
    "The birch canoe slid on the smooth planks. Glue the sheet to the dark blue background. "
    "Rice is often served in round bowls. The juice of lemons makes fine punch. "
    "Four hours of steady work faced us."
)


def words(text):
    return re.findall(r"[a-z']+", text.lower())


def share_recognised(text, transcript):
    """The share of the words of `text` that `transcript` has in their order.

    It is the longest common subsequence of the words.
    """
    expected, recognised = words(text), words(transcript)
    row = [0] * (len(recognised) + 1)
    for word in expected:
        previous = row[:]
        for j, other in enumerate(recognised, 1):
            row[j] = previous[j - 1] + 1 if word == other else max(previous[j], row[j - 1])
    return row[-1] / len(expected)


def test_speech_is_intelligible_and_streams(client, transcribe):
    with client.audio.speech.with_streaming_response.create(
        model="tts-1",
        voice="alloy",
        input=TEXT,
        response_format="pcm",
        extra_body={"seed": 1},
    ) as response:
        arrived = list(response.iter_bytes())
    pcm = b"".join(arrived)
    assert len(arrived) > 5
    assert len(arrived[0]) < len(pcm) / 4
    transcript = transcribe(pcm)
    assert share_recognised(TEXT, transcript) > 0.8
    assert words(transcript)[-1] == "us"


def test_a_wav_file_has_a_valid_header(client):
    whole = client.audio.speech.create(
        model="piper-joe", voice="joe", input="Hello there.", response_format="wav"
    ).read()
    with wave.open(io.BytesIO(whole)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (24_000, 1, 2)
    assert len(whole) > 24_000


def test_the_same_seed_gives_the_same_samples(client):
    request = {"model": "tts-1", "voice": "alloy", "input": TEXT, "response_format": "pcm"}
    one, other = (
        client.audio.speech.create(**request, extra_body={"seed": 7}).read() for _ in range(2)
    )
    assert one == other


def test_a_chat_answers_in_text(client):
    answer = client.chat.completions.create(
        model="smollm2-joe",
        messages=[{"role": "user", "content": "What is the capital of France?"}],
        temperature=0,
    )
    assert "Paris" in answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.completion_tokens > 3


def test_a_chat_speaks_its_text_and_starts_before_the_text_is_complete(client, transcribe):
    transcript, pcm, order = "", b"", []
    chunks = client.chat.completions.create(
        model="gpt-audio",
        messages=[{"role": "user", "content": "Tell me about the city of Paris."}],
        modalities=["text", "audio"],
        audio={"voice": "alloy", "format": "pcm16"},
        temperature=0,
        max_completion_tokens=60,
        stream=True,
        stream_options={"include_usage": True},
    )
    for chunk in chunks:
        for choice in chunk.choices:
            audio = choice.delta.audio
            if audio is not None and audio.transcript:
                transcript += audio.transcript
                order.append("text")
            if audio is not None and audio.data:
                pcm += base64.b64decode(audio.data)
                order.append("audio")
    assert order.index("audio") < len(order) - 1 - order[::-1].index("text")
    assert share_recognised(transcript, transcribe(pcm)) > 0.75
    assert chunk.usage.completion_tokens_details.audio_tokens > 0


def test_done_is_sent_once_and_last(url):
    body = {"model": "tts-1", "voice": "alloy", "input": "Hello there.", "stream_format": "sse"}
    response = httpx2.post(f"{url}/v1/audio/speech", json={**body, "response_format": "pcm"})
    events = [event for event in response.text.split("\n\n") if event]
    assert events[-1] == "data: [DONE]"
    assert events.count("data: [DONE]") == 1
    assert '"type":"speech.audio.done"' in events[-2].replace(" ", "")


@pytest.mark.parametrize(
    ("wrong", "status", "param"),
    [
        ({"input": ""}, 400, "input"),
        ({"input": "😀 !!!"}, 400, "input"),
        ({"voice": "no_such_voice"}, 400, "voice"),
        ({"model": "no-such-model"}, 404, "model"),
        ({"speed": 9}, 400, "speed"),
        ({"response_format": "midi"}, 400, "response_format"),
        ({"input": None}, 400, "input"),
    ],
)
def test_bad_input_is_refused_and_the_error_names_the_field(url, wrong, status, param):
    body = {"model": "tts-1", "voice": "alloy", "input": "Hi.", "response_format": "pcm"}
    response = httpx2.post(f"{url}/v1/audio/speech", json=body | wrong)
    assert response.status_code == status
    assert response.json()["error"]["param"] == param
