"""`POST /v1/audio/speech`: plans a speech, and replies with an audio file or with events."""
