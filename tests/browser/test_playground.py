"""The playground in a browser: playing, reading along, stopping, and the keyboard alone."""

import re
import subprocess
import sys

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from stages.contract.messages import AudioChunk, AudioEnd, Caption, SpeechEnd, TextSpan
from tests.browser.conftest import played, scripted_server
from tests.server.bench import tone

# The first word is long, so that playback does not run dry on a busy machine.
TEXT = "Internationalisation is one word of many"


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def play(page, text):
    expect(page.locator("#health")).to_have_text("ready")
    page.get_by_label("Text to speak").fill(text)
    button(page, "Play").click()


def speech_file(page, url, text):
    """The samples of the same request, int16, from the speech endpoint."""
    body = {"model": "fake-speech", "voice": "fake-low", "input": text, "response_format": "pcm"}
    reply = page.request.post(f"{url}/v1/audio/speech", data=body)
    return np.frombuffer(reply.body(), np.int16)


def test_all_samples_are_played_without_a_gap(open_page, fake_url):
    page = open_page(fake_url, allow_scripts=True)
    play(page, TEXT)
    expect(page.get_by_text(re.compile("^Done"))).to_be_attached()
    expected = speech_file(page, fake_url, TEXT)
    assert len(expected) > 24_000 / 2
    np.testing.assert_array_equal(played(page), np.trim_zeros(expected))
    expect(page.locator("#gaps")).to_have_text("none")
    expect(page.locator("#made")).to_have_text(f"made {len(expected) / 24_000:.1f} s")


def test_the_request_has_the_chosen_speed_and_voice(open_page, fake_url):
    page = open_page(fake_url)
    expect(page.locator("#health")).to_have_text("ready")
    page.locator("#speech-voice").select_option("fake-high")
    page.get_by_role("slider", name="Speed").press("End")
    with page.expect_request("**/v1/audio/speech") as sent:
        play(page, "Quickly")
    body = sent.value.post_data_json
    assert (body["voice"], body["speed"]) == ("fake-high", 4)


def test_sound_starts_while_it_streams_and_a_late_chunk_is_a_gap(open_page):
    with scripted_server(tone(4800, 100)) as server:
        page = open_page(server.url, allow_scripts=True)
        play(page, "Hello there.")
        expect(page.locator("#heard")).to_have_text("heard 0.2 s")
        expect(button(page, "Stop")).to_be_visible()
        server.report(tone(2400, 200), AudioEnd(7200, 6))
        expect(page.get_by_text(re.compile("^Done"))).to_be_attached()
        expect(page.locator("#gaps")).to_have_text("1")
        samples = played(page)
    first, gap, second = np.split(samples, [4800, len(samples) - 2400])
    assert set(first) == {100}
    assert set(gap) == {0}
    assert set(second) == {200}


def test_words_are_highlighted_as_they_are_spoken(open_page):
    piece = TextSpan(0, 13, 0, 9600)
    captions = (Caption(piece, (TextSpan(0, 3, 0, 2400), TextSpan(4, 6, 2400, 9600))),)
    with scripted_server(AudioChunk(np.full(4800, 9, np.int16), 24_000, captions)) as server:
        page = open_page(server.url)
        play(page, "\U0001f642é, hi, and more.")
        words = page.locator("#words")
        expect(words.locator(".now")).to_have_text("hi,")
        assert words.locator(".said").all_inner_texts() == ["\U0001f642é,", "hi,"]
        assert words.inner_text() == "\U0001f642é, hi, and more."
        server.report(AudioEnd(4800, 4))
        expect(words.locator(".now")).to_have_count(0)


@pytest.mark.parametrize("stop", ["click", "key"])
def test_stop_stops_the_sound_and_aborts_the_request_on_the_server(open_page, stop):
    with scripted_server(tone(24_000 * 20, 5)) as server:
        page = open_page(server.url, allow_scripts=True)
        play(page, "Hello there.")
        expect(page.locator("#heard")).to_have_text(re.compile(r"heard .*[1-9]"))
        if stop == "click":
            button(page, "Stop").click()
        else:
            page.keyboard.press("Escape")
        server.wait(server.deployment.speech[1].aborted.wait())
        server.wait(server.until_idle())
        expect(button(page, "Play")).to_be_visible()
        expect(page.get_by_text("Stopped")).to_be_attached()
        assert 0 < len(played(page)) < 24_000 * 20


def lane(page, name):
    """The track of a lane in the timeline, and the value at its end."""
    names = page.locator("#timeline .name")
    row = names.all_inner_texts().index(name)
    return page.locator("#timeline .track").nth(row), page.locator("#timeline .value").nth(row)


def test_the_timeline_grows_and_shows_that_the_gate_holds_the_final_event(open_page):
    with scripted_server(tone(4800), debug_routes=True) as server:
        page = open_page(server.url)
        play(page, "Hello there.")
        expect(page.locator("#timeline .name")).to_have_text(["talker", "code2wav", "gate"])
        track, finished = lane(page, "code2wav")
        expect(track.locator(".end")).to_have_count(0)
        server.report(AudioEnd(4800, 4))
        expect(finished).to_have_text(re.compile("ms$"))
        gate, released = lane(page, "gate")
        expect(gate.locator(".held")).to_be_visible()
        expect(released).to_have_text("")
        server.call(server.deployment.speech[0].report, SpeechEnd(1))
        expect(
            page.get_by_text(re.compile("The final event was ready, and held for .* ms"))
        ).to_be_visible()
        expect(page.get_by_role("img", name=re.compile("talker .* gate .* ms"))).to_be_visible()


def test_the_timeline_shows_that_a_stop_reached_the_stages(open_page):
    with scripted_server(tone(24_000 * 20), debug_routes=True) as server:
        page = open_page(server.url)
        play(page, "Hello there.")
        expect(page.locator("#timeline .name")).to_have_count(3)
        button(page, "Stop").click()
        expect(page.get_by_text(re.compile("Ended early.*Every stage"))).to_be_visible()
        for name in ("talker", "code2wav"):
            expect(lane(page, name)[1]).to_have_text("stopped")


def test_without_debug_routes_the_page_shows_arrivals_and_names_the_setting(open_page, fake_url):
    page = open_page(fake_url)
    play(page, TEXT)
    expect(page.get_by_text("NANO_OMNI_DEBUG_ROUTES=true")).to_be_visible()
    expect(page.locator("#timeline .name")).to_have_text(["sound"])


def test_a_chat_is_answered_in_text_and_voice_and_keeps_its_messages(open_page, fake_url):
    page = open_page(fake_url, "#chat", allow_scripts=True)
    expect(page.locator("#health")).to_have_text("ready")
    message = page.get_by_label("Message")
    message.fill("Internationalisation")
    message.press("Enter")
    answer = page.get_by_role("listitem").nth(1)
    expect(answer).to_have_text("ModelYou said: Internationalisation")
    expect(button(page, "Send")).to_be_visible()
    assert len(played(page)) > 24_000 / 2
    message.fill("And you?")
    with page.expect_request("**/v1/chat/completions") as sent:
        message.press("Enter")
    body = sent.value.post_data_json
    assert [(message["role"], message["content"]) for message in body["messages"]] == [
        ("user", "Internationalisation"),
        ("assistant", "You said: Internationalisation"),
        ("user", "And you?"),
    ]
    button(page, "New chat").click()
    expect(page.get_by_role("listitem")).to_have_count(1)


def test_a_question_can_be_sent_again_after_its_answer_failed(open_page):
    with scripted_server() as server:
        page = open_page(server.url, "#chat")
        expect(page.locator("#health")).to_have_text("ready")
        page.get_by_label("Message").fill("Hello?")
        button(page, "Send").click()
        thinker = server.deployment.chat[0]
        server.wait(thinker.has(1))
        server.call(thinker.report, RuntimeError("no"))
        expect(page.get_by_role("alert")).to_be_visible()
        expect(page.get_by_label("Message")).to_have_value("Hello?")


def test_a_refusal_is_shown(open_page, fake_url):
    page = open_page(fake_url)
    play(page, "\U0001f642")
    expect(page.get_by_role("alert")).to_contain_text("nothing to speak")
    expect(button(page, "Play")).to_be_visible()


def test_an_empty_text_is_not_sent(open_page, fake_url):
    page = open_page(fake_url)
    play(page, "")
    expect(page.get_by_label("Text to speak")).to_be_focused()
    expect(button(page, "Play")).to_be_visible()


def test_the_page_asks_for_the_api_key_and_sends_it(open_page):
    with scripted_server(tone(2400), SpeechEnd(1), api_keys=["sk-one"]) as server:
        page = open_page(server.url)
        expect(page.locator("#health")).to_have_text("needs an API key")
        field = page.get_by_label("API key", exact=True).and_(page.locator("input"))
        expect(field).to_be_focused()
        field.fill("sk-two")
        field.press("Tab")
        expect(page.locator("#health")).to_have_text("wrong API key")
        field.fill("sk-one")
        field.press("Tab")
        expect(page.locator("#health")).to_have_text("ready")
        page.keyboard.press("Escape")
        play(page, "Hello there.")
        server.wait(server.deployment.speech[1].has(1))


def code_of(page, request, language):
    page.get_by_role("tab", name="As curl / as Python").click()
    page.get_by_label(request, exact=True).and_(page.get_by_role("radio")).check(force=True)
    page.get_by_label(language, exact=True).check(force=True)
    return page.locator("#shown").text_content()


def test_the_curl_command_and_the_program_write_the_file(open_page, fake_url, tmp_path):
    page = open_page(fake_url)
    expect(page.locator("#health")).to_have_text("ready")
    page.get_by_label("Text to speak").fill('It\'s "said"\nonce: $HOME \\n é.')
    for language, runner in (("curl", ["bash"]), ("Python", [sys.executable])):
        command = [*runner, "-c", code_of(page, "Speech", language)]
        subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
        file = tmp_path / "speech.mp3"
        assert file.read_bytes()[0] == 0xFF  # the first byte of an MP3 frame
        file.unlink()


def test_the_curl_command_and_the_program_of_the_chat_run(open_page, fake_url, tmp_path):
    page = open_page(fake_url)
    expect(page.locator("#health")).to_have_text("ready")
    page.get_by_role("tab", name="Chat").click()
    page.get_by_label("Message").fill("It's me")
    run = {"cwd": tmp_path, "check": True, "timeout": 60, "capture_output": True, "text": True}
    curl = subprocess.run(["bash", "-c", code_of(page, "Chat", "curl")], **run)
    assert curl.stdout.endswith("data: [DONE]\n\n")
    program = subprocess.run([sys.executable, "-c", code_of(page, "Chat", "Python")], **run)
    assert program.stdout == "You said: It's me\n"
    assert (tmp_path / "reply.wav").read_bytes().startswith(b"RIFF")


def test_the_page_works_with_the_keyboard_alone(open_page, fake_url):
    page = open_page(fake_url)
    expect(page.locator("#health")).to_have_text("ready")
    reached = []
    for _ in range(12):
        page.keyboard.press("Tab")
        focused = page.locator(":focus")
        assert focused.evaluate("(element) => getComputedStyle(element).outlineStyle") == "solid"
        reached.append(focused.get_attribute("id") or focused.inner_text())
    assert reached[:3] == ["API key", "tab-speech", "text"]
    assert reached[8:] == ["speech-model", "speech-voice", "speed", "Play"]
    page.get_by_role("tab", name="Speech").press("ArrowRight")
    expect(page.get_by_role("tab", name="Chat")).to_be_focused()
    expect(page.get_by_role("tabpanel", name="Chat")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    page.get_by_label("Text to speak").fill("Soon over")
    page.get_by_label("Text to speak").press("Control+Enter")
    expect(page.get_by_text(re.compile("^Done"))).to_be_attached()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_every_tab_passes_the_accessibility_rules(open_page, scheme, width):
    captions = (Caption(TextSpan(0, 12, 0, 9600), (TextSpan(0, 5, 0, 9600),)),)
    with scripted_server(AudioChunk(np.full(9600, 9, np.int16), 24_000, captions)) as server:
        page = open_page(
            server.url,
            color_scheme=scheme,
            viewport={"width": width, "height": 800},
            allow_scripts=True,  # for axe, the accessibility checker
        )
        play(page, "Hello there.")
        expect(page.locator(".now")).to_be_visible()
        for tab in page.get_by_role("tab").all():
            tab.click()
            found = Axe().run(page)
            assert found.response["violations"] == [], found.generate_report()
            assert page.evaluate("() => document.documentElement.scrollWidth") <= width
