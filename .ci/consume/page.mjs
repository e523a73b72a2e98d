// Opens pages of `candle-profile view` in a browser: `node page.mjs SMALL.html LARGE.html SCREENSHOT.png`
//
// No fault, no request; search, zoom and tables work; 100,000 spans are drawn within a frame or two.
import assert from 'node:assert/strict';
import { frame, open } from './browser.mjs';

const [small, large, screenshot] = process.argv.slice(2);
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
  await page.click('#all');
  await frame(page);
  const box = await (await page.$('#timeline canvas')).boundingBox();
  await page.mouse.move(box.x + box.width / 3, box.y + 60);
  await page.mouse.wheel({ deltaY: -300 });
  await frame(page);
  const zoomed = await page.evaluate(() => candleProfile.view.to - candleProfile.view.from);
  assert(zoomed < 4e6, `the wheel zooms: ${zoomed}`);
  await page.click('#all');
  await page.screenshot({ path: screenshot, fullPage: true });
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
  assert.deepEqual(faults, []);
  await browser.close();
  console.log(`page: works; ${spans} spans are drawn in ${times[15].toFixed(1)} ms (median of 30)`);
}
