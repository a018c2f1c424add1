"""The sizes of the public checkpoints, as changes to the small configurations of the tests.

The text tokenizer is the small one of the tests: about one token for each letter, so a text of 50
letters is a speech of about 50 frames. The text embedding is as large as the real one.
"""

from __future__ import annotations

from typing import Any

from tests.qwen3_tts import sizes as small

TALKERS = {"0.6B": ("0b6", 1024, 3072), "1.7B": ("1b7", 2048, 6144)}
CODEBOOK = 2048
GROUPS = 16
TEXT_VOCAB = 151_936


def model_config(size: str) -> dict[str, Any]:
    """`config.json` of a CustomVoice checkpoint."""
    name, hidden, intermediate = TALKERS[size]
    config = small.model_config("custom_voice")
    talker = config["talker_config"]
    return config | {
        "tts_model_size": name,
        "speaker_encoder_config": {"enc_dim": hidden, "sample_rate": 24000},
        "talker_config": talker
        | {
            "hidden_size": hidden,
            "intermediate_size": intermediate,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "max_position_embeddings": 32768,
            "rope_scaling": talker["rope_scaling"] | {"mrope_section": [24, 20, 20]},
            "vocab_size": 3072,
            "text_vocab_size": TEXT_VOCAB,
            "text_hidden_size": 2048,
            "num_code_groups": GROUPS,
            "codec_pad_id": 2148,
            "codec_bos_id": 2149,
            "codec_eos_token_id": 2150,
            "codec_think_id": 2154,
            "codec_nothink_id": 2155,
            "codec_think_bos_id": 2156,
            "codec_think_eos_id": 2157,
            "codec_language_id": {"english": 2050, "chinese": 2055},
            "spk_id": {"ryan": 3061},
            "spk_is_dialect": {"ryan": False},
            "code_predictor_config": talker["code_predictor_config"]
            | {
                "hidden_size": 1024,
                "intermediate_size": 3072,
                "num_hidden_layers": 5,
                "num_attention_heads": 16,
                "num_key_value_heads": 8,
                "head_dim": 128,
                "vocab_size": CODEBOOK,
                "num_code_groups": GROUPS,
                "layer_types": ["full_attention"] * 5,
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
    "encoder_config": {"frame_rate": 12.5, "upsampling_ratios": [8, 6, 5, 4]},
    "decoder_config": {
        "codebook_dim": 512,
        "codebook_size": CODEBOOK,
        "decoder_dim": 1536,
        "head_dim": 64,
        "hidden_size": 512,
        "intermediate_size": 1024,
        "latent_dim": 1024,
        "layer_scale_initial_scale": 0.01,
        "max_position_embeddings": 8000,
        "num_attention_heads": 16,
        "num_hidden_layers": 8,
        "num_key_value_heads": 16,
        "num_quantizers": GROUPS,
        "rms_norm_eps": 1e-05,
        "rope_theta": 10000,
        "sliding_window": 72,
        "upsample_rates": [8, 5, 4, 3],
        "upsampling_ratios": [2, 2],
    },
}
