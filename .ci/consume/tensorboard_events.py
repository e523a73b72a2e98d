"""Reads exported event files with TensorBoard's own EventAccumulator: tensorboard_events.py RUN-FOLDER TRACE.jsonl..."""
import json
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
        elif line["kind"] == "gradient":
            last[f"gradients/{line['root']}/{line['key']}"] = line["norm"]
        elif line["kind"] == "span_end" and line["id"] == measured:
            last["time/step"] = line["duration_ns"] / 1e9
    last["gradients/loss/norm"] = 5.0
    for tag, value in last.items():
        got = found[tag][step]
        assert abs(got - value) <= 1e-6 * max(abs(value), 1e-30), (tag, step, got, value)
        expected += 1
count = sum(len(values) for values in found.values())
assert count == expected, (count, expected)
print(f"tensorboard: {count} values as in the traces")
