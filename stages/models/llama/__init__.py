"""The thinker: language models of the Llama layout, such as SmolLM2. Chat in, text out.

`packaged_model` and `gguf_weights` convert the model once; `prompts` and `vocabulary` turn chats
into tokens and back. `stage` advances all requests, planned by `schedule`.
"""
