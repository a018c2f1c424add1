"""The table's rows, where a stage's tests cannot see them."""

import torch

from tests.stages.models.qwen3_tts.talker.driver import NoWaiting


@torch.inference_mode()
def test_a_speech_begins_without_waiting_for_the_device(checkpoints, make_table):
    talker, _, table = make_table(checkpoints["custom_voice"])
    state = torch.ones(talker.config.talker.hidden_size)
    with NoWaiting():
        table.claim(1, 5)
        table.begin(1, state, 2**40)
    assert (table._position[1], table._seed[1]) == (5, 2**40)
    assert table._seen[1].sum() == 1
