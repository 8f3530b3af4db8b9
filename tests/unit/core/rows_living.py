"""What a sandbox calls for once it runs, and on its way out."""

from __future__ import annotations

from dataclasses import replace

from sandbox_router.lifecycle.step import (
    Destroy,
    Doubt,
    Extend,
    Find,
    Forgo,
    Look,
    Moot,
    Pause,
    Resume,
    Shift,
)
from sandbox_router.model.sandbox import State
from tests.unit.core.build import attempt, box, refused, running, s, wish
from tests.unit.core.rows import ADOPTED, CREATED, EXPIRED, GONE, Row, going, settling

PAUSING, PAUSED, RESUMING = State.PAUSING, State.PAUSED, State.RESUMING
DESTROYING, RUNNING = State.DESTROYING, State.RUNNING
DESTROYED = Shift(to=State.DESTROYED)

LIVING = [
    Row("running → until it expires", running(), 0, 3600),
    Row("running, expired → destroying", running(), 3600, EXPIRED),
    Row("running, a millisecond before → nothing", running(), 3599.999, 3600),
    Row(
        "running, destroy wished → destroying", running(wish_destroy=wish("idle")), 0, going("idle")
    ),
    Row(
        "running, destroy and pause wished → destroying",
        running(wish_destroy=wish(), wish_power=wish("pause")),
        0,
        going(),
    ),
    Row(
        "running, destroy wished by a faster clock → at its time",
        running(wish_destroy=wish("client", s(2))),
        0,
        2,
    ),
    Row(
        "running, pause wished → pausing",
        running(wish_power=wish("pause")),
        0,
        Shift(to=PAUSING, reason="client"),
    ),
    Row("running, resume wished → nothing to do", running(wish_power=wish("resume")), 0, Moot()),
    Row(
        "running, pause answered → until it expires",
        running(wish_power=wish("pause"), answered_power="w-1"),
        0,
        3600,
    ),
    Row("running, extend wished → extends", running(wish_expiry=wish("extend")), 0, Extend(1)),
    Row(
        "running, extend asked and to be asked again → paced",
        running(wish_expiry=wish("extend"), step_at=s(2)),
        0,
        2,
    ),
    Row(
        "running, extend answered → until it expires",
        running(wish_expiry=wish("extend"), answered_expiry="w-1"),
        0,
        3600,
    ),
    Row(
        "running, extend wished but expired → destroying",
        running(wish_expiry=wish("extend", value=s(9999))),
        3600,
        EXPIRED,
    ),
    Row("running, look wished → looks", running(wish_look=wish("look")), 0, Look(1)),
    Row(
        "running, look answered → until it expires",
        running(wish_look=wish("look"), answered_look="w-1"),
        0,
        3600,
    ),
    Row(
        "running, another look wished → looks",
        running(wish_look=wish("look", id_="w-2"), answered_look="w-1"),
        0,
        Look(1),
    ),
    Row(
        "running, missing once → looks again after the list lag",
        running(missing_since=s(1)),
        5.9,
        6,
    ),
    Row("running, missing for the list lag → looks again", running(missing_since=s(1)), 6, Look(1)),
    Row(
        "running, gone for certain → lost",
        box(attempt(1, GONE), state=RUNNING),
        0,
        Shift(to=State.LOST, reason="instance_gone"),
    ),
    Row(
        "running, gone, and destroy wished → destroying",
        box(attempt(1, GONE), state=RUNNING, wish_destroy=wish()),
        0,
        going(),
    ),
    Row(
        "running with a debt → the debt is looked up",
        box(settling(), attempt(2, CREATED), state=RUNNING),
        5,
        Find(1),
    ),
    Row(
        "running with a debt that appeared → destroyed",
        box(attempt(1, ADOPTED), attempt(2, CREATED), state=RUNNING),
        0,
        Destroy(1),
    ),
    Row(
        "running with a closed debt → until it expires",
        box(attempt(1, GONE), attempt(2, CREATED), state=RUNNING),
        0,
        3600,
    ),
    Row("pausing → pauses", running(state=PAUSING), 0, Pause(1)),
    Row("pausing, to be asked again → paced", running(state=PAUSING, step_at=s(2)), 0, 2),
    Row(
        "pausing, destroy wished → destroying",
        running(state=PAUSING, wish_destroy=wish()),
        0,
        going(),
    ),
    Row("pausing, expired → destroying", running(state=PAUSING, step_at=s(3601)), 3600, EXPIRED),
    Row("paused → until it expires", running(state=PAUSED), 0, 3600),
    Row("paused, expired → destroying", running(state=PAUSED), 3600, EXPIRED),
    Row(
        "paused, resume wished → resuming",
        running(state=PAUSED, wish_power=wish("resume")),
        0,
        Shift(to=RESUMING, reason="client"),
    ),
    Row(
        "paused, pause wished → nothing to do",
        running(state=PAUSED, wish_power=wish("pause")),
        0,
        Moot(),
    ),
    Row(
        "paused, extend wished → extends",
        running(state=PAUSED, wish_expiry=wish("extend")),
        0,
        Extend(1),
    ),
    Row("paused, look wished → looks", running(state=PAUSED, wish_look=wish("look")), 0, Look(1)),
    Row(
        "paused, gone for certain → lost",
        box(attempt(1, GONE), state=PAUSED),
        0,
        Shift(to=State.LOST, reason="instance_gone"),
    ),
    Row("resuming → resumes", running(state=RESUMING), 0, Resume(1)),
    Row("resuming, to be asked again → paced", running(state=RESUMING, step_at=s(2)), 0, 2),
    Row(
        "resuming, destroy wished → destroying",
        running(state=RESUMING, wish_destroy=wish()),
        0,
        going(),
    ),
    Row("resuming, expired → destroying", running(state=RESUMING, step_at=s(3601)), 3600, EXPIRED),
    Row(
        "resuming, look wished → resumes first",
        running(state=RESUMING, wish_look=wish("look")),
        0,
        Resume(1),
    ),
]

ENDING = [
    Row("destroying, alive → destroys", running(state=DESTROYING), 0, Destroy(1)),
    Row(
        "destroying, refused a moment ago → paced",
        box(attempt(1, CREATED, look_at=s(4)), state=DESTROYING, serving=1),
        0,
        4,
    ),
    Row(
        "destroying, two alive → the first that is due",
        box(attempt(1, ADOPTED, look_at=s(4)), attempt(2, CREATED), state=DESTROYING),
        0,
        Destroy(2),
    ),
    Row(
        "destroying, gone → destroyed",
        box(attempt(1, GONE), state=DESTROYING, serving=1),
        0,
        DESTROYED,
    ),
    Row("destroying, refused → destroyed", box(refused(), state=DESTROYING), 0, DESTROYED),
    Row("destroying, nothing tried → destroyed", box(state=DESTROYING), 0, DESTROYED),
    Row(
        "destroying, its reason stays",
        box(state=DESTROYING, state_reason="expired"),
        0,
        Shift(to=State.DESTROYED, reason="expired"),
    ),
    Row("destroying, unknown → looked up", box(settling(), state=DESTROYING), 5, Find(1)),
    Row(
        "destroying, unknown → not destroyed while it settles",
        box(settling(), state=DESTROYING),
        4,
        5,
    ),
    Row(
        "destroying, unknown and settled → destroyed, the debt stays",
        box(settling(), state=DESTROYING),
        20,
        DESTROYED,
    ),
    Row(
        "destroying, two unknown → not destroyed before the later one is settled",
        box(
            settling(look_at=s(40)),
            settling(n=2, settle_until=s(35), look_at=s(40)),
            state=DESTROYING,
        ),
        20,
        35,
    ),
    Row(
        "destroying, intended under this claim → not asked",
        box(attempt(), state=DESTROYING),
        0,
        Forgo(1),
    ),
    Row(
        "destroying, intended under an earlier claim → in doubt",
        box(attempt(epoch=1), state=DESTROYING),
        0,
        Doubt(1),
    ),
    Row(
        "destroying, one alive and one gone → destroys",
        box(attempt(1, GONE), attempt(2, CREATED), state=DESTROYING),
        0,
        Destroy(2),
    ),
    Row(
        "destroying, one alive later, one unknown settled → not destroyed yet",
        box(
            attempt(1, ADOPTED, look_at=s(40)),
            replace(settling(), n=2, look_at=s(50)),
            state=DESTROYING,
        ),
        30,
        40,
    ),
    Row(
        "destroying, pause and extend wished → destroys",
        running(state=DESTROYING, wish_power=wish("pause"), wish_expiry=wish("extend")),
        0,
        Destroy(1),
    ),
    *[
        Row(
            f"{state}, settled → never again",
            box(attempt(1, GONE), state=state, wish_destroy=wish(), wish_look=wish("look")),
            9999,
            None,
        )
        for state in (State.DESTROYED, State.FAILED, State.LOST)
    ],
    *[
        Row(
            f"{state} with a debt → looked up until its window closes",
            box(settling(), state=state, serving=0),
            5,
            Find(1),
        )
        for state in (State.DESTROYED, State.FAILED, State.LOST)
    ],
    Row(
        "destroyed with a debt that appeared → destroyed too",
        box(attempt(1, ADOPTED), state=State.DESTROYED),
        0,
        Destroy(1),
    ),
    Row(
        "failed with an instance that never became ready → destroyed",
        box(attempt(1, CREATED, ready=False), state=State.FAILED),
        0,
        Destroy(1),
    ),
    Row(
        "failed with its serving instance → destroyed",
        box(attempt(1, CREATED), state=State.FAILED, serving=1),
        0,
        Destroy(1),
    ),
    Row(
        "failed, intended under this claim → not asked",
        box(attempt(), state=State.FAILED),
        0,
        Forgo(1),
    ),
    Row(
        "failed, intended under an earlier claim → in doubt",
        box(attempt(epoch=1), state=State.FAILED),
        0,
        Doubt(1),
    ),
    Row(
        "lost with a debt of its own → looked up",
        box(settling(), attempt(2, GONE), state=State.LOST),
        5,
        Find(1),
    ),
]
