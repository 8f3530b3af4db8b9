"""Calls to a live sandbox: they go to the recorded pool only, and change no record."""

from __future__ import annotations

from collections.abc import Iterator

from ..model.failure import NotRunning, NotRunningYet, Unsupported
from ..model.sandbox import Sandbox, State
from ..ports import (
    Command,
    Content,
    Endpoint,
    Entry,
    Exit,
    HoldsFiles,
    OpensPorts,
    Output,
    Pools,
    Provider,
    Ref,
    RunsCommands,
    Vault,
)


class Session:
    """The abilities of a running instance. Raises NotRunning, Unsupported and ProviderFailure."""

    def __init__(self, pools: Pools, vault: Vault) -> None:
        self._pools, self._vault = pools, vault

    def run(self, box: Sandbox, command: Command) -> Iterator[Output | Exit]:
        """The command's output as it comes, then its end; sent at most once."""
        ref, provider = self._live(box)
        if not isinstance(provider, RunsCommands):
            raise Unsupported("this provider runs no commands")
        return provider.run(ref, command)

    def read_file(self, box: Sandbox, path: str, limit: int) -> bytes:
        """The content, at most `limit` bytes."""
        ref, files = self.files(box)
        with files.read_file(ref, path, limit) as pieces:
            return b"".join(pieces)

    def write_file(self, box: Sandbox, path: str, data: bytes) -> None:
        """Create or replace."""
        ref, files = self.files(box)
        files.write_file(ref, path, Content.of(data))

    def remove_file(self, box: Sandbox, path: str) -> None:
        """Remove a file, or a directory with its content."""
        ref, files = self.files(box)
        files.remove_file(ref, path)

    def list_directory(self, box: Sandbox, path: str) -> tuple[Entry, ...]:
        """Direct children."""
        ref, files = self.files(box)
        return files.list_directory(ref, path)

    def open_port(self, box: Sandbox, port: int) -> Endpoint:
        """A private preview endpoint."""
        ref, provider = self._live(box)
        if not isinstance(provider, OpensPorts):
            raise Unsupported("this provider opens no ports")
        return provider.open_port(ref, port)

    def close_port(self, box: Sandbox, port: int) -> None:
        """End the exposure, where there is one to end."""
        ref, provider = self._live(box)
        if not isinstance(provider, OpensPorts):
            raise Unsupported("this provider opens no ports")
        provider.close_port(ref, port)

    def files(self, box: Sandbox) -> tuple[Ref, HoldsFiles]:
        """The instance, and its provider as one that holds files."""
        ref, provider = self._live(box)
        if not isinstance(provider, HoldsFiles):
            raise Unsupported("this provider has no file API")
        return ref, provider

    def _live(self, box: Sandbox) -> tuple[Ref, Provider]:
        if box.state in (State.STARTING, State.RESUMING):
            raise NotRunningYet(f"the sandbox is {box.state}", retry_after=1)
        serving = box.server
        if box.state is not State.RUNNING or serving is None:
            raise NotRunning(f"the sandbox is {box.state}")
        if box.wish_destroy is not None:
            raise NotRunning("the sandbox is destroying")
        access = {} if serving.access is None else self._vault.unseal(box.id, serving.access)
        ref = Ref(serving.instance_id or "", access)
        return ref, self._pools.provider(serving.pool_id)
