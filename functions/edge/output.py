"""A command's output, kept within bounds: what is over is counted, and drained to the end."""

from __future__ import annotations

import base64
import codecs
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sandbox_router.model.failure import Unknown
from sandbox_router.ports import Exit, Output

from .json import render

ANSWER_BYTES = 4 * 1024 * 1024
_STREAMS = ("stdout", "stderr")


@dataclass(frozen=True)
class Ended:
    """How a command ended, with what was kept of its output and how much there was."""

    exit: Exit
    kept: Mapping[str, bytes]
    written: Mapping[str, int]

    def rendered(self, facts: Mapping[str, Any]) -> str:
        """The answer's text; escapes and base64 can make it longer than the output, so less of
        the output is kept until it fits.
        """
        found, limit = self, max(len(data) for data in self.kept.values())
        while len((text := render(found._view(facts))).encode()) > ANSWER_BYTES:
            limit = limit * 3 // 4
            kept = {name: data[:limit] for name, data in self.kept.items()}
            found = replace(self, kept=kept)
        return text

    def _view(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        kept = {name: self._whole(name) for name in _STREAMS}
        view: dict[str, Any] = {"exec_id": facts["exec_id"], "exit_code": self.exit.exit_code}
        for name in _STREAMS:
            view[name] = kept[name].decode("utf-8", "replace")
            if view[name].encode() != kept[name]:
                view[f"{name}_b64"] = base64.b64encode(kept[name]).decode()
        if self.exit.signal is not None:
            view["signal"] = self.exit.signal
        cut = {f"{name}_bytes": self.written[name] - len(kept[name]) for name in _STREAMS}
        return {**view, "timed_out": self.exit.timed_out, "truncated": cut, **facts}

    def _whole(self, name: str) -> bytes:
        """What is kept, without a character cut in two by the bound."""
        data = self.kept[name]
        if len(data) == self.written[name]:
            return data
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            decoder.decode(data)
        except UnicodeDecodeError:
            return data
        return data[: len(data) - len(decoder.getstate()[0])]


def ended(events: Iterator[Output | Exit], limit: int) -> Ended:
    """Take a command's events to its end; raises Unknown when there is none."""
    kept = {name: bytearray() for name in _STREAMS}
    written = dict.fromkeys(_STREAMS, 0)
    for event in events:
        if isinstance(event, Exit):
            return Ended(event, {name: bytes(data) for name, data in kept.items()}, written)
        written[event.stream] += len(event.data)
        room = limit - len(kept[event.stream])
        if room > 0:
            kept[event.stream] += event.data[:room]
    raise Unknown


def wants_events(accept: str | None) -> bool:
    """Does the client take server-sent events and nothing else?"""
    kinds = {part.partition(";")[0].strip().lower() for part in (accept or "").split(",")} - {""}
    return kinds == {"text/event-stream"}
