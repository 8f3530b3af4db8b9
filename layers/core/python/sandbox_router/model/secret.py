"""Values that must never reach a log, error, event, queue or store in clear."""

from __future__ import annotations

from typing import NoReturn


class Secret:
    """A string that prints as `***` and must be asked for on purpose."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        """Wrap `value`."""
        self._value = value

    def reveal(self) -> str:
        """The value itself, for the one outbound call that needs it."""
        return self._value

    def __repr__(self) -> str:
        """Never the value."""
        return "***"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        """Equal when the values are: for tests and codecs, not for authentication."""
        return isinstance(other, Secret) and other._value == self._value

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> NoReturn:
        """Pickling would put the value into clear."""
        raise TypeError("a Secret cannot be pickled")
