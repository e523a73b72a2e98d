// Opens an exported file in speedscope itself: `node speedscope.mjs FOLDER-OF-SPEEDSCOPE EXPORTED.json`
//
// It must fit speedscope's own schema and open without a fault; the sandwich view must list every name of the first
// profile with the time that the file gives it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import Ajv from 'ajv';
import { frame, open } from './browser.mjs';

const [folder, exported] = process.argv.slice(2);
const release = path.join(folder, 'dist/release');
const file = JSON.parse(fs.readFileSync(exported, 'utf8'));
const schema = JSON.parse(fs.readFileSync(path.join(release, 'file-format-schema.json'), 'utf8'));
const validate = new Ajv({ strict: false }).compile(schema);
assert(validate(file), JSON.stringify(validate.errors));

const loader = path.resolve(exported + '.js');
fs.writeFileSync(loader, `speedscope.loadFileFromBase64("trace.json", "${fs.readFileSync(exported).toString('base64')}")`);
const { browser, page, faults } = await open(`file://${path.resolve(release, 'index.html')}#localProfilePath=${loader}`);
await page.waitForFunction((name) => document.title.startsWith(name), { timeout: 60_000 }, file.name);
await page.keyboard.press('3');
await frame(page);
const shown = await page.evaluate(() => document.body.innerText);
const first = file.profiles[0], open_ = [];
// By name: all time, where a name within itself counts once, and own time.
const times = new Map(file.shared.frames.map((one) => [one.name, { total: 0, self: 0 }]));
const nameOf = (event) => file.shared.frames[event.frame].name;
for (const event of first.events) {
  if (event.type === 'O') { open_.push({ ...event, inside: 0 }); continue; }
  const begun = open_.pop(), length = event.at - begun.at, own = times.get(nameOf(event));
  assert.equal(begun.frame, event.frame);
  if (!open_.some((outer) => outer.frame === event.frame)) own.total += length;
  own.self += length - begun.inside;
  if (open_.length) open_.at(-1).inside += length;
}
/** Whether a text is a time as speedscope writes it, with two decimals. */
function says(text, ns) {
  const [, number, unit] = /^([0-9.]+)(s|ms|µs|ns) \(/.exec(text);
  return Math.abs(number - ns / { s: 1e9, ms: 1e6, µs: 1e3, ns: 1 }[unit]) < 0.00501;
}
// The table as far as it is in view: both times, and the name.
const lines = shown.split('\n').map((line) => line.trim());
let rows = 0;
for (let at = lines.indexOf('Total\tSelf\tSymbol Name') + 1; /\(.*%\)$/.test(lines[at]) && times.has(lines[at + 2]); at += 3, rows++) {
  const { total, self } = times.get(lines[at + 2]);
  assert(says(lines[at], total) && says(lines[at + 1], self), `${lines[at + 2]}: ${lines[at]}, ${lines[at + 1]} for ${total}, ${self}`);
}
assert(rows >= 20, `${rows} rows in ${shown.slice(0, 500)}`);
const root = file.shared.frames[first.events[0].frame].name;
assert(shown.includes(root), `${root} in ${shown.slice(0, 500)}`);
assert(shown.includes('Total') && shown.includes('Self') && shown.includes('(100%)'), shown.slice(0, 500));
assert.deepEqual(faults, []);
await browser.close();
console.log(`speedscope: ${file.profiles.length} profiles open, the schema holds, ${rows} names have their times`);
