"""The official Python client, 1.109 to 3.57, with strict validation of every response."""

import asyncio
import base64
import json
from contextlib import contextmanager

import openai

TEXT = "One two three four five."
PCM_BYTES = 2 * 480 * len(TEXT.replace(" ", ""))
SPEECH = {"model": "tts-1", "voice": "alloy", "input": TEXT}
MESSAGES = [{"role": "user", "content": "hello big world"}]
REPLY = "You said: hello big world"
AUDIO = {"voice": "alloy", "format": "pcm16"}
SPOKEN = {"model": "gpt-audio", "messages": MESSAGES, "modalities": ["text", "audio"]}
FORMATS = {
    "mp3": ("audio/mpeg", b"\xff\xf3"),
    "opus": ("audio/opus", b"OggS"),
    "aac": ("audio/aac", b"\xff\xf1"),
    "flac": ("audio/flac", b"fLaC"),
    "wav": ("audio/wav", b"RIFF\xff\xff\xff\xff"),
    "pcm": ("audio/pcm", b""),
}


def options(target, **changes):
    return {
        "base_url": f"{target.url}/v1",
        "api_key": target.key,
        "max_retries": 0,
        "timeout": 30,
        "_strict_response_validation": True,
        **changes,
    }


def client_of(target, **changes):
    return openai.OpenAI(**options(target, **changes))


@contextmanager
def failing(kind):
    """Checks that the body raises an error of this kind, which is put in the yielded list."""
    caught = []
    try:
        yield caught
    except kind as error:
        caught.append(error)
    if not caught:
        raise AssertionError(f"no {kind.__name__}")


def check_models_are_listed_and_each_can_be_retrieved(target):
    with client_of(target) as client:
        names = [model.id for model in client.models.list()]
        assert {"tts-1", "gpt-audio"} <= set(names)
        assert [client.models.retrieve(name).id for name in names] == names


def check_an_unknown_model_is_not_found(target):
    with client_of(target) as client:
        calls = (
            lambda: client.models.retrieve("org/no such model"),
            lambda: client.audio.speech.create(**{**SPEECH, "model": "nothing"}),
            lambda: client.chat.completions.create(model="nothing", messages=MESSAGES),
        )
        for call in calls:
            with failing(openai.NotFoundError) as caught:
                call()
            assert (caught[0].code, caught[0].param) == ("model_not_found", "model")
            assert caught[0].request_id.startswith("req_")


def check_a_wrong_key_is_refused(target):
    with client_of(target, api_key="sk-wrong") as client:
        with failing(openai.AuthenticationError) as caught:
            client.models.list()
        assert caught[0].code == "invalid_api_key"


def check_speech_in_each_format(target):
    with client_of(target) as client:
        for name, (media_type, magic) in FORMATS.items():
            reply = client.audio.speech.create(**SPEECH, response_format=name)
            assert reply.response.headers["content-type"] == media_type
            assert reply.content.startswith(magic)
            assert len(reply.content) > 1000
        assert len(reply.content) == PCM_BYTES


def check_speech_is_mp3_by_default(target):
    with client_of(target) as client:
        reply = client.audio.speech.create(**SPEECH)
        assert reply.response.headers["content-type"] == "audio/mpeg"


def check_streamed_speech_has_the_same_bytes(target):
    with client_of(target) as client:
        for name in FORMATS:
            whole = client.audio.speech.create(**SPEECH, response_format=name).content
            streaming = client.audio.speech.with_streaming_response
            with streaming.create(**SPEECH, response_format=name) as reply:
                assert reply.headers["transfer-encoding"] == "chunked"
                assert reply.headers["x-request-id"]
                assert b"".join(reply.iter_bytes(1024)) == whole


def check_events_of_speech_have_the_same_bytes(target):
    with client_of(target) as client:
        for name in FORMATS:
            whole = client.audio.speech.create(**SPEECH, response_format=name).content
            with client.audio.speech.with_streaming_response.create(
                **SPEECH, response_format=name, stream_format="sse"
            ) as reply:
                lines = [line for line in reply.iter_lines() if line]
            assert all(line.startswith("data: ") for line in lines)
            *deltas, done, last = (line[6:] for line in lines)
            pieces = [base64.b64decode(json.loads(delta)["audio"]) for delta in deltas]
            assert b"".join(pieces) == whole
            usage = json.loads(done)["usage"]
            assert usage["input_tokens"] == len(TEXT)
            assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
            assert last == "[DONE]"


def check_a_voice_may_be_an_object_and_speed_halves_the_length(target):
    with client_of(target) as client:
        body = {**SPEECH, "response_format": "pcm", "instructions": "Speak slowly."}
        normal = client.audio.speech.create(**{**body, "voice": {"id": "alloy"}})
        fast = client.audio.speech.create(**body, speed=2)
    assert len(normal.content) == PCM_BYTES
    assert 0.85 < 2 * len(fast.content) / PCM_BYTES < 1.15


def check_a_refusal_names_the_field(target):
    wrong = {
        "voice": "no_such_voice",
        "input": "",
        "speed": 9,
        "response_format": "midi",
        "stream_format": "telegraph",
        "instructions": "x" * 4097,
    }
    with client_of(target) as client:
        for param, value in wrong.items():
            with failing(openai.BadRequestError) as caught:
                client.audio.speech.create(**{**SPEECH, param: value})
            assert caught[0].param == param
            assert caught[0].type == "invalid_request_error"


def check_a_whole_and_a_streamed_chat_are_the_same(target):
    with client_of(target) as client:
        body = {"model": "fake-chat", "messages": MESSAGES}
        whole = client.chat.completions.create(**body)
        assert whole.choices[0].message.content == REPLY
        chunks = list(
            client.chat.completions.create(
                **body, stream=True, stream_options={"include_usage": True}
            )
        )
    assert chunks[-1].usage == whole.usage
    assert chunks[-1].choices == []
    choices = [chunk.choices[0] for chunk in chunks[:-1]]
    assert "".join(choice.delta.content or "" for choice in choices) == REPLY
    assert [choice.delta.role for choice in choices] == ["assistant"] + [None] * (len(choices) - 1)
    assert choices[-1].finish_reason == "stop"


def check_the_finish_reason_at_the_token_limit_is_length(target):
    with client_of(target) as client:
        reply = client.chat.completions.create(
            model="fake-chat", messages=MESSAGES, max_completion_tokens=1
        )
    assert reply.choices[0].finish_reason == "length"
    assert reply.usage.completion_tokens == 1


def check_a_spoken_chat_in_each_format(target):
    magic = {"pcm16": b"", **{name: start[:4] for name, (_, start) in FORMATS.items()}}
    del magic["pcm"]
    with client_of(target) as client:
        for name, start in magic.items():
            reply = client.chat.completions.create(**SPOKEN, audio={**AUDIO, "format": name})
            message = reply.choices[0].message
            assert message.content is None
            assert message.audio.transcript == REPLY
            assert base64.b64decode(message.audio.data).startswith(start)
            assert message.audio.expires_at > reply.created


def check_the_client_accumulates_a_spoken_chat(target):
    with client_of(target) as client:
        whole = client.chat.completions.create(**SPOKEN, audio=AUDIO)
        with client.chat.completions.stream(
            **SPOKEN, audio=AUDIO, stream_options={"include_usage": True}
        ) as stream:
            final = stream.get_final_completion()
    message = final.choices[0].message
    assert message.role == "assistant"
    assert final.choices[0].finish_reason == "stop"
    assert final.usage == whole.usage
    audio = dict(message.audio)
    assert audio["id"].count("audio_") == 1
    assert audio["transcript"] == REPLY
    assert audio["data"] == whole.choices[0].message.audio.data


def check_several_choices(target):
    with client_of(target) as client:
        body = {"model": "fake-chat", "messages": MESSAGES, "n": 2}
        whole = client.chat.completions.create(**body)
        assert [choice.index for choice in whole.choices] == [0, 1]
        with client.chat.completions.stream(**body) as stream:
            final = stream.get_final_completion()
    assert [choice.message.content for choice in final.choices] == [REPLY, REPLY]


def check_a_whole_and_a_streamed_completion_are_the_same(target):
    with client_of(target) as client:
        body = {"model": "fake-chat", "prompt": "hello big world"}
        whole = client.completions.create(**body)
    # The client's type does not allow a null `finish_reason`, which all events but the last have.
    with client_of(target, _strict_response_validation=False) as client:
        chunks = list(client.completions.create(**body, stream=True))
    text = "".join(chunk.choices[0].text for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].text == REPLY


def check_a_whole_and_a_streamed_response_are_the_same(target):
    with client_of(target) as client:
        whole = client.responses.create(model="fake-chat", input="hello big world")
        assert whole.output_text == REPLY
        assert whole.status == "completed"
        with client.responses.stream(model="fake-chat", input="hello big world") as stream:
            kinds = [event.type for event in stream]
            assert stream.get_final_response().output_text == REPLY
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")


def check_a_failure_in_a_chat_stream_is_an_error(target):
    with client_of(target, base_url=f"{target.faulty_url}/v1") as client:
        stream = client.chat.completions.create(model="chatter", messages=MESSAGES, stream=True)
        with failing(openai.APIError) as caught:
            list(stream)
    assert caught[0].code == "generation_failed"


def check_a_failure_in_an_audio_file_breaks_the_connection(target):
    with client_of(target, base_url=f"{target.faulty_url}/v1") as client:
        with failing(openai.APIConnectionError):
            client.audio.speech.create(**{**SPEECH, "model": "speaker", "voice": "low"})


def check_the_asynchronous_client_streams_speech_and_chat(target):
    async def main():
        async with openai.AsyncOpenAI(**options(target)) as client:
            body = {**SPEECH, "response_format": "pcm"}
            async with client.audio.speech.with_streaming_response.create(**body) as reply:
                num_bytes = sum([len(piece) async for piece in reply.iter_bytes()])
            stream = await client.chat.completions.create(
                model="fake-chat", messages=MESSAGES, stream=True
            )
            text = [chunk.choices[0].delta.content or "" async for chunk in stream]
        return num_bytes, "".join(text)

    assert asyncio.run(main()) == (PCM_BYTES, REPLY)
