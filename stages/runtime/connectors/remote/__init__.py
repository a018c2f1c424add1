"""The connector between workers that may be on different machines, over ZeroMQ sockets.

The receiver listens. The sender connects, says hello, and connects again whenever the connection is
gone. Everything sent in one turn of a worker is one message. Where both are on one machine, the
sender hands rings in shared memory over with its hello. Chunks and credit then go through the
rings, and the connection only shows that the peer is there. Needs the extra `ray`.
"""
