"""The rows of a batch, where the tests of the stage cannot see them."""

import torch

from tests.stages.models.qwen3_tts.talker.driver import NoWaiting


@torch.inference_mode()
def test_a_sequence_begins_without_waiting_for_the_device(sampling_checkpoint, make_batch):
    talker, _, batch = make_batch(sampling_checkpoint)
    hidden = torch.ones(talker.config.talker.hidden_size)
    seeds = (1, 2, 2**40 + 1, 1)
    with NoWaiting():
        for row, seed in enumerate(seeds):
            batch.claim(row, 5)
            batch.begin(row, hidden, seed)
    codes = batch.first_codes.tolist()
    assert torch.equal(batch.hidden, hidden.expand_as(batch.hidden))
    assert codes[0] == codes[3]
    assert len(set(codes)) == 3  # each seed samples another code
