"""Many speeches on the device, one frame of each at a time; the rows of a table.

All state of a speech is in its row of tensors that never move, and a step over the first rows does
the same operations on the same memory each time, whatever the rows hold: so a CUDA graph can hold
it, and the host learns nothing but what it asks for. Rows that are not `active` in a step keep
their state. A step has two halves: `predict` completes a frame, whose codes can then be handed on,
and `advance` lets the talker read it and choose the first code of the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stages.kernels.attention import SpanBatch, rows_batch
from stages.kernels.kv_cache import Slab
from stages.kernels.splitmix64 import random_bits
from stages.models.qwen3_tts.talker.model_config import SUPPRESSED
from stages.models.qwen3_tts.talker.sampling import choose, penalised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from stages.kernels.attention import Span
    from stages.models.qwen3_tts.talker.model import CodePredictor, TalkerModel

MIN_FRAMES = 2  # no speech ends before


class FrameTable:
    """`num_rows` places for speeches of at most `max_tokens` positions."""

    def __init__(
        self, talker: TalkerModel, predictor: CodePredictor, num_rows: int, max_tokens: int
    ) -> None:
        config = talker.config
        self.num_rows = num_rows
        self.max_tokens = max_tokens
        self.slab = Slab(talker.decoder.cache_shape, max_tokens, num_rows)
        self._talker = talker
        self._predictor = predictor
        self._config = config
        device = talker.device
        vocabulary = config.talker.vocab_size
        self.active = torch.zeros(num_rows, dtype=torch.bool, device=device)
        self.code = torch.zeros(
            num_rows, dtype=torch.int64, device=device
        )  # the first of frame `frame`, not yet read
        self.frames = torch.zeros(num_rows, config.num_groups, dtype=torch.int64, device=device)
        self._state = torch.zeros(
            num_rows, config.talker.hidden_size, dtype=talker.dtype, device=device
        )
        self._position = torch.zeros(num_rows, dtype=torch.int64, device=device)
        self._frame = torch.zeros(num_rows, dtype=torch.int64, device=device)
        self._seed = torch.zeros(num_rows, dtype=torch.int64, device=device)
        self._seen = torch.zeros(num_rows, vocabulary, dtype=torch.bool, device=device)
        # The token of the text's stream that is read with each frame, padding after the last.
        self._stream = torch.full(
            (num_rows, max_tokens), config.text.pad, dtype=torch.int64, device=device
        )
        self._never = torch.zeros(vocabulary, dtype=torch.bool, device=device)
        self._never[vocabulary - SUPPRESSED :] = True
        self._never[config.control.eos] = False
        self._end = torch.zeros_like(self._never)
        self._end[config.control.eos] = True

    # What the host does to a row.

    def read(self, spans: Sequence[Span], states: Sequence[Tensor]) -> Tensor:
        """Read embeddings [length, hidden] of each span; the last states of those that want it."""
        batch = SpanBatch(spans, self._config.talker.num_heads)
        joined = torch.cat([states[i] for i in batch.order])
        return self._talker.decoder(joined, batch, batch.last)

    def claim(self, row: int, length: int) -> None:
        """A speech whose prompt of `length` positions is going to be read.

        Steps write into every row at its position, into those that are not active too: there it
        must be behind what is read.
        """
        self._position[row].fill_(length)

    def begin(self, row: int, state: Tensor, seed: int) -> None:
        """A speech whose prompt is read, and left `state` [hidden].

        Filled and not assigned: a number assigned to one of a GPU waits for all that runs there.
        """
        self._state[row] = state
        self._frame[row].fill_(0)
        self._seed[row].fill_(seed)
        self._seen[row].fill_(False)
        self._stream[row].fill_(self._config.text.pad)
        one = slice(row, row + 1)
        self.code[one] = self._first_codes(one, self._state[one], self._frame[one])
        self._seen[row].index_fill_(0, self.code[one], True)

    def stream(self, row: int, at: int, tokens: Tensor) -> None:
        """The tokens of the text's stream that are read with frame `at` and after."""
        self._stream[row, at : at + len(tokens)] = tokens

    # The step.

    def predict(self, num_rows: int) -> None:
        """Complete the present frame of the first rows: `frames`."""
        groups = torch.arange(self._config.num_groups, device=self._frame.device)
        numbers = self._frame[:num_rows, None] * len(groups) + groups
        chance = random_bits(self._seed[:num_rows, None], numbers)

        def chosen(logits: Tensor, group: int) -> Tensor:
            return choose(logits, chance[:, group], self._config.rest)

        frames = self._predictor(self._state[:num_rows], self.code[:num_rows], chosen)
        self.frames[:num_rows] = frames

    def advance(self, num_rows: int, end: int) -> None:
        """Let the talker read the frames of the first rows, none at position `end` or after."""
        rows = slice(0, num_rows)
        active, frame, position = self.active[rows], self._frame[rows], self._position[rows]
        read = self._talker.embed_frames(self.frames[rows])
        text = self._stream[rows].gather(1, frame[:, None])[:, 0]
        read += self._talker.embed_text(text)
        batch = rows_batch(self.slab, position, end, self._config.talker.num_heads)
        state = self._talker.decoder(read, batch)
        code = self._first_codes(rows, state, frame + 1)
        self._state[rows] = torch.where(active[:, None], state, self._state[rows])
        self.code[rows] = torch.where(active, code, self.code[rows])
        said = self._seen[rows].scatter(1, self.code[rows, None], True)
        self._seen[rows] = torch.where(active[:, None], said, self._seen[rows])
        position += active
        frame += active

    def _first_codes(self, rows: slice, state: Tensor, frame: Tensor) -> Tensor:
        """The first codes of frames by their numbers, or the end."""
        config = self._config
        logits = self._talker.logits(state)
        logits = penalised(logits, self._seen[rows], config.repetition_penalty)
        logits = logits.masked_fill(self._never, -torch.inf)
        early = (frame < MIN_FRAMES)[:, None]
        logits = logits.masked_fill(early & self._end, -torch.inf)
        chance = random_bits(self._seed[rows], frame * config.num_groups)
        return choose(logits, chance, config.first)
