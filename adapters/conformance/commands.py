"""Cases: commands inside an instance."""

from __future__ import annotations

import time

from sandbox_router.model.failure import Gone, PoolUnsupported, Refused, Unknown
from sandbox_router.model.secret import Secret
from sandbox_router.ports import Command, Exit, Output, Ref

from .case import Bench, Missing, case, check, letters, refused, until

BYTES = bytes(range(256))


@case("R-EXEC-01", "exec")
def exit_codes(bench: Bench) -> None:
    """Exit codes arrive as they are."""
    for code in (0, 1, 3, 127, 255):
        ran = bench.shell(bench.shared(), f"exit {code}")
        check(ran.exit == Exit(code), f"exit {code} became {ran.exit}")


@case("R-EXEC-02", "exec")
def output(bench: Bench) -> None:
    """Output arrives byte for byte, stderr apart from stdout where that is declared."""
    code = (
        "import sys; b = bytes(range(256));"
        "sys.stdout.buffer.write(b); sys.stderr.buffer.write(b[::-1])"
    )
    ran = bench.run(bench.shared(), Command(argv=("python3", "-c", code)))
    if _separate(bench):
        check(ran.stdout == BYTES, "stdout differs")
        check(ran.stderr == BYTES[::-1], "stderr differs")
    else:
        check(ran.stdout in (BYTES + BYTES[::-1], BYTES[::-1] + BYTES), "the output differs")


@case("R-EXEC-03", "exec")
def much_output(bench: Bench) -> None:
    """Megabytes of output arrive whole."""
    ran = bench.shell(bench.shared(), "head -c 3000000 /dev/zero; echo end >&2")
    check(ran.stdout[:3_000_000] == bytes(3_000_000), f"{len(ran.stdout)} bytes of 3000000")
    end = ran.stderr if _separate(bench) else ran.stdout[3_000_000:]
    check(end == b"end\n", "the end differs")


@case("R-EXEC-04", "exec")
def words(bench: Bench) -> None:
    """Words of argv are not read by a shell."""
    word = "$HOME `id` ; \"'\\ * ü\n"
    ran = bench.run(bench.shared(), Command(argv=("printf", "%s|", word, "")))
    check(ran.stdout == f"{word}||".encode(), "the words differ")


@case("R-EXEC-05", "exec")
def shell(bench: Bench) -> None:
    """Shell text is read by a shell."""
    ran = bench.shell(bench.shared(), "for i in 1 2; do echo $i; done | tac; echo ü")
    check(ran.stdout == "2\n1\nü\n".encode(), "the output differs")


@case("R-EXEC-06", "exec")
def surroundings(bench: Bench) -> None:
    """Variables and the working directory of one command."""
    value = "a=b\n'\"$x ü"
    ran = bench.shell(
        bench.shared(), 'printf "%s|%s" "$PWD" "$V"', cwd="/usr", env={"V": Secret(value)}
    )
    check(ran.stdout == f"/usr|{value}".encode(), "they differ")
    ran = bench.shell(bench.shared(), 'printf "%s" "$V"')
    check(ran.stdout == b"", "a variable outlived its command")


@case("R-EXEC-07", "exec")
def standard_input(bench: Bench) -> None:
    """Input arrives byte for byte and ends; where it is not declared it is refused."""
    if not bench.profile.detail("exec", "stdin"):
        mute = Command(argv=("cat",), stdin=b"line")
        refused(PoolUnsupported, lambda: bench.run(bench.shared(), mute))
        return
    for data in (b"", b"line", BYTES * 2000):
        ran = bench.run(bench.shared(), Command(argv=("cat",), stdin=data, timeout_seconds=30))
        check(ran.exit == Exit(0), f"cat ended with {ran.exit}")
        check(ran.stdout == data, f"{len(ran.stdout)} of {len(data)} bytes came back")


@case("R-EXEC-08", "exec")
def unread_input(bench: Bench) -> None:
    """A command that does not read its input still ends."""
    if not bench.profile.detail("exec", "stdin"):
        raise Missing("input of commands")
    ran = bench.shell(bench.shared(), "exit 7", stdin=BYTES * 2000)
    check(ran.exit == Exit(7), f"it ended with {ran.exit}")


@case("R-EXEC-09", "exec")
def no_input(bench: Bench) -> None:
    """Without input there is none."""
    ran = bench.shell(bench.shared(), "cat; echo end", timeout_seconds=10)
    check(ran.stdout == b"end\n" and ran.exit == Exit(0), f"cat waited: {ran.exit}")


@case("R-EXEC-10", "exec")
def times_out(bench: Bench) -> None:
    """A timeout ends the command within a second more and says so."""
    ref, mark = bench.shared(), letters(12)
    started = time.monotonic()
    ran = bench.shell(ref, f"echo before; exec sleep 600.{mark_number(mark)}", timeout_seconds=1)
    took = time.monotonic() - started
    check(ran.exit == Exit(None, timed_out=True), f"it ended with {ran.exit}")
    check(ran.stdout == b"before\n", "its output is lost")
    check(took < 2.0, f"it took {took:.1f} s")
    until(lambda: not _runs(bench, ref, mark_number(mark)), 3, "the process lives on")


@case("R-EXEC-11", "exec")
def signals(bench: Bench) -> None:
    """The signal that ended a command is named, not an invented exit code."""
    ran = bench.shell(bench.shared(), "kill -KILL $$")
    check(ran.exit in (Exit(None, signal="SIGKILL"), Exit(137)), f"it ended with {ran.exit}")


@case("R-EXEC-12", "exec")
def streams(bench: Bench) -> None:
    """Output arrives while the command runs."""
    if not bench.profile.detail("exec", "stream"):
        return
    started = time.monotonic()
    for item in bench.commands.run(
        bench.shared(), Command(shell="echo first; sleep 1.5; echo last")
    ):
        check(isinstance(item, Output) and item.data.startswith(b"first"), "no output")
        break
    check(time.monotonic() - started < 1.2, "it arrived at the end")


@case("R-EXEC-13", "exec")
def cancels(bench: Bench) -> None:
    """Leaving a command before its end ends it."""
    if not bench.profile.detail("exec", "cancel"):
        return
    ref, number = bench.shared(), mark_number(letters(12))
    running = bench.commands.run(ref, Command(shell=f"echo here; exec sleep 600.{number}"))
    next(iter(running))
    running.close()  # type: ignore[attr-defined]
    until(lambda: not _runs(bench, ref, number), 3, "the process lives on")


@case("R-EXEC-14", "exec")
def cannot_start(bench: Bench) -> None:
    """What cannot be started is refused, or ends as a shell would say it."""
    ref = bench.shared()
    program = Command(argv=(f"/nowhere/{letters(8)}",))
    try:
        ran = bench.run(ref, program)
        check(ran.exit.exit_code in (126, 127), f"it ended with {ran.exit}")
    except Refused:
        pass
    folder = Command(argv=("true",), cwd=f"/nowhere/{letters(8)}")
    refused(Refused, lambda: bench.run(ref, folder))


@case("R-EXEC-15", "exec")
def at_most_once(bench: Bench) -> None:
    """A command whose answer is lost is unknown and ran at most once."""
    ref, path = bench.shared(), f"/tmp/{letters(12)}"
    bench.broken("exec", "lost_answer")
    refused(Unknown, lambda: bench.shell(ref, f"echo once >> {path}"))
    bench.broken("exec", "cut")
    refused(Unknown, lambda: bench.shell(ref, f"echo never >> {path}"))
    ran = bench.shell(ref, f"sleep 0.2; cat {path}")
    check(ran.stdout in (b"", b"once\n"), f"it ran more than once: {ran.stdout!r}")


@case("R-EXEC-16", "exec")
def gone(bench: Bench) -> None:
    """No command runs in what is gone."""
    made = bench.create()
    bench.provider.destroy(made.id)
    refused(Gone, lambda: bench.shell(Ref(made.id, made.access), "true"))


@case("R-EXEC-17", "exec")
def side_by_side(bench: Bench) -> None:
    """Commands run side by side."""
    provider, ref = bench.commands, bench.shared()
    running = [provider.run(ref, Command(shell=f"echo {n}; sleep 1; echo {n}")) for n in range(3)]
    started = time.monotonic()
    firsts = [next(iter(one)) for one in running]
    check(time.monotonic() - started < 0.9, "they wait for each other")
    rests = [list(one) for one in running]
    check(all(isinstance(first, Output) for first in firsts), "no output")
    check(all(rest[-1] == Exit(0) for rest in rests), "one did not end well")


@case("R-EXEC-18", "exec")
def apart(bench: Bench) -> None:
    """Another instance's way in does not open this one."""
    ref, other = bench.shared(), bench.create()
    if dict(ref.access) == dict(other.access):
        return  # nothing but the account's key opens either
    refused(Refused, lambda: bench.shell(Ref(ref.instance_id, other.access), "true"))
    refused(Refused, lambda: bench.shell(Ref(ref.instance_id, {}), "true"))


def _separate(bench: Bench) -> bool:
    return bool(bench.profile.detail("exec", "stderr") == "separate")


def mark_number(mark: str) -> int:
    """Digits that name one `sleep` among many."""
    return int.from_bytes(mark.encode(), "big") % 10**9


def _runs(bench: Bench, ref: Ref, number: int) -> bool:
    # The bracket keeps grep from finding itself.
    text = f"grep -l -a -x -z '[6]00[.]{number}' /proc/[0-9]*/cmdline 2>/dev/null"
    return bench.shell(ref, text).stdout != b""
