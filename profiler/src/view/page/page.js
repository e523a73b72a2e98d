'use strict';
(() => {
const data = JSON.parse(document.getElementById('data').textContent);
const traces = data.traces;
const byId = (id) => document.getElementById(id);
const shown = new Set(traces.slice(0, 4).map((_, at) => at));

// Text ------------------------------------------------------------------------------------------
const count = (number) => number.toLocaleString('en-US');
function duration(ns) {
  if (ns < 1e3) return `${Math.round(ns)} ns`;
  for (const [unit, size] of [['µs', 1e3], ['ms', 1e6], ['s', 1e9]]) {
    const value = ns / size;
    if (value < 999.5 || unit === 's') return `${value.toPrecision(3)} ${unit}`;
  }
}
function figure(value) {
  if (value === null || value === undefined) return '-';
  if (typeof value !== 'number') return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return count(value);
  const size = Math.abs(value);
  return size >= 1e6 || size < 1e-4 ? value.toExponential(3) : value.toPrecision(4);
}
function element(tag, text, kind) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

// Head ------------------------------------------------------------------------------------------
byId('title').textContent = data.title;
byId('about').textContent = traces.map((trace) => trace.about).join(' · ');
for (const trace of traces) {
  if (!trace.summary.problems.length) continue;
  if (traces.length > 1) byId('problems').append(element('div', trace.title, 'dim'));
  const list = element('ul', undefined, 'problems');
  for (const problem of trace.summary.problems) list.append(element('li', problem));
  byId('problems').append(list);
}

// Timeline --------------------------------------------------------------------------------------
const ROW = 18, GAP = 8, LABEL = 16, RULER = 22;
for (const trace of traces) {
  const spans = trace.spans;
  spans.start = Float64Array.from(spans.start);
  spans.length = Float64Array.from(spans.length);
  trace.duration = 1;
  // Of each track, of each depth: its spans in the order of time.
  trace.rows = trace.tracks.map(() => []);
  for (let at = 0; at < spans.start.length; at++) {
    const rows = trace.rows[spans.track[at]];
    (rows[spans.depth[at]] ||= []).push(at);
    trace.duration = Math.max(trace.duration, spans.start[at] + spans.length[at]);
  }
  for (const rows of trace.rows) for (let depth = 0; depth < rows.length; depth++) {
    const row = rows[depth] = Uint32Array.from(rows[depth] || []);
    // The places in the row where something is not finite: they are looked for among spans that share a pixel.
    row.bad = Uint32Array.from(row.keys()).filter((place) => spans.bad[row[place]]);
  }
  trace.measured = spans.measured;
}
const hues = new Map();
function hue(name) {
  let known = hues.get(name);
  if (known === undefined) {
    let hash = 2166136261;
    for (let at = 0; at < name.length; at++) hash = Math.imul(hash ^ name.charCodeAt(at), 16777619);
    known = (hash >>> 0) % 360;
    hues.set(name, known);
  }
  return known;
}
const canvas = document.querySelector('#timeline canvas');
const context = canvas.getContext('2d');
const view = { from: 0, to: 1, top: 0 };
let matches = [], current = -1, matching = null, hot = null, waiting = false;
const dark = matchMedia('(prefers-color-scheme: dark)').matches;
const style = getComputedStyle(document.documentElement);
const colours = {};
const colour = (name) => colours[name] ||= style.getPropertyValue(name).trim();
// By name: its hue in wide and in narrow spans. A few hues are enough, and spans of one are drawn together.
const HUES = 36, HIT = '#ffb300';
const wide = [], narrow = [];
for (let at = 0; at < HUES; at++) {
  wide.push(`hsl(${at * 360 / HUES} 55% ${dark ? 34 : 76}%)`);
  narrow.push(`hsl(${at * 360 / HUES} 45% ${dark ? 45 : 68}%)`);
}
for (const trace of traces) trace.hues = Uint8Array.from(trace.names, (name) => hue(name) % HUES);
// Columns of narrow spans of the row that is drawn, by hue: from where, to where; and those with a mark.
const columns = Array.from({ length: HUES + 1 }, () => []), marked = [];

/** What stands where from top to bottom: headings and rows of spans. */
function layout() {
  const lines = [];
  let y = RULER;
  for (const at of [...shown].sort((a, b) => a - b)) {
    const trace = traces[at];
    if (traces.length > 1) { lines.push({ y, heading: trace.title }); y += LABEL + 4; }
    trace.tracks.forEach((track, place) => {
      if (trace.tracks.length > 1) { lines.push({ y, track: track.name }); y += LABEL; }
      for (const row of trace.rows[place]) { lines.push({ y, trace, at, row }); y += ROW; }
      y += GAP;
    });
  }
  return { lines, height: y };
}
let place = layout();

function bounds() {
  let whole = 1;
  for (const at of shown) whole = Math.max(whole, traces[at].duration);
  return whole;
}
/** The first span of a row that ends after a time. */
function firstAfter(spans, row, time) {
  let low = 0, high = row.length;
  while (low < high) {
    const middle = (low + high) >> 1, at = row[middle];
    if (spans.start[at] + spans.length[at] < time) low = middle + 1; else high = middle;
  }
  return low;
}
/** Whether something is not finite among the spans of a row from one place to before another. */
function anyBad(row, from, to) {
  let low = 0, high = row.bad.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row.bad[middle] < from) low = middle + 1; else high = middle;
  }
  return low < row.bad.length && row.bad[low] < to;
}
function draw() {
  waiting = false;
  const scale = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale); canvas.height = Math.round(height * scale);
  }
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.fillStyle = colour('--bg');
  context.fillRect(0, 0, width, height);
  view.top = Math.max(0, Math.min(view.top, place.height - height));
  const perPixel = (view.to - view.from) / width;
  context.font = '11px system-ui, sans-serif';
  context.textBaseline = 'middle';
  for (const line of place.lines) {
    const y = line.y - view.top;
    if (y < -ROW || y > height) continue;
    if (line.heading || line.track) {
      context.fillStyle = colour(line.heading ? '--fg' : '--dim');
      context.font = line.heading ? 'bold 12px system-ui, sans-serif' : '11px system-ui, sans-serif';
      context.fillText(line.heading || line.track, 4, y + LABEL / 2);
      context.font = '11px system-ui, sans-serif';
      continue;
    }
    drawRow(line, y, width, perPixel);
  }
  ruler(width, perPixel);
}
function drawRow(line, y, width, perPixel) {
  const { spans, names } = line.trace, row = line.row, hues = line.trace.hues;
  let next = firstAfter(spans, row, view.from), last = null;
  while (next < row.length) {
    const at = row[next], place = spans.name[at];
    if (spans.start[at] > view.to) break;
    const left = (spans.start[at] - view.from) / perPixel;
    const right = (spans.start[at] + spans.length[at] - view.from) / perPixel;
    const hit = matching !== null && matching.has(names[place]);
    if (right - left < 1) {
      // What is narrower than a pixel shares it: go on with the first span beyond.
      const pixel = Math.floor(left), list = columns[hit ? HUES : hues[place]];
      if (last === list && list[list.length - 1] === pixel) list[list.length - 1] = pixel + 1;
      else list.push(pixel, pixel + 1);
      last = list;
      const beyond = Math.max(next + 1, firstAfter(spans, row, view.from + (pixel + 1) * perPixel));
      if (anyBad(row, next, beyond)) marked.push(pixel);
      next = beyond;
      continue;
    }
    const clippedLeft = Math.max(left, -1), clippedRight = Math.min(right, width + 1);
    context.fillStyle = hit ? HIT : wide[hues[place]];
    context.fillRect(clippedLeft, y, Math.max(clippedRight - clippedLeft - 0.5, 0.5), ROW - 1);
    if (spans.bad[at]) { context.fillStyle = colour('--bad'); context.fillRect(clippedLeft, y, Math.min(3, clippedRight - clippedLeft), ROW - 1); }
    if (hot && hot.at === at && hot.trace === line.trace) {
      context.strokeStyle = colour('--fg');
      context.strokeRect(clippedLeft + 0.5, y + 0.5, clippedRight - clippedLeft - 1, ROW - 2);
    }
    const room = clippedRight - clippedLeft - 6;
    if (room > 18) {
      context.fillStyle = dark && !hit ? '#e8eaee' : '#14171b';
      let text = names[place];
      const fits = Math.floor(room / 5.6);
      if (text.length > fits) text = text.slice(0, Math.max(fits - 1, 1)) + '…';
      context.fillText(text, clippedLeft + 3, y + ROW / 2);
    }
    next++;
  }
  columns.forEach((list, at) => {
    if (!list.length) return;
    context.fillStyle = at === HUES ? HIT : narrow[at];
    for (let pair = 0; pair < list.length; pair += 2) context.fillRect(list[pair], y, list[pair + 1] - list[pair], ROW - 1);
    list.length = 0;
  });
  context.fillStyle = colour('--bad');
  for (const pixel of marked) context.fillRect(pixel, y, 1, ROW - 1);
  marked.length = 0;
}
/** A time with as many digits as its neighbours need to differ from it. */
function tick(ns, step) {
  for (const [unit, size] of [['s', 1e9], ['ms', 1e6], ['µs', 1e3]]) {
    if (view.to < size && size > 1e3) continue;
    return `${(ns / size).toFixed(Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9)))} ${unit}`;
  }
}
function ruler(width, perPixel) {
  context.fillStyle = colour('--panel');
  context.fillRect(0, 0, width, RULER - 2);
  const wish = perPixel * 110, power = 10 ** Math.floor(Math.log10(wish));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= wish);
  context.fillStyle = colour('--dim');
  context.strokeStyle = colour('--line');
  context.beginPath();
  for (let time = Math.ceil(view.from / step) * step; time <= view.to; time += step) {
    const x = (time - view.from) / perPixel;
    context.moveTo(x, 0); context.lineTo(x, canvas.clientHeight);
    if (time >= 0) context.fillText(tick(time, step), x + 3, RULER / 2);
  }
  context.globalAlpha = 0.5; context.stroke(); context.globalAlpha = 1;
}
function redraw() { if (!waiting) { waiting = true; requestAnimationFrame(draw); } }
function go(from, to) {
  const whole = bounds(), most = whole * 1.1, least = 10;
  let length = Math.min(Math.max(to - from, least), most);
  const middle = (from + to) / 2;
  view.from = Math.max(-whole * 0.05, Math.min(middle - length / 2, whole * 1.05 - length));
  view.to = view.from + length;
  redraw();
}
function spanAt(event) {
  const box = canvas.getBoundingClientRect(), y = event.clientY - box.top + view.top;
  if (event.clientY - box.top < RULER) return null;
  const line = place.lines.find((candidate) => candidate.row && y >= candidate.y && y < candidate.y + ROW);
  if (!line) return null;
  const time = view.from + (event.clientX - box.left) / box.width * (view.to - view.from);
  const slack = (view.to - view.from) / box.width;
  const { spans } = line.trace;
  const next = firstAfter(spans, line.row, time - slack);
  if (next >= line.row.length || spans.start[line.row[next]] > time + slack) return null;
  return { trace: line.trace, at: line.row[next], y: line.y };
}
function describe({ trace, at }) {
  const { spans, names } = trace;
  const lines = [names[spans.name[at]], `${duration(spans.length[at])}, from ${duration(spans.start[at])}`, trace.tracks[spans.track[at]].name];
  const own = trace.details[at];
  if (own) lines.push(...own);
  return lines.join('\n');
}
let drag = null;
canvas.addEventListener('pointerdown', (event) => { drag = { x: event.clientX, y: event.clientY, from: view.from, to: view.to, top: view.top }; canvas.setPointerCapture(event.pointerId); });
canvas.addEventListener('pointerup', () => { drag = null; });
canvas.addEventListener('pointermove', (event) => {
  if (drag) {
    const moved = (drag.x - event.clientX) / canvas.clientWidth * (drag.to - drag.from);
    view.top = drag.top + drag.y - event.clientY;
    go(drag.from + moved, drag.to + moved);
    return;
  }
  hot = spanAt(event);
  const tip = byId('tip');
  tip.style.display = hot ? 'block' : 'none';
  if (hot) {
    tip.textContent = describe(hot);
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
  }
  redraw();
});
canvas.addEventListener('pointerleave', () => { hot = null; byId('tip').style.display = 'none'; redraw(); });
canvas.addEventListener('wheel', (event) => {
  event.preventDefault();
  if (event.shiftKey) { view.top += event.deltaY || event.deltaX; redraw(); return; }
  const at = view.from + event.offsetX / canvas.clientWidth * (view.to - view.from);
  const factor = Math.exp(Math.max(-50, Math.min(50, event.deltaY)) * 0.01);
  go(at - (at - view.from) * factor, at + (view.to - at) * factor);
}, { passive: false });
canvas.addEventListener('dblclick', (event) => { const found = spanAt(event); if (found) fit(found.trace, found.at); });
function fit(trace, at) {
  const { spans } = trace, margin = spans.length[at] * 0.1 + 5;
  go(spans.start[at] - margin, spans.start[at] + spans.length[at] + margin);
}
function reveal({ trace, at }) {
  hot = { trace, at };
  const { spans } = trace;
  const line = place.lines.find((candidate) => candidate.trace === trace && candidate.row && candidate.row === trace.rows[spans.track[at]][spans.depth[at]]);
  if (line) view.top = line.y - canvas.clientHeight / 2;
  fit(trace, at);
}
byId('all').onclick = () => go(0, bounds());
byId('measured').onclick = () => { for (const at of shown) { const trace = traces[at]; if (trace.measured !== null) return fit(trace, trace.measured); } };
function search() {
  const wanted = byId('search').value.toLowerCase();
  matching = null; matches = []; current = -1;
  if (wanted) {
    matching = new Set();
    for (const at of shown) {
      const trace = traces[at], hits = new Set();
      trace.names.forEach((name, place) => { if (name.toLowerCase().includes(wanted)) { hits.add(place); matching.add(name); } });
      for (let span = 0; span < trace.spans.name.length; span++) if (hits.has(trace.spans.name[span])) matches.push({ trace, at: span });
    }
  }
  byId('found').textContent = wanted ? `${count(matches.length)} spans` : '';
  for (const row of document.querySelectorAll('#sites tbody tr')) row.classList.toggle('hit', !!matching && matching.has(row.dataset.name));
  redraw();
}
function step(by) {
  if (!matches.length) return;
  current = current < 0 && by < 0 ? matches.length - 1 : (current + by + matches.length) % matches.length;
  byId('found').textContent = `${count(current + 1)} of ${count(matches.length)}`;
  reveal(matches[current]);
}
byId('search').addEventListener('input', search);
byId('search').addEventListener('keydown', (event) => { if (event.key === 'Enter') step(event.shiftKey ? -1 : 1); });
byId('next').onclick = () => step(1);
byId('previous').onclick = () => step(-1);
if (traces.length > 1) {
  traces.forEach((trace, at) => {
    const label = element('label'), box = element('input');
    box.type = 'checkbox'; box.checked = shown.has(at);
    box.onchange = () => { box.checked ? shown.add(at) : shown.delete(at); place = layout(); tables(); search(); };
    label.append(box, ` ${trace.title}`);
    byId('steps').append(label, ' ');
  });
}
new ResizeObserver(redraw).observe(canvas);

// Tables ----------------------------------------------------------------------------------------
function table(columns, rows, click) {
  const made = element('table'), head = element('thead'), heading = element('tr'), body = element('tbody');
  const MOST = 2000;
  let order = null, down = true;
  const fill = () => {
    body.replaceChildren();
    const sorted = order === null ? rows : [...rows].sort((a, b) => {
      const [x, y] = [a.cells[order], b.cells[order]];
      const way = typeof x === 'string' ? x.localeCompare(y) : (x ?? -Infinity) - (y ?? -Infinity);
      return down ? -way : way;
    });
    for (const row of sorted.slice(0, MOST)) {
      const line = element('tr');
      row.cells.forEach((cell, at) => line.append(element('td', columns[at][1](cell), row.kinds?.[at])));
      if (row.name) line.dataset.name = row.name;
      if (click) line.onclick = () => click(row);
      body.append(line);
    }
    if (rows.length > MOST) body.append(element('tr', `… and ${count(rows.length - MOST)} more`));
  };
  columns.forEach(([title], at) => {
    const cell = element('th', title);
    cell.onclick = () => { down = order === at ? !down : true; order = at; fill(); };
    heading.append(cell);
  });
  head.append(heading); made.append(head, body); fill();
  return made;
}
const text = (value) => value ?? '-';
function tables() {
  const some = [...shown].sort((a, b) => a - b).map((at) => traces[at]);
  sites(some); statistics(some); gradients(some);
}
function sites(some) {
  const time = (value) => value === null ? '-' : duration(value);
  if (some.length === 1) {
    const share = (value) => value === null ? '-' : `${(value * 100).toFixed(1)}%`;
    const rows = some[0].summary.sites.map((site) => ({ name: site.name, cells: [site.file ? `${site.name}  ${site.file}:${site.line}` : site.name, site.calls, site.total_ns, site.self_ns, site.share, site.mean_ns, site.p50_ns, site.p95_ns] }));
    rows.sort((a, b) => b.cells[2] - a.cells[2]);
    byId('sites').replaceChildren(table([['call site', text], ['calls', count], ['total', time], ['self', time], ['share', share], ['mean', time], ['p50', time], ['p95', time]], rows, (row) => { byId('search').value = row.name; search(); step(1); }));
    return;
  }
  const names = new Map();
  // The measured region is a row of its own, whatever else has its name.
  some.forEach((trace, at) => {
    for (const { name, measured, total_ns } of trace.summary.sites) {
      const key = `${measured} ${name}`;
      if (!names.has(key)) names.set(key, { name, times: some.map(() => null) });
      const { times } = names.get(key);
      times[at] = (times[at] ?? 0) + total_ns;
    }
  });
  const rows = [...names.values()].map(({ name, times }) => ({ name, cells: [name, ...times] }));
  rows.sort((a, b) => Math.max(...b.cells.slice(1)) - Math.max(...a.cells.slice(1)));
  byId('sites').replaceChildren(table([['call site', text], ...some.map((trace) => [trace.title, time])], rows, (row) => { byId('search').value = row.name; search(); step(1); }));
}

// Statistics ------------------------------------------------------------------------------------
const FIGURES = ['rms', 'abs_max', 'mean', 'min', 'max', 'std', 'non_finite', 'zeros'];
let chart = null;
function statistics(some) {
  const any = some.some((trace) => trace.stats.length);
  byId('stats-section').hidden = !any;
  if (!any) return;
  const select = byId('figure');
  if (!select.options.length) {
    for (const name of FIGURES) select.append(new Option(name.replace('_', ' '), name));
    select.onchange = () => tables();
  }
  const wanted = select.value || 'rms';
  // The first trace tells the order; what only later ones have comes after.
  const labels = [], places = new Map();
  const keyed = some.map((trace) => {
    const seen = new Map(), found = new Map();
    for (const record of trace.stats) {
      const again = (seen.get(record.label) ?? 0) + 1;
      seen.set(record.label, again);
      const key = again > 1 ? `${record.label} (${again})` : record.label;
      if (!places.has(key)) { places.set(key, labels.length); labels.push(key); }
      found.set(key, record);
    }
    return found;
  });
  const value = (record) => record && typeof record[wanted] === 'number' ? record[wanted] : null;
  const columns = [labels.map((_, at) => at), ...keyed.map((found) => labels.map((key) => value(found.get(key))))];
  // A loop: there may be more records than a call can have arguments.
  let least = Infinity, most = 0;
  for (const column of columns.slice(1)) for (const number of column) if (number > 0) { least = Math.min(least, number); most = Math.max(most, number); }
  const logarithmic = wanted !== 'mean' && wanted !== 'min' && most / least > 1e3;
  if (logarithmic) for (const column of columns.slice(1)) for (let at = 0; at < column.length; at++) if (!(column[at] > 0)) column[at] = null;
  const marks = (plot) => {
    const { ctx: paint } = plot;
    keyed.forEach((found, which) => labels.forEach((key, at) => {
      const record = found.get(key);
      if (!record || !(record.alarm || record.cut)) return;
      const x = plot.valToPos(at, 'x', true), shownAt = columns[which + 1][at];
      const y = shownAt === null ? plot.bbox.top + plot.bbox.height - 8 : plot.valToPos(shownAt, 'y', true);
      paint.fillStyle = colour(record.cut && !record.alarm ? '--warn' : '--bad');
      paint.beginPath();
      if (record.cut && !record.alarm) { paint.moveTo(x, y - 7); paint.lineTo(x + 7, y); paint.lineTo(x, y + 7); paint.lineTo(x - 7, y); } else paint.arc(x, y, 6, 0, 7);
      paint.fill();
    }));
  };
  const axis = { stroke: colour('--fg'), grid: { stroke: colour('--line'), width: 1 }, ticks: { stroke: colour('--line'), width: 1 } };
  const options = {
    width: Math.max(byId('stats-section').clientWidth - 40, 300), height: 240, hooks: { draw: [marks] },
    scales: { x: { time: false }, y: { distr: logarithmic ? 3 : 1 } },
    axes: [{ ...axis, values: (_, splits) => splits.map((at) => Number.isInteger(at) && labels[at] !== undefined ? (labels[at].length > 14 ? '…' + labels[at].slice(-13) : labels[at]) : '') }, { ...axis, size: 70, values: (_, splits) => splits.map((number) => number === null ? '' : figure(number)) }],
    series: [{ label: 'label', value: (_, at) => at === null ? '' : labels[at] }, ...some.map((trace, at) => ({ label: some.length > 1 ? trace.title : wanted.replace('_', ' '), stroke: `hsl(${(at * 67 + 215) % 360} 65% 50%)`, width: 1.5, points: { show: labels.length < 200, size: 5 }, spanGaps: false, value: (_, number) => figure(number) }))],
  };
  chart?.destroy();
  chart = new uPlot(options, columns, byId('chart'));
  const single = some.length === 1;
  const rows = [];
  some.forEach((trace, which) => {
    for (const [key, record] of keyed[which]) {
      const bad = record.alarm ? 'bad' : record.cut ? 'warn' : '';
      rows.push({ trace, record, kinds: [bad, '', bad], cells: [single ? key : `${key}  ${trace.title}`, record.type, record.non_finite, record.rms, record.mean, record.abs_max, record.min ?? null, record.max ?? null, record.std ?? null, trace.names[trace.spans.name[record.span]] ?? '-'] });
    }
  });
  byId('stats').replaceChildren(table([['label', text], ['type', text], ['not finite', count], ['rms', figure], ['mean', figure], ['abs max', figure], ['min', figure], ['max', figure], ['std', figure], ['span', text]], rows, (row) => { if (row.record.span !== null) { reveal({ trace: row.trace, at: row.record.span }); byId('timeline-section').scrollIntoView(); } }));
}
function gradients(some) {
  const rows = [], several = some.some((trace) => trace.gradients.some((gradient) => gradient.passes > 1));
  for (const trace of some) for (const gradient of trace.gradients) {
    const bad = gradient.state === 'missing' || gradient.state === 'non_finite' ? 'bad' : gradient.state === 'zero' ? 'warn' : '';
    rows.push({ kinds: ['', '', bad], cells: [some.length > 1 ? `${gradient.key}  ${trace.title}` : gradient.key, gradient.root, gradient.state, ...(several ? [gradient.passes, gradient.least] : []), gradient.most, gradient.reason ?? ''] });
  }
  byId('gradients-section').hidden = !rows.length;
  if (rows.length) byId('gradients').replaceChildren(table([['variable', text], ['of', text], ['state', text], ...(several ? [['passes', count], ['least norm', figure], ['most', figure]] : [['norm', figure]]), ['why', text]], rows));
}

// Over the steps --------------------------------------------------------------------------------
function trends() {
  if (!data.trends) return;
  byId('trends-section').hidden = false;
  const axis = { stroke: colour('--fg'), grid: { stroke: colour('--line'), width: 1 }, ticks: { stroke: colour('--line'), width: 1 } };
  for (const group of data.trends.groups) {
    if (group.steps.length < 2) continue;
    const steps = group.steps.map((one) => one.capture_step);
    const wanted = group.rows.filter((row) => row.kind === 'scalar').slice(0, 8).concat(group.rows.filter((row) => row.kind === 'time_ns').slice(0, 4));
    for (const row of wanted) {
      const show = row.kind === 'time_ns' ? duration : figure;
      const box = element('div');
      byId('trends').append(box);
      new uPlot({
        title: row.label, width: 400, height: 180, scales: { x: { time: false } },
        axes: [{ ...axis, values: (_, splits) => splits.map((at) => Number.isInteger(at) ? at : '') }, { ...axis, size: 70, values: (_, splits) => splits.map((number) => show(number)) }],
        series: [{ label: 'step' }, { label: row.label, stroke: colour('--accent'), width: 1.5, points: { show: true, size: 5 }, value: (_, number) => number === null ? '-' : show(number) }],
      }, [steps, row.values], box);
    }
  }
}
tables(); trends(); go(0, bounds());
// For tests and for the curious.
window.candleProfile = { traces, view, go, draw, search, step, matches: () => matches };
})();
