"""The named ways in which a callable can break the contract, and a time limit that survives a call that never returns."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

# kind -> what it means; each is a verdict of its own, and none of them is a TV.
KINDS = {
    "raises": "a call raised",
    "time-out": "a call did not return",
    "wrong shape": "tokens are not a vector of whole numbers, or a batch lost its rows",
    "NaN": "a call returned NaN",
    "id outside the vocabulary": "a token is negative or at least V",
    "too many tokens": "more than K + 1 tokens were committed",
    "drafts rewritten": "tokens before the last one are not the drafts",
    "acceptance miscounted": "`accepted` is not the number of drafts committed",
    "inputs mutated": "a call changed its arguments",
    "not reproducible": "the same seed and inputs gave different answers",
}


class ContractBroken(Exception):
    """The callable broke the contract in the way `kind` (a key of KINDS); `detail` is the evidence."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind, self.detail = kind, detail


def guarded(work: Callable[[Callable[[], None]], T], limit: float, first: float | None = None) -> T:
    """Run `work(beat)` in a thread of its own; it calls `beat()` before each call of the stranger's code.

    Raises ContractBroken("time-out") when `limit` seconds (`first` for the first call, which may have to import a large
    package) pass without a beat or an end: the thread is then left behind (a daemon: it cannot keep the process alive).
    Whatever `work` raises is raised here.
    """
    outcome: dict[str, Any] = {}
    last, beats = [time.monotonic()], [0]
    done = threading.Event()

    def beat() -> None:
        last[0], beats[0] = time.monotonic(), beats[0] + 1

    def run() -> None:
        try:
            outcome["value"] = work(beat)
        except BaseException as error:  # sys.exit() in a callable included
            outcome["error"] = error
        finally:
            done.set()

    threading.Thread(target=run, daemon=True, name="spectheory-black-box").start()
    while not done.wait(max(0.01, min(0.1, limit / 4))):
        allowed = first if first is not None and beats[0] <= 1 else limit
        if time.monotonic() - last[0] > allowed:
            raise ContractBroken("time-out", f"no answer within {allowed:g} s")
    if "error" in outcome:
        raise outcome["error"]
    value: T = outcome["value"]
    return value
