"""The playground, used: it is heard, read, stopped, and worked by keys alone."""

import re
import subprocess
import sys

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from stages.contract.messages import AudioChunk, AudioEnd, Caption, SpeechEnd, TextSpan
from tests.browser.conftest import heard, scripted_server
from tests.server.bench import tone

# The first word is long enough to cover whatever the machine does meanwhile.
TEXT = "Internationalisation is one word of many"


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def play(page, text):
    expect(page.locator("#health")).to_have_text("ready")
    page.get_by_label("Text to speak").fill(text)
    button(page, "Play").click()


def spoken(page, url, text):
    """int16 [samples] of the same request, as a file."""
    body = {"model": "fake-speech", "voice": "fake-low", "input": text, "response_format": "pcm"}
    reply = page.request.post(f"{url}/v1/audio/speech", data=body)
    return np.frombuffer(reply.body(), np.int16)


def test_what_is_heard_is_what_was_made_without_a_gap(open_page, fake_url):
    page = open_page(fake_url, ear=True)
    play(page, TEXT)
    expect(page.get_by_text(re.compile("^Done"))).to_be_attached()
    expected = spoken(page, fake_url, TEXT)
    assert len(expected) > 24_000 / 2
    np.testing.assert_array_equal(heard(page), np.trim_zeros(expected))
    expect(page.locator("#gaps")).to_have_text("none")
    expect(page.locator("#made")).to_have_text(f"made {len(expected) / 24_000:.1f} s")


def test_speed_and_voice_are_asked_for(open_page, fake_url):
    page = open_page(fake_url)
    expect(page.locator("#health")).to_have_text("ready")
    page.locator("#speech-voice").select_option("fake-high")
    page.get_by_role("slider", name="Speed").press("End")
    with page.expect_request("**/v1/audio/speech") as sent:
        play(page, "Quickly")
    asked = sent.value.post_data_json
    assert (asked["voice"], asked["speed"]) == ("fake-high", 4)


def test_sound_starts_while_it_streams_and_a_late_piece_is_a_gap(open_page):
    with scripted_server(tone(4800, 100)) as server:
        page = open_page(server.url, ear=True)
        play(page, "Hello there.")
        expect(page.locator("#heard")).to_have_text("heard 0.2 s")
        expect(button(page, "Stop")).to_be_visible()
        server.say(tone(2400, 200), AudioEnd(7200, 6))
        expect(page.get_by_text(re.compile("^Done"))).to_be_attached()
        expect(page.locator("#gaps")).to_have_text("1")
        samples = heard(page)
    first, gap, second = np.split(samples, [4800, len(samples) - 2400])
    assert set(first) == {100}
    assert set(gap) == {0}
    assert set(second) == {200}


def test_words_light_up_as_they_are_spoken(open_page):
    piece = TextSpan(0, 13, 0, 9600)
    captions = (Caption(piece, (TextSpan(0, 3, 0, 2400), TextSpan(4, 6, 2400, 9600))),)
    with scripted_server(AudioChunk(np.full(4800, 9, np.int16), 24_000, captions)) as server:
        page = open_page(server.url)
        play(page, "\U0001f642é, hi, and more.")
        words = page.locator("#words")
        expect(words.locator(".now")).to_have_text("hi,")
        assert words.locator(".said").all_inner_texts() == ["\U0001f642é,", "hi,"]
        assert words.inner_text() == "\U0001f642é, hi, and more."
        server.say(AudioEnd(4800, 4))
        expect(words.locator(".now")).to_have_count(0)


@pytest.mark.parametrize("stop", ["click", "key"])
def test_stop_is_silence_and_ends_the_request_on_the_server(open_page, stop):
    with scripted_server(tone(24_000 * 20, 5)) as server:
        page = open_page(server.url, ear=True)
        play(page, "Hello there.")
        expect(page.locator("#heard")).to_have_text(re.compile(r"heard .*[1-9]"))
        if stop == "click":
            button(page, "Stop").click()
        else:
            page.keyboard.press("Escape")
        server.wait(server.deployment.speech[1].aborted.wait())
        server.wait(server.is_free())
        expect(button(page, "Play")).to_be_visible()
        expect(page.get_by_text("Stopped")).to_be_attached()
        assert 0 < len(heard(page)) < 24_000 * 20


def lane(page, name):
    """A lane's band, and what stands at its end."""
    names = page.locator("#timeline .name")
    place = names.all_inner_texts().index(name)
    return page.locator("#timeline .track").nth(place), page.locator("#timeline .value").nth(place)


def test_the_timeline_grows_and_shows_what_the_gate_holds(open_page):
    with scripted_server(tone(4800), debug_routes=True) as server:
        page = open_page(server.url)
        play(page, "Hello there.")
        expect(page.locator("#timeline .name")).to_have_text(["stage0", "stage1", "gate"])
        sounder, finished = lane(page, "stage1")
        expect(sounder.locator(".end")).to_have_count(0)
        server.say(AudioEnd(4800, 4))
        expect(finished).to_have_text(re.compile("ms$"))
        gate, released = lane(page, "gate")
        expect(gate.locator(".held")).to_be_visible()
        expect(released).to_have_text("")
        server.call(server.deployment.speech[0].report, SpeechEnd(1))
        expect(
            page.get_by_text(re.compile("The end was ready, and held for .* ms"))
        ).to_be_visible()
        expect(page.get_by_role("img", name=re.compile("stage0 .* gate .* ms"))).to_be_visible()


def test_the_timeline_shows_that_a_stop_reached_the_stages(open_page):
    with scripted_server(tone(24_000 * 20), debug_routes=True) as server:
        page = open_page(server.url)
        play(page, "Hello there.")
        expect(page.locator("#timeline .name")).to_have_count(3)
        button(page, "Stop").click()
        expect(page.get_by_text(re.compile("Ended early.*Every stage"))).to_be_visible()
        for name in ("stage0", "stage1"):
            expect(lane(page, name)[1]).to_have_text("stopped")


def test_without_the_servers_timeline_arrivals_are_shown_and_how_to_see_more(open_page, fake_url):
    page = open_page(fake_url)
    play(page, TEXT)
    expect(page.get_by_text("NANO_OMNI_DEBUG_ROUTES=true")).to_be_visible()
    expect(page.locator("#timeline .name")).to_have_text(["sound"])


def test_a_chat_is_answered_in_text_and_voice_and_goes_on(open_page, fake_url):
    page = open_page(fake_url, "#chat", ear=True)
    expect(page.locator("#health")).to_have_text("ready")
    message = page.get_by_label("Message")
    message.fill("Internationalisation")
    message.press("Enter")
    answer = page.get_by_role("listitem").nth(1)
    expect(answer).to_have_text("ModelYou said: Internationalisation")
    expect(button(page, "Send")).to_be_visible()
    assert len(heard(page)) > 24_000 / 2
    message.fill("And you?")
    with page.expect_request("**/v1/chat/completions") as sent:
        message.press("Enter")
    said = [(one["role"], one["content"]) for one in sent.value.post_data_json["messages"]]
    assert said == [
        ("user", "Internationalisation"),
        ("assistant", "You said: Internationalisation"),
        ("user", "And you?"),
    ]
    button(page, "New chat").click()
    expect(page.get_by_role("listitem")).to_have_count(1)


def test_an_answer_that_failed_can_be_asked_for_again(open_page):
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


def test_what_the_server_refuses_is_said(open_page, fake_url):
    page = open_page(fake_url)
    play(page, "\U0001f642")
    expect(page.get_by_role("alert")).to_contain_text("nothing to speak")
    expect(button(page, "Play")).to_be_visible()


def test_an_empty_text_is_not_sent(open_page, fake_url):
    page = open_page(fake_url)
    play(page, "")
    expect(page.get_by_label("Text to speak")).to_be_focused()
    expect(button(page, "Play")).to_be_visible()


def test_the_key_is_asked_for_and_sent(open_page):
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


def code(page, request, language):
    page.get_by_role("tab", name="As curl / as Python").click()
    page.get_by_label(request, exact=True).and_(page.get_by_role("radio")).check(force=True)
    page.get_by_label(language, exact=True).check(force=True)
    return page.locator("#shown").text_content()


def test_the_curl_command_and_the_program_make_the_file(open_page, fake_url, tmp_path):
    page = open_page(fake_url)
    expect(page.locator("#health")).to_have_text("ready")
    page.get_by_label("Text to speak").fill('It\'s "said"\nonce: $HOME \\n é.')
    for language, runner in (("curl", ["bash"]), ("Python", [sys.executable])):
        command = [*runner, "-c", code(page, "Speech", language)]
        subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
        sound = tmp_path / "speech.mp3"
        assert sound.read_bytes()[0] == 0xFF  # a frame of mp3
        sound.unlink()


def test_those_of_the_chat_answer(open_page, fake_url, tmp_path):
    page = open_page(fake_url)
    expect(page.locator("#health")).to_have_text("ready")
    page.get_by_role("tab", name="Chat").click()
    page.get_by_label("Message").fill("It's me")
    run = {"cwd": tmp_path, "check": True, "timeout": 60, "capture_output": True, "text": True}
    curl = subprocess.run(["bash", "-c", code(page, "Chat", "curl")], **run)
    assert curl.stdout.endswith("data: [DONE]\n\n")
    program = subprocess.run([sys.executable, "-c", code(page, "Chat", "Python")], **run)
    assert program.stdout == "You said: It's me\n"
    assert (tmp_path / "reply.wav").read_bytes().startswith(b"RIFF")


def test_it_can_be_worked_by_keys_alone(open_page, fake_url):
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
def test_labels_contrast_and_roles_hold_in_every_tab(open_page, scheme, width):
    captions = (Caption(TextSpan(0, 12, 0, 9600), (TextSpan(0, 5, 0, 9600),)),)
    with scripted_server(AudioChunk(np.full(9600, 9, np.int16), 24_000, captions)) as server:
        page = open_page(
            server.url,
            color_scheme=scheme,
            viewport={"width": width, "height": 800},
            ear=True,  # the checker, too, is no script of the page
        )
        play(page, "Hello there.")
        expect(page.locator(".now")).to_be_visible()
        for tab in page.get_by_role("tab").all():
            tab.click()
            found = Axe().run(page)
            assert found.response["violations"] == [], found.generate_report()
            assert page.evaluate("() => document.documentElement.scrollWidth") <= width
