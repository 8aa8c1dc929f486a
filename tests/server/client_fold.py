"""What a client makes of frames: the fold that docs/wire.md describes, over JSON alone."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

Json = dict[str, Any]
REFUSED = {"routing", "validation"}
"""The codes of dead letters that were never sent."""
WAITS = {"ask": ("agent", "to"), "complete": ("model", "model"), "approve": ("person", "approval")}
"""What a step of each kind waits for, and the field that names it; an effect's is its key."""
SHOWN_HANDLINGS = 5
QUESTIONS = ("approvals", "dead_letters", "indeterminate")
UNSAID: Mapping[str, tuple[str, ...]] = {
    "organism": ("uptime_seconds", "position"),
    "agents": ("last_activity",),
    "threads": ("position", "last_activity"),
    "approvals": ("form_schema",),
    "dead_letters": ("payload",),
    "indeterminate": (),
}
"""What no frame says: what any event moves, one without a frame too, and what is read where it is needed."""


class AgentFold:
    """A listener, and which of its messages wait for a start or run.

    ``steps`` has by message what it waits for; of one that waits for a start, what it will wait for again. A row says
    how many messages wait for a start, not which: these are ``unknown``.
    """

    def __init__(self, row: Json) -> None:
        self.row = row
        self.unknown: int = row.get("queue_depth", 0)
        self.queued: dict[str, tuple[str | None, str]] = {}
        self.running: dict[str, Json] = {each["message_id"]: each for each in row.get("handlings", ())}
        self.steps = {
            message: {each["waits_for"]["step"]: each["waits_for"]}
            for message, each in self.running.items()
            if each["waits_for"]
        }
        self.failed = False
        self.gone = False

    @property
    def is_over(self) -> bool:
        return self.gone and not self.queued and not self.running and not self.unknown

    def begin(self, frame: Json) -> None:
        message = frame["message_id"]
        payload_type = self._leave(message)
        self.running[message] = {
            "message_id": message,
            "thread_id": frame["thread_id"],
            "agent": frame["agent"],
            "payload_type": payload_type,
            "attempt": frame["attempt"],
            "started_at": frame["timestamp"],
        }

    def end(self, message: str) -> None:
        self._leave(message)
        self.steps.pop(message, None)

    def _leave(self, message: str) -> str | None:
        """It runs no more, or waits for a start no more; gives the type of its payload, if that is known."""
        if (handling := self.running.pop(message, None)) is not None:
            payload_type: str | None = handling["payload_type"]
            return payload_type
        if message not in self.queued:
            self.unknown -= 1
            return None
        return self.queued.pop(message)[0]

    def retry(self, message: str, at: str) -> None:
        """It waits for its next attempt, which asks again."""
        payload_type = self.running[message]["payload_type"]
        self.end(message)
        self.queued[message] = payload_type, at

    def stop(self, at: str) -> None:
        """A new life: what ran waits for a start again."""
        for message, handling in self.running.items():
            self.queued[message] = handling["payload_type"], at
        self.running = {}

    def wait(self, frame: Json, kind: str, name: str | None, effect: str | None = None) -> None:
        found = {"kind": kind, "name": name, "since": frame["timestamp"], "step": frame["step"], "effect": effect}
        self.steps.setdefault(frame["message_id"], {})[frame["step"]] = found

    def wait_no_more(self, frame: Json) -> None:
        steps = self.steps.get(frame["message_id"], {})
        steps.pop(frame["step"], None)
        if not steps:
            self.steps.pop(frame["message_id"], None)

    def complete(self) -> None:
        """Set what follows from its messages."""
        waiting = [m for m in self.running if any(w["kind"] != "effect" for w in self.steps.get(m, {}).values())]
        state = "paused" if self.row["paused"] else "error" if self.failed else "idle"
        if self.running:
            state = "processing" if len(self.running) > len(waiting) else "waiting"
        self.row.update(
            state=state,
            current_thread=list(self.running.values())[-1]["thread_id"] if self.running else None,
            queue_depth=len(self.queued) + self.unknown,
            oldest_waiting_at=next(iter(self.queued.values()))[1] if self.queued else None,
            open_handlings=len(self.running),
            handlings=[
                {**handling, "waits_for": foremost(self.steps.get(message, {}))}
                for message, handling in list(self.running.items())[:SHOWN_HANDLINGS]
            ],
        )


def foremost(steps: Mapping[int, Json]) -> Json | None:
    """A person's word before all else, then what it has waited for longest."""
    return min(steps.values(), key=lambda w: (w["kind"] != "person", w["since"], w["step"]), default=None)


class Client:
    """Everything, as the frames so far tell it: of ``connected``, or from the beginning of the log."""

    def __init__(self, connected: Json | None = None) -> None:
        start = connected or {}
        self.organism: Json = start.get("organism", {"active_threads": 0, "total_messages": 0, "paused_by": None})
        self.organism.setdefault("paused_at", None)
        self.agents = {row["name"]: AgentFold(row) for row in start.get("agents", ())}
        self.items = {name: {row["id"]: row for row in start.get(name, ())} for name in ("threads", *QUESTIONS)}

    def take(self, frame: Json) -> None:
        """Fold one frame with a position in."""
        take = getattr(self, f"take_{frame['event']}", None)
        if take is not None:
            take(frame)

    def take_agent_state(self, frame: Json) -> None:
        """It has no position: the latest wins."""
        self.agents[frame["agent"]].row.update({key: frame[key] for key in frame if key not in {"event", "agent"}})

    def take_organism_state(self, frame: Json) -> None:
        started = frame.get("started")
        if started is not None:
            self.organism |= {"name": started["name"], "version": started["version"], "status": frame["status"]}
            for agent in self.agents.values():
                agent.stop(frame["timestamp"])
            self._declare(started["agents"])
        elif frame["status"] != "stopping":
            is_paused = frame["status"] == "paused"
            by, at = (frame["by"], frame["timestamp"]) if is_paused else (None, None)
            self.organism |= {"status": frame["status"], "paused_by": by, "paused_at": at}

    def take_reload(self, frame: Json) -> None:
        self._declare(frame["agents"])

    def _declare(self, agents: list[Json]) -> None:
        self.organism["agent_count"] = len(agents)
        names = {declared["name"] for declared in agents}
        for name, agent in list(self.agents.items()):
            agent.gone = name not in names
            self._drop_if_over(name)
        for declared in agents:
            name = declared["name"]
            fresh = {"paused": False, "paused_by": None, "paused_at": None, "message_count": 0}
            self.agents.setdefault(name, AgentFold(fresh)).row.update(declared)

    def _drop_if_over(self, name: str) -> None:
        if self.agents[name].is_over:
            del self.agents[name]

    def take_agent_updated(self, frame: Json) -> None:
        by, at = (frame["by"], frame["timestamp"]) if frame["paused"] else (None, None)
        if frame["agent"] in self.agents:
            self.agents[frame["agent"]].row.update(paused=frame["paused"], paused_by=by, paused_at=at)
            self._drop_if_over(frame["agent"])

    def take_thread_created(self, frame: Json) -> None:
        self.organism["active_threads"] += 1
        thread = {**frame["thread"], "participants": []}
        self.items["threads"][thread["id"]] = thread

    def take_thread_updated(self, frame: Json) -> None:
        thread = self.items["threads"][frame["thread_id"]]
        was, now = thread["status"], frame["status"]
        self.organism["active_threads"] += (now == "active") - (was == "active")
        if now == "active":
            thread["ended_at"] = None
        elif was == "active":
            thread["ended_at"] = frame["last_activity"]
        if frame["paused"] != thread["paused"]:
            by, at = (frame["by"], frame["last_activity"]) if frame["paused"] else (None, None)
            thread.update(paused_by=by, paused_at=at)
        thread.update({name: frame[name] for name in ("status", "message_count", "paused", "error")})

    def take_message(self, frame: Json) -> None:
        message = frame["message"]
        self.organism["total_messages"] += 1
        thread = self.items["threads"][message["thread_id"]]
        thread["message_count"] += 1
        for name in (message["from"], message["to"]):
            if name not in thread["participants"]:
                thread["participants"].append(name)
        if (agent := self.agents.get(message["to"])) is not None:
            agent.row["message_count"] += 1
            if not frame.get("answers"):
                agent.queued[message["id"]] = message["payload_type"], message["timestamp"]

    def take_handling(self, frame: Json) -> None:
        agent = self.agents.get(frame["agent"])
        if agent is None:
            return
        if frame["phase"] == "started":
            agent.begin(frame)
            return
        agent.end(frame["message_id"])
        if frame["outcome"] in {"done", "killed", "appended"}:
            agent.failed = False
        self._drop_if_over(frame["agent"])

    def take_error(self, frame: Json) -> None:
        """A last attempt ends with the dead letter that follows."""
        if frame["outcome"] == "retried" and frame["agent"] in self.agents:
            self.agents[frame["agent"]].retry(frame["message_id"], frame["timestamp"])

    def take_dead_letter(self, frame: Json) -> None:
        letter, letters = frame["dead_letter"], self.items["dead_letters"]
        if frame["status"] != "open":
            letters.pop(letter["id"], None)
            return
        letters[letter["id"]] = letter
        agent = self.agents.get(letter["agent"])
        if agent is not None and letter["code"] not in REFUSED:
            agent.end(letter["id"])
            agent.failed = True
            self._drop_if_over(letter["agent"])

    def take_step(self, frame: Json) -> None:
        agent = self.agents.get(frame["agent"])
        if frame["phase"] == "ended":
            self.items["indeterminate"].pop(f"{frame['message_id']}:{frame['step']}", None)
            if agent is not None:
                agent.wait_no_more(frame)
        elif agent is not None:
            kind, named = WAITS.get(frame["kind"], ("effect", "key"))
            agent.wait(frame, kind, frame[named], frame.get("effect"))

    def take_indeterminate(self, frame: Json) -> None:
        question, agent = frame["indeterminate"], self.agents.get(frame["agent"])
        if question["status"] == "open":
            self.items["indeterminate"].setdefault(
                question["id"],
                {
                    **{name: frame[name] for name in ("thread_id", "message_id", "agent", "step", "key", "position")},
                    "id": question["id"],
                    "since": frame["timestamp"],
                    "started_at": question["started_at"],
                },
            )
            if agent is not None:
                agent.wait(frame, "person", question["id"], "unsafe")
            return
        self.items["indeterminate"].pop(question["id"], None)
        if agent is not None:
            agent.wait_no_more(frame)

    def take_approval(self, frame: Json) -> None:
        approval = frame["approval"]
        if approval["status"] == "pending":
            self.items["approvals"][approval["id"]] = approval
        else:
            self.items["approvals"].pop(approval["id"], None)

    def take_usage(self, frame: Json) -> None:
        thread = self.items["threads"].get(frame["thread_id"])
        if thread is not None:
            thread["tokens"] += frame["input_tokens"] + frame["output_tokens"]
            thread["cost_usd"] = str(Decimal(thread["cost_usd"]) + Decimal(frame["cost_usd"]))

    def complete(self) -> None:
        """Set what follows from all handlings; a client that hears ``agent_state`` is told it."""
        for agent in self.agents.values():
            agent.complete()

    def shown(self) -> Json:
        """All of it, as ``comparable`` leaves a snapshot."""
        waiting = {name: list(self.items[name].values()) for name in QUESTIONS}
        waiting["dead_letters"] = [row for row in waiting["dead_letters"] if not row.get("root")]
        for thread in self.items["threads"].values():
            thread["waiting_for_people"] = {
                name: sum(row["thread_id"] == thread["id"] for row in rows) for name, rows in waiting.items()
            }
        counts = {name: len(rows) for name, rows in waiting.items()}
        return comparable(
            {
                "organism": {**self.organism, "waiting_for_people": {**counts, "foreign_tools": 0}},
                "agents": [agent.row for agent in self.agents.values()],
                **{name: list(rows.values()) for name, rows in self.items.items()},
                "threads_total": len(self.items["threads"]),
            }
        )


def comparable(state: Json) -> Json:
    """The state by ids, without what no frame says."""
    shown: Json = {"organism": without(state["organism"], "organism"), "threads_total": state["threads_total"]}
    for name in ("agents", "threads", *QUESTIONS):
        shown[name] = {row.get("id", row.get("name")): without(row, name) for row in state[name]}
    for thread in shown["threads"].values():
        thread["cost_usd"] = Decimal(thread["cost_usd"])
    return shown


def without(row: Json, kind: str) -> Json:
    return {name: value for name, value in row.items() if name not in UNSAID[kind]}
