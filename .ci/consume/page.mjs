// Opens pages of `candle-profile view` in a browser: `node page.mjs SMALL.html LARGE.html RECORDS.html SCREENSHOT.png`
//
// No fault, no request; search, zoom, pan and tables work; spans and marks are there as pixels; so are 100,000 spans, and
// 150,000 records of statistics. How long a frame takes is printed, not asserted.
import assert from 'node:assert/strict';
import { frame, open } from './browser.mjs';

const [small, large, records, screenshot] = process.argv.slice(2);
// The colours of the page's marks on a light background, and of what was searched for.
const BAD = [198, 40, 40], WARN = [178, 106, 0], HIT = [255, 179, 0];
/** How many pixels of a canvas have a colour, within some columns. */
const pixels = (page, canvas, colour, from = 0, to = Infinity) => page.evaluate((canvas, colour, from, to) => {
  const own = document.querySelector(canvas), width = Math.min(to ?? own.width, own.width) - from;
  const { data } = own.getContext('2d').getImageData(from, 0, width, own.height);
  let sum = 0;
  for (let at = 0; at < data.length; at += 4) sum += colour.every((part, place) => data[at + place] === part);
  return sum;
}, canvas, colour, from, to);
const TIMELINE = '#timeline canvas', CHART = '#chart canvas';
/** The share of the timeline that is not its background, which is what stands in its last line. */
const painted = (page) => page.evaluate((canvas) => {
  const own = document.querySelector(canvas), { data } = own.getContext('2d').getImageData(0, 24, own.width, own.height - 24);
  let sum = 0;
  for (let at = 0; at < data.length; at += 4) sum += data[at] !== 255 || data[at + 1] !== 255 || data[at + 2] !== 255;
  return sum / (data.length / 4);
}, TIMELINE);
const range = (page) => page.evaluate(() => [candleProfile.view.from, candleProfile.view.to]);
{
  const { browser, page, faults } = await open(`file://${small}`);
  await frame(page);
  await page.type('#search', 'layer 1');
  await page.keyboard.press('Enter');
  await frame(page);
  const found = await page.evaluate(() => ({
    text: document.getElementById('found').textContent,
    matches: candleProfile.matches().length,
    rows: document.querySelectorAll('#sites tbody tr').length,
    hits: document.querySelectorAll('#sites tbody tr.hit').length,
    stats: document.querySelectorAll('#stats tbody tr').length,
    bad: document.querySelectorAll('#stats td.bad').length,
    charts: document.querySelectorAll('.uplot').length,
    view: [candleProfile.view.from, candleProfile.view.to],
    traces: candleProfile.traces.length,
  }));
  assert(found.matches > 0 && found.text.startsWith('1 of '), JSON.stringify(found));
  assert(found.rows > 10 && found.hits > 0 && found.stats > 0 && found.bad > 0 && found.charts > 2, JSON.stringify(found));
  assert(found.view[1] - found.view[0] < 4e6, 'the search zooms in');
  assert(await pixels(page, TIMELINE, HIT) > 100, 'what was found is drawn');
  await page.evaluate(() => { document.getElementById('search').value = 'future'; candleProfile.search(); });
  await page.click('#previous');
  const all = await page.evaluate(() => [document.getElementById('found').textContent, candleProfile.matches().length]);
  assert.equal(all[0], `${all[1]} of ${all[1]}`, 'the way back begins at the last');
  await page.evaluate(() => { document.getElementById('search').value = ''; candleProfile.search(); });
  await page.click('#all');
  await frame(page);
  const box = await (await page.$('#timeline canvas')).boundingBox();
  await page.mouse.move(box.x + box.width / 3, box.y + 60);
  await page.mouse.wheel({ deltaY: -300 });
  await frame(page);
  const zoomed = await range(page);
  assert(zoomed[1] - zoomed[0] < 4e6, `the wheel zooms: ${zoomed}`);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 3 - 100, box.y + 60, { steps: 4 });
  await page.mouse.up();
  await frame(page);
  const moved = await range(page), by = (zoomed[1] - zoomed[0]) * 100 / box.width;
  for (const side of [0, 1]) assert(Math.abs(moved[side] - zoomed[side] - by) < by / 50, `dragging moves: ${zoomed} to ${moved}`);
  await page.click('#all');
  await frame(page);
  const toTop = () => page.evaluate(() => { candleProfile.view.top = 0; candleProfile.draw(); });
  await toTop();
  assert(await painted(page) > 0.05, 'spans are drawn');
  const stats = await page.evaluate(() => ['warn', 'bad'].map((kind) => [...document.querySelectorAll(`#stats td:first-child.${kind}`)].map((cell) => cell.textContent.split('  ')[0])));
  assert.deepEqual(stats.map((names) => [...new Set(names)].sort()), [['normed'], ['logits', 'spark']]);
  assert(await pixels(page, CHART, WARN) > 20 && await pixels(page, CHART, BAD) > 20, 'cut and not finite are marked in the chart');
  assert.equal(await pixels(page, TIMELINE, BAD), 0, 'all is well in the steps that are in view');
  await page.screenshot({ path: screenshot, fullPage: true });
  // Step 3, which is not, alone.
  await page.evaluate(() => { for (const label of document.querySelectorAll('#steps label')) if (!label.textContent.endsWith('step 3')) label.querySelector('input').click(); });
  await page.click('#all');
  await frame(page);
  await toTop();
  const [from, to] = await range(page), at = Math.floor((3_980_000 - from) / (to - from) * box.width);
  assert(await pixels(page, TIMELINE, BAD, 0, at - 5) > 0, 'a mark of the region');
  assert(await pixels(page, TIMELINE, BAD, at - 1, at + 2) > 0, 'a mark of what is narrower than a pixel');
  assert.deepEqual(faults, []);
  await browser.close();
}
{
  const { browser, page, faults } = await open(`file://${large}`);
  const spans = await page.evaluate(() => candleProfile.traces[0].spans.start.length);
  const times = [];
  for (let turn = 0; turn < 30; turn++) {
    times.push(await page.evaluate((turn) => new Promise((done) => {
      const whole = candleProfile.traces[0].duration, at = turn / 60;
      const begun = performance.now();
      candleProfile.go(whole * at * 0.5, whole * (1 - at));
      candleProfile.draw();
      const spent = performance.now() - begun;
      requestAnimationFrame(() => done(spent));
    }), turn));
  }
  times.sort((a, b) => a - b);
  assert(spans >= 100_000, `${spans} spans`);
  await page.click('#all');
  await frame(page);
  assert(await painted(page) > 0.2, 'spans are drawn');
  assert.deepEqual(faults, []);
  await browser.close();
  console.log(`page: works; ${spans} spans are drawn in ${times[15].toFixed(1)} ms (median of 30)`);
}
{
  const { browser, page, faults } = await open(`file://${records}`);
  await frame(page);
  const found = await page.evaluate(() => ({ records: candleProfile.traces[0].stats.length, rows: document.querySelectorAll('#stats tbody tr').length, charts: document.querySelectorAll('#chart .uplot').length }));
  assert.deepEqual(found, { records: 150_000, rows: 2_001, charts: 1 });
  assert(await painted(page) > 0.01, 'spans are drawn');
  assert.deepEqual(faults, []);
  await browser.close();
  console.log(`page: ${found.records} records of statistics are shown`);
}
