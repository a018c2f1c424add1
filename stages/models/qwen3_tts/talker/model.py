"""The weights of the talker that are not its layers, and both of its transformers.

A frame of speech is `num_groups` codes. The talker, a Qwen3 language model, gives the first code of
each; the code predictor, a smaller one, reads the talker's state and that code and gives the others
one after the other. The sum of the embeddings of a frame's codes, and a text token, is what the
talker reads next. (Qwen3-TTS technical report, arXiv 2601.15621.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from stages.kernels.attention import Batch, Run
from stages.kernels.device import on_device
from stages.kernels.kv_cache import Slab, Slot
from stages.kernels.transformer import DecoderOnlyTransformer, Source, TransformerConfig
from stages.models.qwen3_tts.talker.prompt import SPEAKER
from stages.models.qwen3_tts.talker.shapes import check_shapes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

    from stages.kernels.linear import Linear
    from stages.models.qwen3_tts.talker.copied_voice import CopiedVoice
    from stages.models.qwen3_tts.talker.model_config import LayerSizes, QwenTtsConfig
    from stages.models.qwen3_tts.talker.prompt import Prompt
    from stages.weights.safetensors import Weights

    # Logits [rows, vocabulary] and the number of the group, 0 the first → codes [rows].
    Choose = Callable[[Tensor, int], Tensor]


class TalkerModel:
    """Embeddings, layers and head of the talker."""

    def __init__(
        self, config: QwenTtsConfig, weights: Weights, device: torch.device, dtype: torch.dtype
    ) -> None:
        """Take the weights; CheckpointError names one that is missing or of another shape."""
        self.config = config
        check_shapes(config, weights)
        source = Source(weights, device, dtype)
        self.dtype = source.state_dtype
        self.device = device
        self.decoder = DecoderOnlyTransformer(_transformer(config.talker), source, "talker.model.")
        self._text = source.rows("talker.model.text_embedding")
        self._project = [
            source.linear(f"talker.text_projection.linear_{fc}", bias=True) for fc in ("fc1", "fc2")
        ]
        self._head = source.linear("talker.codec_head")
        # All groups' embeddings one below the other: a frame is looked up at once.
        names = [f"talker.code_predictor.model.codec_embedding.{g}" for g in _rest(config)]
        self.codec_table = source.rows("talker.model.codec_embedding", *names)
        sizes = [config.talker.vocab_size, *[config.predictor.vocab_size] * len(names)]
        self._offsets = torch.tensor([0, *sizes[:-1]], device=device).cumsum(0)

    def embed_text(self, tokens: Tensor) -> Tensor:
        """Text tokens [n] → [n, hidden]."""
        state = functional.embedding(tokens, self._text)
        state = functional.silu(self._project[0](state))
        return self._project[1](state).to(self.dtype)

    def embed_codes(self, codes: Tensor, group: int = 0) -> Tensor:
        """Codes of one group, [n] → [n, hidden]."""
        return functional.embedding(codes + self._offsets[group], self.codec_table).to(self.dtype)

    def embed_frames(self, frames: Tensor) -> Tensor:
        """Whole frames, [n, groups] → [n, hidden]."""
        rows = functional.embedding(frames + self._offsets, self.codec_table)
        return rows.to(self.dtype).sum(1)

    def embed_prompt(
        self, text: Sequence[int], prompt: Prompt, voice: CopiedVoice | None
    ) -> Tensor:
        """A whole prompt, whose text tokens are `text` → [its length, hidden]."""
        state = self.embed_text(on_device(text, self.device))
        codes = [*prompt.codes, self.config.control.bos]
        beside = self.embed_codes(on_device([max(0, code) for code in codes], self.device))
        if voice is not None:
            beside[codes.index(SPEAKER)] = voice.speaker
            if prompt.num_reference_frames:
                beside = torch.cat([beside, self.embed_frames(voice.frames)])
        state[len(state) - len(beside) :] += beside
        return state

    def logits(self, states: Tensor) -> Tensor:
        """States [n, hidden] → float32 [n, vocabulary]."""
        return self._head(states).float()


class CodePredictor:
    """The rest of a frame's codes, for the first rows of a step; keeps nothing between frames."""

    def __init__(self, talker: TalkerModel, weights: Weights, dtype: torch.dtype) -> None:
        config = talker.config
        source = Source(weights, talker.device, dtype)
        prefix = "talker.code_predictor."
        self._talker = talker
        self._num_groups = config.num_groups
        self._decoder = DecoderOnlyTransformer(
            _transformer(config.predictor), source, f"{prefix}model."
        )
        self._heads = [source.linear(f"{prefix}lm_head.{g}") for g in _rest(config)]
        self._project: Linear | None = None
        if config.predictor.hidden_size != config.talker.hidden_size:
            self._project = source.linear(f"{prefix}small_to_mtp_projection", bias=True)
        self._batches: dict[int, list[Batch]] = {}

    def prepare(self, num_rows: int) -> None:
        """Make room for steps of `num_rows` rows."""
        if num_rows in self._batches:
            return
        shape = self._decoder.cache_shape
        slab = Slab(shape, self._num_groups, num_rows)
        heads = self._decoder.config.num_heads
        device = shape.device
        first = torch.arange(2, device=device).expand(num_rows, 2)
        runs = [Run(Slot(slab, 0), first, 2, 0, heads, masked=True)]
        for at in range(2, self._num_groups):
            position = torch.full((num_rows, 1), at, device=device)
            runs.append(Run(Slot(slab, 0), position, at + 1, 0, heads, masked=False))
        self._batches[num_rows] = [Batch([run]) for run in runs]

    def __call__(self, states: Tensor, first: Tensor, choose: Choose) -> Tensor:
        """The talker's states [rows, hidden] and first codes [rows] → frames [rows, groups]."""
        codes = [first]
        begin = torch.stack([states, self._talker.embed_codes(first)], 1).flatten(0, 1)
        read = begin
        for group, batch in enumerate(self._batches[len(first)], 1):
            state = self._decoder(self._narrowed(read), batch)
            last = state.view(len(first), -1, state.shape[-1])[:, -1]
            codes.append(choose(self._heads[group - 1](last).float(), group))
            read = self._talker.embed_codes(codes[-1], group)
        return torch.stack(codes, 1)

    def _narrowed(self, states: Tensor) -> Tensor:
        if self._project is None:
            return states
        return self._project(states).to(states.dtype)


def _transformer(sizes: LayerSizes) -> TransformerConfig:
    return TransformerConfig(
        vocab_size=sizes.vocab_size,
        hidden_size=sizes.hidden_size,
        intermediate_size=sizes.intermediate_size,
        num_layers=sizes.num_layers,
        num_heads=sizes.num_heads,
        num_kv_heads=sizes.num_kv_heads,
        head_dim=sizes.head_dim,
        max_tokens=sizes.max_tokens,
        rope_theta=sizes.rope_theta,
        rms_eps=sizes.rms_eps,
        tied_head=False,
        qk_norm=True,
        qkv_bias=sizes.qkv_bias,
    )


def _rest(config: QwenTtsConfig) -> range:
    return range(config.num_groups - 1)
