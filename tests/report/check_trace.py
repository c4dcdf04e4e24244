"""check_trace.py FILE.json: Perfetto and chrome://tracing show every event of the trace.

The events are complete ones of the Trace Event Format. Perfetto counts whole nanoseconds, and drops an event that
begins within another of its thread and ends after it.
"""

import collections
import json
import sys

NUMBER = (int, float)
FIELDS = {"ph": str, "name": str, "cat": str, "pid": int, "tid": int, "ts": NUMBER, "dur": NUMBER, "args": dict}


def whats_wrong(event: dict) -> str | None:
    for field, kind in FIELDS.items():
        if not isinstance(event.get(field), kind):
            return f"'{field}' is {event.get(field)!r}"
    if event["ph"] != "X":
        return f"'ph' is {event['ph']!r}: not a complete event"
    if event["ts"] < 0 or event["dur"] < 0:
        return "a negative time"
    return None if event["name"] else "it has no name"


def overlap(events: list[dict]) -> dict | None:
    """An event of one thread that would be dropped."""
    ends = []
    for begin, minus_duration, event in sorted(
        ((round(1000 * e["ts"]), -round(1000 * e["dur"]), e) for e in events), key=lambda item: item[:2]
    ):
        end = begin - minus_duration
        while ends and ends[-1] <= begin:
            ends.pop()
        if ends and end > ends[-1]:
            return event
        ends.append(end)
    return None


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    threads = collections.defaultdict(list)
    for event in events:
        if why := whats_wrong(event):
            sys.exit(f"{sys.argv[1]}: {why} in {event}")
        threads[event["pid"], event["tid"]].append(event)
    for of_thread in threads.values():
        if event := overlap(of_thread):
            sys.exit(f"{sys.argv[1]}: it overlaps another of its thread: {event}")
    if not events:
        sys.exit(f"{sys.argv[1]}: no events")
    print(f"{len(events)} events of {len(threads)} threads")


if __name__ == "__main__":
    main()
