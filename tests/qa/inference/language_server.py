"""A small real HTTP server that speaks the chat-completions protocol, and misbehaves."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

GOOD = {
    "evidence": [1],
    "quotes": [{"piece": 1, "quote": "costs 72 euros a year"}],
    "reasoning": "Piece 1 names the price.",
    "can_answer": True,
    "answer": "72 euros a year.",
}


@dataclass(frozen=True)
class Reply:
    """One HTTP reply."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    after_seconds: float = 0.0


@dataclass
class LanguageServer:
    """What was asked, and what will be replied in order (the last one for ever)."""

    url: str
    replies: list[Reply] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    def next_reply(self) -> Reply:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


def completion(content: Any = None, **changes: Any) -> Reply:
    """Return a good reply with `content` as text (an object is dumped as JSON)."""
    text = content if isinstance(content, str) else json.dumps(content or GOOD)
    message = {"role": "assistant", "content": text} | changes.pop("message", {})
    choice = {"index": 0, "finish_reason": "stop", "message": message} | changes
    return Reply(
        body={
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [choice],
            "usage": {
                "prompt_tokens": 90,
                "completion_tokens": 30,
                "total_tokens": 120,
            },
        }
    )


def failure(status: int, message: str = "no", **headers: str) -> Reply:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, {"error": {"message": message}}, names)


@contextmanager
def running(*replies: Reply) -> Iterator[LanguageServer]:
    """Serve `replies` on a free local port."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server = LanguageServer(f"http://127.0.0.1:{http.server_port}/v1", list(replies))
    http.RequestHandlerClass = _handler(server.next_reply, server)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


def _handler(
    next_reply: Callable[[], Reply], server: LanguageServer
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            server.requests.append(json.loads(self.rfile.read(length)))
            server.keys.append(self.headers["Authorization"])
            self._send(next_reply())

        def do_GET(self) -> None:
            self._send(next_reply())

        def _send(self, reply: Reply) -> None:
            time.sleep(reply.after_seconds)
            is_text = isinstance(reply.body, str)
            body = (reply.body if is_text else json.dumps(reply.body)).encode()
            kind = reply.headers.get("Content-Type", "application/json")
            try:
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    if name != "Content-Type":
                        self.send_header(name, value)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                pass  # the client gave up waiting

        def log_message(self, *_arguments: object) -> None:
            pass

    return Handler
