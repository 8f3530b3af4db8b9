"""Output as execd tells it, one text a line. Facts: `readFromPos` in pkg/runtime at 3bb6fad."""

from __future__ import annotations

from collections.abc import Iterator


class Lines:
    """Splits one stream: `\\n` and `\\r` end a line, `\\r\\n` once; an empty line is `"\\n"`."""

    def __init__(self) -> None:
        self._open = bytearray()
        self._cr = False

    def feed(self, data: bytes) -> Iterator[str]:
        """Yield the lines that these bytes end."""
        for byte in data:
            if byte not in b"\r\n":
                self._cr = False
                self._open.append(byte)
                continue
            if self._open:
                yield from self.flush()
            elif not (byte == 0x0A and self._cr):
                yield "\n"
            self._cr = byte == 0x0D

    def flush(self) -> Iterator[str]:
        """Yield what no line end followed."""
        if self._open:
            yield self._open.decode("utf-8", "replace")
            self._open.clear()
