"""One logger: JSON lines with ids and our own words, never what a client or a provider wrote."""

from __future__ import annotations

from functools import cache

from aws_lambda_powertools import Logger

from .settings import BadSetting


@cache
def log() -> Logger:
    """The process's logger, made at the first line."""
    return Logger(service="sandbox-router", utc=True)


def unexpected(error: BaseException, **ids: object) -> None:
    """A fault of ours: its class, and the line it came from, since its text may hold anything."""
    place, step = "", error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        place = f"{code.co_filename.rpartition('/')[2]}:{step.tb_lineno}"
        step = step.tb_next
    if isinstance(error, BadSetting):
        ids["detail"] = str(error)  # ours, for the operator, and never with a secret
    log().error("unexpected error", extra={"error": type(error).__name__, "at": place, **ids})
