"""`POST /v1/chat/completions`: plans a chat, and replies in one JSON body or in chunks."""
