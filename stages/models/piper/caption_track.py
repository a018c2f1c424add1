"""When pieces are heard: from frames of each piece to samples of the whole sound that is sent."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from stages.contract.messages import Caption, TextSpan


@dataclass(slots=True)
class CaptionTrack:
    """The captions of one request that were not heard to their end. `scale`: samples sent for each
    sample that is decoded."""

    scale: float
    _coming: deque[tuple[TextSpan, deque[TextSpan]]] = field(default_factory=deque)

    def add(self, caption: Caption, at: int, hop: int) -> None:
        """A piece that begins at decoded sample `at`; its marks are in frames of `hop` samples."""
        words = deque(self._placed(word, at, hop) for word in caption.words)
        self._coming.append((self._placed(caption.piece, at, hop), words))

    def _placed(self, mark: TextSpan, at: int, hop: int) -> TextSpan:
        begin, stop = (
            int((at + frame * hop) * self.scale) for frame in (mark.heard_from, mark.heard_to)
        )
        return TextSpan(mark.start, mark.end, begin, stop)

    def until(self, num_samples: int) -> tuple[Caption, ...]:
        """The captions that are heard in what was sent since the last call: of each piece its mark,
        and the words that begin before sample `num_samples`."""
        heard = []
        for piece, words in list(self._coming):
            if piece.heard_from >= num_samples:
                break
            begun = []
            while words and words[0].heard_from < num_samples:
                begun.append(words.popleft())
            heard.append(Caption(piece, tuple(begun)))
            if piece.heard_to <= num_samples:
                self._coming.popleft()
        return tuple(heard)
