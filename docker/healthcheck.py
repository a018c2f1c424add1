"""Exits with 0 if the server in this container is ready.

It runs often, so it imports only the standard library. It reads the port, and whether the server
uses TLS, from the environment variables of the image.
"""

import os
import ssl
import sys
import urllib.error
import urllib.request

uses_tls = "NANO_OMNI_SSL_CERTFILE" in os.environ  # noqa: TID251 - the server is not imported here
port = os.environ["NANO_OMNI_PORT"]  # noqa: TID251
url = f"{'https' if uses_tls else 'http'}://127.0.0.1:{port}/health/ready"
unverified = ssl._create_unverified_context()  # the certificate is not for 127.0.0.1
try:
    urllib.request.urlopen(url, timeout=4, context=unverified).close()
except (urllib.error.URLError, OSError) as error:
    sys.exit(f"not ready: {error}")
