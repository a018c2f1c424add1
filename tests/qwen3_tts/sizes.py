"""Small sizes of every part of Qwen3-TTS, as the configuration files of a checkpoint.

Every kind of module occurs. Sizes that could be confused differ. The code predictor of the base
checkpoint is as wide as its talker; in the other checkpoints it is narrower and has a projection.
"""

from __future__ import annotations

from typing import Any

CODEBOOK = 256
GROUPS = 6
END = CODEBOOK + 2
TEXT_MERGES = [
    *[("assistant"[:n], "assistant"[n]) for n in range(1, 9)],
    ("t", "h"),
    ("th", "e"),
    ("\u0120", "the"),
    ("i", "n"),
    ("in", "g"),
    ("e", "r"),
    ("o", "u"),
    ("\u0120", "s"),
    ("l", "l"),
    ("\u010a", "\u010a"),
    ("\u00e4", "\u00bd"),  # the first two bytes of a Chinese character
]
SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<tts_pad>",
    "<tts_text_bos>",
    "<tts_text_eod>",
)
FIRST_SPECIAL = 256 + len(TEXT_MERGES)
TEXT_VOCAB = FIRST_SPECIAL + len(SPECIAL_TOKENS)

# Speakers and languages have rows of the codec embedding, as in the public checkpoints.
LANGUAGES = {
    "chinese": CODEBOOK + 20,
    "english": CODEBOOK + 21,
    "german": CODEBOOK + 22,
    "sichuan_dialect": CODEBOOK + 23,
}
SPEAKERS = {"vivian": CODEBOOK + 40, "eric": CODEBOOK + 41, "ryan": CODEBOOK + 42}
DIALECTS = {"vivian": False, "eric": "sichuan_dialect", "ryan": False}

GREEDY = {"do_sample": False, "subtalker_dosample": False, "repetition_penalty": 1.05}
SAMPLED = {
    "do_sample": True,
    "temperature": 0.9,
    "top_k": 50,
    "top_p": 1.0,
    "repetition_penalty": 1.05,
    "subtalker_dosample": True,
    "subtalker_temperature": 0.9,
    "subtalker_top_k": 50,
    "subtalker_top_p": 1.0,
    "max_new_tokens": 8192,
}


def model_config(kind: str) -> dict[str, Any]:
    """`config.json` of a checkpoint of `kind`: custom_voice, voice_design or base."""
    predictor_hidden = 64 if kind == "base" else 48
    return {
        "architectures": ["Qwen3TTSForConditionalGeneration"],
        "model_type": "qwen3_tts",
        "tokenizer_type": "qwen3_tts_tokenizer_12hz",
        "tts_model_size": "1b7",
        "tts_model_type": kind,
        "im_start_token_id": FIRST_SPECIAL + 1,
        "im_end_token_id": FIRST_SPECIAL + 2,
        "tts_pad_token_id": FIRST_SPECIAL + 3,
        "tts_bos_token_id": FIRST_SPECIAL + 4,
        "tts_eos_token_id": FIRST_SPECIAL + 5,
        "speaker_encoder_config": {
            "enc_dim": 64,
            "enc_channels": [32, 32, 32, 32, 96],
            "enc_attention_channels": 16,
            "enc_res2net_scale": 4,
            "enc_se_channels": 12,
            "sample_rate": 24000,
        },
        "talker_config": {
            "attention_bias": False,
            "hidden_act": "silu",
            "hidden_size": 64,
            "intermediate_size": 112,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 32,
            "max_position_embeddings": 1024,
            "rms_norm_eps": 1e-06,
            "rope_theta": 1000000,
            "rope_scaling": {
                "interleaved": True,
                "mrope_section": [6, 5, 5],
                "rope_type": "default",
                "type": "default",
            },
            "vocab_size": CODEBOOK + 1024,
            "text_vocab_size": TEXT_VOCAB,
            "text_hidden_size": 40,
            "num_code_groups": GROUPS,
            "codec_pad_id": CODEBOOK,
            "codec_bos_id": CODEBOOK + 1,
            "codec_eos_token_id": END,
            "codec_think_id": CODEBOOK + 6,
            "codec_nothink_id": CODEBOOK + 7,
            "codec_think_bos_id": CODEBOOK + 8,
            "codec_think_eos_id": CODEBOOK + 9,
            "codec_language_id": LANGUAGES,
            "spk_id": SPEAKERS if kind == "custom_voice" else {},
            "spk_is_dialect": DIALECTS if kind == "custom_voice" else {},
            "code_predictor_config": {
                "attention_bias": False,
                "hidden_act": "silu",
                "hidden_size": predictor_hidden,
                "intermediate_size": 80,
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
                "num_key_value_heads": 2,
                "head_dim": 16,
                "max_position_embeddings": 65536,
                "rms_norm_eps": 1e-06,
                "rope_theta": 1000000,
                "rope_scaling": None,
                "vocab_size": CODEBOOK,
                "num_code_groups": GROUPS,
                "layer_types": ["full_attention"] * 2,
                "use_sliding_window": False,
            },
        },
    }


SPEECH_TOKENIZER = {
    "architectures": ["Qwen3TTSTokenizerV2Model"],
    "model_type": "qwen3_tts_tokenizer_12hz",
    "encoder_valid_num_quantizers": GROUPS,
    "input_sample_rate": 24000,
    "output_sample_rate": 24000,
    "decode_upsample_rate": 1920,
    "encode_downsample_rate": 1920,
    "encoder_config": {
        "sampling_rate": 24000,
        "frame_rate": 12.5,
        "hidden_size": 32,
        "num_filters": 4,
        "upsampling_ratios": [8, 6, 5, 4],
        "upsample_groups": 32,
        "codebook_size": CODEBOOK,
        "codebook_dim": 16,
        "vector_quantization_hidden_dimension": 16,
        "num_quantizers": GROUPS + 2,
        "num_semantic_quantizers": 1,
        "num_hidden_layers": 2,
        "intermediate_size": 56,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "sliding_window": 250,
        "norm_eps": 1e-05,
        "rope_theta": 10000.0,
    },
    "decoder_config": {
        "codebook_size": CODEBOOK,
        "codebook_dim": 32,
        "hidden_size": 32,
        "latent_dim": 40,
        "head_dim": 20,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "intermediate_size": 56,
        "num_hidden_layers": 2,
        "num_quantizers": GROUPS,
        "sliding_window": 8,
        "rope_theta": 10000,
        "rms_norm_eps": 1e-05,
        "upsample_rates": [8, 5, 4, 3],
        "upsampling_ratios": [2, 2],
        "decoder_dim": 64,
        "layer_scale_initial_scale": 0.01,
    },
}
