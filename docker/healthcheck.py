"""Ends with 0 when the server in this container is ready. Only the standard library: it runs often.

The port and whether it is TLS come from the environment, where the image's own settings are.
"""

import os
import ssl
import sys
import urllib.error
import urllib.request

secure = "NANO_OMNI_SSL_CERTFILE" in os.environ  # noqa: TID251 - the server is not imported here
port = os.environ["NANO_OMNI_PORT"]  # noqa: TID251
url = f"{'https' if secure else 'http'}://127.0.0.1:{port}/health/ready"
trusting = ssl._create_unverified_context()  # the certificate is for another name than loopback
try:
    urllib.request.urlopen(url, timeout=4, context=trusting).close()
except (urllib.error.URLError, OSError) as error:
    sys.exit(f"not ready: {error}")
