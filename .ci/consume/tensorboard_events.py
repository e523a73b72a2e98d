"""Reads exported event files with TensorBoard's own EventAccumulator: tensorboard_events.py RUN-FOLDER TRACE.jsonl..."""
import json
import math
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

folder, *traces = sys.argv[1:]
events = EventAccumulator(folder, size_guidance={"scalars": 0, "tensors": 0})
events.Reload()
found = {}
for tag in events.Tags()["scalars"]:
    found[tag] = {event.step: event.value for event in events.Scalars(tag)}
expected = 0
for name in traces:
    lines = [json.loads(line) for line in open(name)]
    step = lines[0]["capture_step"]
    measured = next(line["id"] for line in lines if line.get("measured"))
    last = {}
    for line in lines:
        if line["kind"] == "tensor_stats" and line["shape"] == []:
            last[line["label"]] = line["mean"]
        elif line["kind"] == "tensor_stats":
            for key in ("rms", "mean", "abs_max", "non_finite"):
                last[f"{line['label']}/{key}"] = line[key]
        elif line["kind"] == "gradient" and "norm" in line:
            last[f"gradients/{line['root']}/{line['key']}"] = line["norm"]
        elif line["kind"] == "span_end" and line["id"] == measured:
            last["time/step"] = line["duration_ns"] / 1e9
    overflown = any(line.get("state") == "non_finite" for line in lines)
    last["gradient_norm/loss"] = math.nan if overflown else 5.0
    # The outermost spans of a part, once where they run at once, less the profiler's own time.
    last["time/forward"] = (30_000 - 1_000) / 1e9
    last["time/backward"] = 15_000 / 1e9
    for tag, value in last.items():
        got = found[tag][step]
        same = math.isnan(got) if math.isnan(value) else abs(got - value) <= 1e-6 * max(abs(value), 1e-30)
        assert same, (tag, step, got, value)
        expected += 1
count = sum(len(values) for values in found.values())
assert count == expected, (count, expected)
print(f"tensorboard: {count} values as in the traces")
