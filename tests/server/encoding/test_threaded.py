"""A threaded encoder is opened by its first samples."""

from functools import partial

from server.encoding.formats import FileFormat, PassthroughEncoder
from server.encoding.threaded import ThreadedEncoder


async def test_the_first_samples_open_the_encoder_and_its_head_comes_first():
    opened = []

    def set_up():
        opened.append(True)
        return PassthroughEncoder(b"head ")

    for in_thread in (False, True):
        opened.clear()
        file = ThreadedEncoder(FileFormat("audio/x", set_up, in_thread=in_thread))
        assert not opened
        assert [await file.feed(b"one "), await file.feed(b"two"), await file.flush()] == [
            b"head one ",
            b"two",
            b"",
        ]
        assert opened == [True]
        file.close()


async def test_a_file_without_samples_has_its_head_and_an_unopened_one_can_be_closed():
    form = FileFormat("audio/x", partial(PassthroughEncoder, b"head"), in_thread=False)
    assert await ThreadedEncoder(form).flush() == b"head"
    ThreadedEncoder(form).close()
