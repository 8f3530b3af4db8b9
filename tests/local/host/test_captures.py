"""The engine captures disks whole or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from infra.local.host.captures import Capture, CaptureError, CaptureState
from infra.local.host.engine import Engine, StateError
from infra.local.host.instance import Gone, Instance, Request, Template
from infra.local.host.isolation import PROCESS

Story = Callable[[Engine, Instance], Awaitable[None]]


def told(folder: Path, story: Story) -> None:
    """Tell a story of one instance on an engine without walls."""

    async def whole() -> None:
        engine = Engine(PROCESS, folder, {"base": Template(1, 512, 1024)})
        engine.prepare()
        await story(engine, await engine.create(Request("alpha", "e2b", "base", 60)))
        await engine.close()

    asyncio.run(whole())


def test_a_disk_that_goes_while_it_is_copied_makes_no_capture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(engine: Engine, instance: Instance) -> None:
        loop, fill = asyncio.get_running_loop(), engine.captures.fill

        def ends_meanwhile(capture: Capture, directory: Path) -> None:
            ending = engine.destroy(instance, Gone.DELETED)
            asyncio.run_coroutine_threadsafe(ending, loop).result(10)
            (directory / "home").mkdir(parents=True)  # what is left to copy
            fill(capture, directory)

        monkeypatch.setattr(engine.captures, "fill", ends_meanwhile)
        capture = engine.captures.begin(instance, None)
        with pytest.raises(StateError):
            await engine.capture(instance, capture)
        assert capture.state is CaptureState.FAILED
        assert list((tmp_path / "captures").iterdir()) == []

    told(tmp_path, story)


def test_a_copy_that_fails_makes_no_capture_and_harms_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(engine: Engine, instance: Instance) -> None:
        capture = engine.captures.begin(instance, None)
        with monkeypatch.context() as broken:
            broken.setattr("infra.local.host.captures._DISK", ("no-such-part",))
            with pytest.raises(CaptureError):
                await engine.capture(instance, capture)
        assert instance.alive
        again = engine.captures.begin(instance, None)
        await engine.capture(instance, again)
        assert again.state is CaptureState.READY

    told(tmp_path, story)


def test_what_comes_while_a_disk_is_copied_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(engine: Engine, instance: Instance) -> None:
        fill, order = engine.captures.fill, []

        def noted(capture: Capture, directory: Path) -> None:
            fill(capture, directory)
            order.append("captured")

        async def pause() -> None:
            await asyncio.sleep(0)
            await engine.pause(instance)
            order.append("paused")

        monkeypatch.setattr(engine.captures, "fill", noted)
        capture = engine.captures.begin(instance, None)
        await asyncio.gather(engine.capture(instance, capture), pause())
        assert order == ["captured", "paused"]

    told(tmp_path, story)
