"""Where the web server listens."""

import errno
import socket
from dataclasses import dataclass

from nescio.up import UpError

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # compared, not bound


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    @property
    def reachable_host(self) -> str:
        return _EVERYWHERE.get(self.host, self.host)

    @property
    def url(self) -> str:
        host = self.reachable_host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    def require_free(self) -> None:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            # As servers do: a connection that lately closed does not hold the port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((self.host, self.port))
                probe.listen(1)
            except OSError as error:
                raise UpError(self._explain(error)) from error

    def _explain(self, error: OSError) -> str:
        if error.errno == errno.EADDRINUSE:
            return (
                f"Port {self.port} on {self.host} is in use by another program. Choose "
                f"another one: NESCIO_PORT={self.port + 1} make up"
            )
        return (
            f"Can not listen on {self.host} port {self.port}: {error.strerror}. Choose "
            "others with NESCIO_HOST and NESCIO_PORT."
        )
