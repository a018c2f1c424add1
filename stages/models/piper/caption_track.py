"""Times captions: turns frames of each piece into samples of the whole sound that is sent."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from stages.contract.messages import Caption, TextSpan


@dataclass(slots=True)
class CaptionTrack:
    """The captions of one request that are not sent to their end.

    `scale` is the number of samples sent for each decoded sample.
    """

    scale: float
    _pending: deque[tuple[TextSpan, deque[TextSpan]]] = field(default_factory=deque)

    def add(self, caption: Caption, at: int, hop: int) -> None:
        """Add a piece that begins at decoded sample `at`; its times are frames of `hop` samples."""
        words = deque(self._in_samples(word, at, hop) for word in caption.words)
        self._pending.append((self._in_samples(caption.piece, at, hop), words))

    def _in_samples(self, span: TextSpan, at: int, hop: int) -> TextSpan:
        frames = span.heard_from, span.heard_to
        heard_from, heard_to = (int((at + frame * hop) * self.scale) for frame in frames)
        return TextSpan(span.start, span.end, heard_from, heard_to)

    def until(self, num_samples: int) -> tuple[Caption, ...]:
        """The captions of the sound up to sample `num_samples` that was sent since the last call.

        A piece is given in every call in which it sounds, a word only when it begins.
        """
        captions = []
        for piece, words in list(self._pending):
            if piece.heard_from >= num_samples:
                break
            begun_words = []
            while words and words[0].heard_from < num_samples:
                begun_words.append(words.popleft())
            captions.append(Caption(piece, tuple(begun_words)))
            if piece.heard_to <= num_samples:
                self._pending.popleft()
        return tuple(captions)
