"""`heedful learn`: serves the course on this machine. A page is rendered when it is first opened."""

from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

from ..errors import HeedfulError
from .site import find_pages, render_site_page


class CourseServer(ThreadingHTTPServer):
    """An HTTP server on 127.0.0.1 with the pages of the course; port 0 takes a free one."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _PageHandler)
        self.pages = find_pages()
        self.rendered: dict[str, str] = {}
        self.lock = Lock()

    def page(self, address: str) -> str:
        """Return the HTML of a page, rendered once."""
        with self.lock:
            if address not in self.rendered:
                self.rendered[address] = render_site_page(self.pages[address], self.pages)
            return self.rendered[address]


class _PageHandler(BaseHTTPRequestHandler):
    server: CourseServer

    def do_GET(self) -> None:
        address = self.path.partition("?")[0].lstrip("/") or "en/index.html"
        if address not in self.server.pages:
            self._send(HTTPStatus.NOT_FOUND, "there is no such page", "text/plain")
            return
        try:
            self._send(HTTPStatus.OK, self.server.page(address), "text/html")
        except HeedfulError as error:
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, str(error), "text/plain")

    def _send(self, status: HTTPStatus, text: str, kind: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing: the terminal only says where the course is."""
