"""The streaming rival: LitServe around piper. It sends a piece of raw PCM for each sentence.

Run it in its own environment: `python litserve_piper.py VOICE.onnx PORT`.
"""

import sys

import litserve
from piper import PiperVoice


class Speak(litserve.LitAPI):
    """Speaks `{"text": ...}`."""

    def setup(self, device):
        """Load the voice that the command line names."""
        self.voice = PiperVoice.load(sys.argv[1])

    def decode_request(self, request):
        """The text of the request."""
        return request["text"]

    def predict(self, text):
        """Yield the PCM of each sentence."""
        for chunk in self.voice.synthesize(text):
            yield chunk.audio_int16_bytes

    def encode_response(self, output):
        """Send the bytes unchanged."""
        yield from output


if __name__ == "__main__":
    server = litserve.LitServer(Speak(stream=True), accelerator="cpu", timeout=False)
    server.run(host="127.0.0.1", port=int(sys.argv[2]), generate_client_file=False)
