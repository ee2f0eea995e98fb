"""`python -m nescio.probe_health [PORT]`: status 0 when ready, for images without curl."""

import http.client
import os
import sys

_PORT = 8000  # the image's; NESCIO_PORT is for `make up`


def main() -> int:
    # The server refuses host names that are not allowed.
    host = os.environ.get("NESCIO_ALLOWED_HOSTS", "localhost").partition(",")[0]
    host = host.strip().strip("*").lstrip(".") or "localhost"
    port = int(sys.argv[1]) if len(sys.argv) > 1 else _PORT
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=8)
    try:
        connection.request("GET", "/healthz", headers={"Host": host})
        return 0 if connection.getresponse().status == http.client.OK else 1
    except (OSError, http.client.HTTPException):
        return 1
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
