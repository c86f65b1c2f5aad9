"""Web application of the dashboard: pages, server-sent events and the few things that may be asked for.

Strict content policy, no third-party request. On this computer only, unless a password is set.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import math
import secrets
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

STATIC = Path(__file__).parent / "static"
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_RAW_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
COOKIE = "meterveil"
MOST_BYTES = 4096
LOGINS, LOGIN_S = 5, 60.0
"""Failed logins within so many seconds before every further one is refused."""
CONFIRM_S = 30.0
EVERY_S = 1.0
ALLOWED = {"protection": ("ON", "OFF"), "mode": ("shadow", "live")}
"""What a page may ask for; a budget is a number."""
LOCAL = ["127.0.0.1", "localhost", "[::1]"]


class Source(Protocol):
    """What the page needs of a guard."""

    def state(self) -> dict[str, Any]:
        """Return everything that the page shows now."""
        ...

    def history(self) -> dict[str, list[Any]]:
        """Return the minutes of the last day as columns."""
        ...

    def ask(self, what: str, value: str) -> None:
        """Ask for a change."""
        ...


class _Door:
    """Sessions, tokens against forged requests, and the rate limit of logins."""

    def __init__(self, password: str | None) -> None:
        self.password = password
        self.sessions: dict[str, str] = {}  # session -> token
        self._failed: list[float] = []
        self._confirm: dict[str, tuple[str, str, float]] = {}

    def open_session(self) -> str:
        """Make a session and return its name; only the latest hundred stay open."""
        name = secrets.token_urlsafe(24)
        self.sessions[name] = secrets.token_urlsafe(24)
        while len(self.sessions) > 100:
            self.sessions.pop(next(iter(self.sessions)))
        return name

    def token(self, request: Request) -> str | None:
        """Return the token of a request's session, None without one."""
        return self.sessions.get(request.cookies.get(COOKIE, ""))

    def may_try(self) -> bool:
        """Tell whether another login may be tried."""
        now_s = time.monotonic()
        self._failed = [at_s for at_s in self._failed if now_s - at_s < LOGIN_S]
        return len(self._failed) < LOGINS

    def fits(self, given: str) -> bool:
        """Compare a password in constant time; remember a failure."""
        right = hmac.compare_digest(given.encode(), (self.password or "").encode())
        if not right:
            self._failed.append(time.monotonic())
        return right

    def confirmed(self, what: str, value: str, nonce: str) -> bool:
        """Tell whether this very change was asked for a moment ago."""
        asked = self._confirm.pop(nonce, None)
        return asked is not None and asked[:2] == (what, value) and time.monotonic() - asked[2] < CONFIRM_S

    def to_confirm(self, what: str, value: str) -> str:
        """Remember a change that needs a second confirmation; return its name."""
        nonce = secrets.token_urlsafe(12)
        self._confirm = {nonce: (what, value, time.monotonic())}
        return nonce


class _Pages:
    """Handlers of all addresses."""

    def __init__(self, source: Source, door: _Door, closes: threading.Event) -> None:
        self._source, self._door, self._closes = source, door, closes

    async def page(self, request: Request) -> Response:
        door = self._door
        if door.token(request) is None and door.password is not None:
            return RedirectResponse("/login", 303)
        response = HTMLResponse((STATIC / "index.html").read_text(encoding="utf-8"))
        return response if door.token(request) is not None else _with_session(response, door)

    async def login(self, request: Request) -> Response:
        door = self._door
        if request.method == "GET":
            return HTMLResponse((STATIC / "login.html").read_text(encoding="utf-8"))
        if not door.may_try():
            return JSONResponse({"error": "too many tries; wait a minute"}, 429)
        body = await _body(request)
        if door.password is None or not door.fits(str(body.get("password", ""))):
            return JSONResponse({"error": "wrong password"}, 403)
        return _with_session(JSONResponse({"ok": True}), door)

    async def events(self, request: Request) -> Response:
        if self._door.token(request) is None:
            return JSONResponse({"error": "log in first"}, 403)
        return StreamingResponse(_stream(self._source, self._closes), media_type="text/event-stream")

    async def history(self, request: Request) -> Response:
        token = self._door.token(request)
        if token is None:
            return JSONResponse({"error": "log in first"}, 403)
        return JSONResponse({**known(await asyncio.to_thread(self._source.history)), "token": token})

    async def do(self, request: Request) -> Response:
        door, body = self._door, await _body(request)
        token = door.token(request)
        given = request.headers.get("x-token", "").encode()
        if token is None or not hmac.compare_digest(given, token.encode()):
            return JSONResponse({"error": "this request did not come from the page; reload it"}, 403)
        what, value = str(body.get("what")), str(body.get("value"))
        if not _is_allowed(what, value):
            return JSONResponse({"error": "not possible"}, 400)
        if (what, value) == ("mode", "live") and not door.confirmed(what, value, str(body.get("confirm"))):
            return JSONResponse({"confirm": door.to_confirm(what, value)})
        self._source.ask(what, value)
        return JSONResponse({"ok": True})


def build_app(source: Source, password: str | None, closes: threading.Event) -> Starlette:
    """Build the application; open streams end once it closes."""
    pages = _Pages(source, _Door(password), closes)
    hosts = LOCAL if password is None else ["*"]
    return Starlette(
        routes=[
            Route("/", pages.page),
            Route("/login", pages.login, methods=["GET", "POST"]),
            Route("/events", pages.events),
            Route("/history", pages.history),
            Route("/do", pages.do, methods=["POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[Middleware(_Strict), Middleware(TrustedHostMiddleware, allowed_hosts=hosts)],
    )


class _Strict:
    """Adds the headers of every response, streams included."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_RAW_HEADERS]
            await send(message)

        await self._app(scope, receive, with_headers)


async def _body(request: Request) -> dict[str, Any]:
    """Read a small JSON object; empty for anything else."""
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > MOST_BYTES:
            return {}
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


async def _stream(source: Source, closes: threading.Event) -> AsyncIterator[str]:
    """Send the state every second until the server closes; a stream that is cut off would print an error."""
    while not closes.is_set():
        yield f"data: {json.dumps(known(source.state()))}\n\n"
        await asyncio.sleep(EVERY_S)


def known(value: Any) -> Any:
    """Replace numbers that JSON does not know by null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: known(part) for key, part in value.items()}
    return [known(part) for part in value] if isinstance(value, list | tuple) else value


def _with_session(response: Response, door: _Door) -> Response:
    response.set_cookie(COOKIE, door.open_session(), httponly=True, samesite="strict")
    return response


def _is_allowed(what: str, value: str) -> bool:
    if what != "budget":
        return value in ALLOWED.get(what, ())
    try:
        return 0.0 <= float(value) <= 1000.0
    except ValueError:
        return False


class Server:
    """The dashboard in a thread of its own."""

    def __init__(self, source: Source, host: str, port: int, password: str | None = None) -> None:
        self._closes = threading.Event()
        settings = uvicorn.Config(
            build_app(source, password, self._closes),
            host=host,
            port=port,
            log_level="warning",
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=round(3 * EVERY_S),
            limit_concurrency=64,
        )
        self._server = uvicorn.Server(settings)
        self._thread = threading.Thread(target=self._server.run, name="dashboard", daemon=True)
        self._thread.start()

    def address(self, wait_s: float = 120.0) -> str:
        """Return the address of the page once it answers; "" where the port is taken. A busy computer takes long."""
        end = time.monotonic() + wait_s
        while not self._server.started and self._thread.is_alive() and time.monotonic() < end:
            time.sleep(0.01)
        if not self._server.started:
            return ""
        host, port = self._server.servers[0].sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    def close(self) -> None:
        """Stop serving, once the open pages have had their last state."""
        self._closes.set()
        self._server.should_exit = True
        self._thread.join(5.0)
