// Writes traces with everything in them, the same at each run: futures that take turns on a thread, workers, operations
// whose outputs others use, storages, samples of a device, numbers, parts of the step within and beside each other, a
// graph that is cut, gradients of which in step 3 one is not finite. `node trace.mjs FOLDER`
import fs from 'node:fs';
import path from 'node:path';

let state = 12345;
const random = (below) => { state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff; return (state >> 8) % below; };
for (const step of [2, 3, 10]) {
  const lines = [];
  let last = 1, tensors = 0;
  const end = 4_000_000;
  const start = (id, parent, name, at, more = {}) => lines.push({ kind: 'span_start', id: `s${id}`, ...(parent ? { parent_id: `s${parent}` } : {}), name, start_ns: at, span_kind: 'function', measured: false, ...more });
  const finish = (id, duration, more = {}) => lines.push({ kind: 'span_end', id: `s${id}`, duration_ns: duration, ...more });
  lines.push({ kind: 'meta', schema: 'candle-graph/trace/10', run_id: `run-1-${step}`, correlation_id: `step/update-${step}`, entrypoint: 'step', phase: 'train', timestamp: `2026-11-29T21:30:${10 + step}.000Z`, capture_step: step, warmup_steps: 1, device: 'cpu', measured_region_device_synchronized: false, timing_mode: 'host', capture_contract: { measurement_scope: 'profiled_work', operations: 'partial', activations: 'none', tensors: 'partial', gradients: 'partial', logical_memory: 'partial', physical_memory: 'partial', device_timing: 'none', required_semantic_labels: [] }, tags: {} });
  start(1, 0, 'step', 0);
  finish(1, end);
  start(++last, 1, 'step', 1_001, { measured: true });
  finish(last, end - 2_003);
  lines.push({ kind: 'device_memory', timestamp_ns: 1_500, device: 'cuda:0', used_bytes: 1_000_000_007 });
  const tree = (parent, from, to, depth, thread) => {
    for (let at = from + random(50); at < to - 60 && last < 3_000;) {
      const until = at + 20 + random(Math.max(20, (to - at) >> 1));
      if (until > to) break;
      const id = ++last, more = thread ? { thread, ...(random(2) ? {} : { thread_name: `worker ${thread}` }) } : {};
      start(id, parent, `layer ${random(40)}`, at, more);
      finish(id, until - at);
      if (depth < 8) tree(id, at, until, depth + 1, thread);
      if (random(2) && until - at > 30) operation(id, at + 1);
      at = until + random(90);
    }
  };
  const operation = (span, at) => {
    // Only in spans without children, which an operation could overlap.
    if (lines.some((line) => line.kind === 'span_start' && line.parent_id === `s${span}`)) return;
    const output = `t${++tensors}`;
    lines.push({ kind: 'op', span_id: `s${span}`, op_name: 'matmul', inputs: tensors > 1 ? [`t${tensors - 1}`] : [], output, shape: [2, 3], dtype: 'f32', device: 'cpu', duration_ns: 10, timestamp_ns: at, input_dense_bytes: 24 });
    lines.push({ kind: 'memory', timestamp_ns: at + 5, storage_id: `m${tensors}`, tensor_id: output, span_id: `s${span}`, device: 'cpu', bytes: 24 * tensors, action: 'alloc', shape: [2, 3], dtype: 'f32', category: 'activation' });
    if (tensors > 1) lines.push({ kind: 'edge', edge_kind: 'data', from_tensor: `t${tensors - 1}`, to_tensor: output });
  };
  tree(2, 1_100, 1_000_000, 0, 0);
  // Forty futures that overlap as they like.
  for (let future = 0; future < 40; future++) {
    const from = 1_000_100 + random(800_000), id = ++last;
    const until = from + 1_000 + random(900_000);
    start(id, 2, `future ${future}`, from);
    finish(id, until - from, { polls: 3, busy_ns: 500 });
    tree(id, from, from + 900, 6, 0);
  }
  for (const thread of [1, 2, 3]) tree(2, 2_800_000, 3_900_000, 2, thread);
  // The parts of the step: one within another below a span without a tag, and two at once on other threads.
  const part = (parent, name, from, to, more = {}, ends = {}) => { const id = ++last; start(id, parent, name, from, more); finish(id, to - from, ends); return id; };
  const outer = part(2, 'Model::forward', 3_910_000, 3_940_000, { step: 'forward' }, { overhead_ns: 1_000 });
  part(part(outer, 'block', 3_911_000, 3_930_000), 'attention', 3_912_000, 3_920_000, { step: 'forward' });
  for (const [thread, from] of [[1, 3_941_000], [2, 3_946_000]]) part(2, `backward ${thread}`, from, from + 10_000, { step: 'backward', thread });
  const norm = part(2, 'norm', 3_960_000, 3_970_000);
  lines.push({ kind: 'tensor', span_id: `s${norm}`, tensor_id: 'cut', label: 'normed', shape: [2, 3], dtype: 'f32', device: 'cpu', requires_grad: false, category: 'activation', autograd: 'cut', twin: 'a norm of basic operations' });
  const spark = part(2, 'spark', 3_980_000, 3_980_500);
  if (step === 3) lines.push({ kind: 'tensor_stats', span_id: `s${spark}`, label: 'spark', shape: [2], dtype: 'f32', elements: 2, non_finite: 1, rms: 1, abs_max: 1, mean: 0.5 });
  lines.push({ kind: 'tensor_stats', span_id: `s${norm}`, label: 'normed', shape: [2, 3], dtype: 'f32', elements: 6, non_finite: 0, rms: 1, abs_max: 2, mean: 0.5 });
  // Freed in the order of their making; the last few live on.
  for (let tensor = 1; tensor < tensors - 5; tensor += 2) lines.push({ kind: 'memory', timestamp_ns: 3_971_000 + tensor, storage_id: `m${tensor}`, tensor_id: `t${tensor}`, span_id: 's2', device: 'cpu', bytes: 24 * tensor, action: 'free', shape: [2, 3], dtype: 'f32', category: 'activation' });
  for (const [label, value] of [['loss', 2.5 / step], ['learning rate', 1e-3]]) lines.push({ kind: 'tensor_stats', span_id: 's2', label, shape: [], dtype: 'f64', elements: 1, non_finite: 0, rms: value, abs_max: value, mean: value });
  lines.push({ kind: 'tensor_stats', span_id: 's2', label: 'logits', shape: [2, 3], dtype: 'f32', elements: 6, non_finite: step === 3 ? 2 : 0, rms: step / 4, abs_max: step, mean: -step / 8 });
  lines.push({ kind: 'gradient', event_id: 'gradient-1', root: 'loss', key: 'norm', state: 'present', norm: 3 });
  if (step === 3) lines.push({ kind: 'gradient', event_id: 'gradient-3', root: 'loss', key: 'scale', state: 'non_finite' });
  lines.push({ kind: 'gradient', event_id: 'gradient-2', root: 'loss', key: 'bias', state: 'present', norm: 4 });
  lines.push({ kind: 'terminal', outcome: 'complete', timestamp_ns: end });
  fs.writeFileSync(path.join(process.argv[2], `step-step${step}.jsonl`), lines.map((line) => JSON.stringify(line)).join('\n') + '\n');
}
