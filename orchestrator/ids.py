"""Internal request ids: a random epoch for each start of the server, and a counter.

No id is used twice, whatever ids clients send, so a late chunk or output of an old request
cannot reach a new one (I5).
"""

import itertools
import secrets

_epoch = secrets.token_hex(4)
_counter = itertools.count()


def new_request_id() -> str:
    """An id that no request has had before."""
    return f"{_epoch}-{next(_counter)}"
