"""The sequences on the device, one row of tensors for each, and the decode step over them.

All state of a sequence is in its row, in tensors that never move. A step over the first rows runs
the same operations on the same memory each time, whatever the rows hold. So it can be a CUDA graph,
and no value goes to the host unless the host asks for it. Rows that are not `active` keep their
state in a step. A step has two halves. `predict` completes a frame, whose codes can then be handed
on. `advance` runs the talker over that frame and chooses the first code of the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stages.kernels.attention import SpanBatch, rows_batch
from stages.kernels.kv_cache import Slab
from stages.models.qwen3_tts.talker.model_config import NUM_CONTROL_CODES
from stages.models.qwen3_tts.talker.sampling import chances, choose, penalised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from stages.kernels.attention import Span
    from stages.models.qwen3_tts.talker.model import CodePredictor, TalkerModel

MIN_FRAMES = 2  # a sequence cannot end before


class DecodeBatch:
    """Rows for `num_rows` sequences of at most `max_tokens` positions each.

    `first_codes` [rows] holds the first code of each row's current frame, `frames` [rows, groups]
    the last complete frames, `hidden` [rows, hidden] the last hidden states of the talker.
    """

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
        vocab_size = config.talker.vocab_size
        self.active = torch.zeros(num_rows, dtype=torch.bool, device=device)
        self.first_codes = torch.zeros(num_rows, dtype=torch.int64, device=device)
        self.frames = torch.zeros(num_rows, config.num_groups, dtype=torch.int64, device=device)
        self.hidden = torch.zeros(
            num_rows, config.talker.hidden_size, dtype=talker.dtype, device=device
        )
        self._position = torch.zeros(num_rows, dtype=torch.int64, device=device)
        self._frame = torch.zeros(num_rows, dtype=torch.int64, device=device)
        self._seed = torch.zeros(num_rows, dtype=torch.int64, device=device)
        self._seen_codes = torch.zeros(num_rows, vocab_size, dtype=torch.bool, device=device)
        # The text token that the talker reads with each frame; padding after the last.
        self._text_tokens = torch.full(
            (num_rows, max_tokens), config.text.pad, dtype=torch.int64, device=device
        )
        self._forbidden = torch.zeros(vocab_size, dtype=torch.bool, device=device)
        self._forbidden[vocab_size - NUM_CONTROL_CODES :] = True
        self._forbidden[config.control.eos] = False
        self._is_eos = torch.zeros_like(self._forbidden)
        self._is_eos[config.control.eos] = True

    # What the host does to single rows.

    def prefill(self, spans: Sequence[Span], embeddings: Sequence[Tensor]) -> Tensor:
        """Run the talker over embeddings [length, hidden] of each span.

        Returns the last hidden states [n, hidden] of the spans that want them.
        """
        batch = SpanBatch(spans, self._config.talker.num_heads)
        joined = torch.cat([embeddings[i] for i in batch.order])
        return self._talker.decoder(joined, batch, batch.last)

    def claim(self, row: int, length: int) -> None:
        """Reserve a row for a sequence, before the prefill of its prompt of `length` positions.

        A step writes to the KV cache of every row at the row's position, active or not. That
        position must lie after the prompt.
        """
        self._position[row].fill_(length)

    def begin(self, row: int, hidden: Tensor, seed: int) -> None:
        """Begin to decode a sequence. `hidden` [hidden] is the last state of its prefill.

        Uses `fill_`, because assigning a number to an element on a GPU waits for the whole device.
        """
        self.hidden[row] = hidden
        self._frame[row].fill_(0)
        self._seed[row].fill_(seed)
        self._seen_codes[row].fill_(False)
        self._text_tokens[row].fill_(self._config.text.pad)
        one = slice(row, row + 1)
        self.first_codes[one] = self._choose_first_codes(one, self.hidden[one], self._frame[one])
        self._seen_codes[row].index_fill_(0, self.first_codes[one], True)

    def set_text(self, row: int, frame: int, tokens: Tensor) -> None:
        """Set the text tokens that are read with frame number `frame` and the frames after it."""
        self._text_tokens[row, frame : frame + len(tokens)] = tokens

    # The decode step.

    def predict(self, num_rows: int) -> None:
        """Complete the current frame of the first `num_rows` rows, in `frames`."""
        groups = torch.arange(self._config.num_groups, device=self._frame.device)
        numbers = self._frame[:num_rows, None] * len(groups) + groups
        chance = chances(self._seed[:num_rows, None], numbers)

        def chosen(logits: Tensor, group: int) -> Tensor:
            return choose(logits, chance[:, group], self._config.rest)

        frames = self._predictor(self.hidden[:num_rows], self.first_codes[:num_rows], chosen)
        self.frames[:num_rows] = frames

    def advance(self, num_rows: int, end: int) -> None:
        """Run the talker over the frames of the first `num_rows` rows.

        Attention covers the positions before `end`; every row's position must be less.
        """
        rows = slice(0, num_rows)
        active, frame, position = self.active[rows], self._frame[rows], self._position[rows]
        embeddings = self._talker.embed_frames(self.frames[rows])
        text = self._text_tokens[rows].gather(1, frame[:, None])[:, 0]
        embeddings += self._talker.embed_text(text)
        batch = rows_batch(self.slab, position, end, self._config.talker.num_heads)
        hidden = self._talker.decoder(embeddings, batch)
        codes = self._choose_first_codes(rows, hidden, frame + 1)
        self.hidden[rows] = torch.where(active[:, None], hidden, self.hidden[rows])
        self.first_codes[rows] = torch.where(active, codes, self.first_codes[rows])
        seen = self._seen_codes[rows].scatter(1, self.first_codes[rows, None], True)
        self._seen_codes[rows] = torch.where(active[:, None], seen, self._seen_codes[rows])
        position += active
        frame += active

    def _choose_first_codes(self, rows: slice, hidden: Tensor, frame: Tensor) -> Tensor:
        """The first codes of the frames with these numbers; the EOS code ends a sequence."""
        config = self._config
        logits = self._talker.logits(hidden)
        logits = penalised(logits, self._seen_codes[rows], config.repetition_penalty)
        logits = logits.masked_fill(self._forbidden, -torch.inf)
        early = (frame < MIN_FRAMES)[:, None]
        logits = logits.masked_fill(early & self._is_eos, -torch.inf)
        chance = chances(self._seed[rows], frame * config.num_groups)
        return choose(logits, chance, config.first)
