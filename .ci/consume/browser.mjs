// A headless browser from npm, which says of a page what went wrong in it.
import chromium from '@sparticuz/chromium';
import puppeteer from 'puppeteer-core';

export async function open(url) {
  const own = chromium.args.filter((one) => !/single-process|zygote/.test(one));
  const browser = await puppeteer.launch({ args: [...own, '--no-sandbox', '--disable-dev-shm-usage', '--lang=en-US'], executablePath: await chromium.executablePath(), headless: 'shell', env: { ...process.env, LANG: 'en_US.UTF-8', LANGUAGE: 'en_US', LC_ALL: 'en_US.UTF-8' } });
  const page = await browser.newPage();
  const faults = [];
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('console', (message) => { if (message.type() === 'error') faults.push(message.text()); });
  page.on('dialog', async (dialog) => { faults.push(dialog.message()); await dialog.dismiss(); });
  page.on('request', (request) => { if (!/^(file|data|blob):/.test(request.url())) faults.push(`network: ${request.url()}`); });
  await page.setViewport({ width: 1280, height: 1200 });
  await page.goto(url);
  return { browser, page, faults };
}
export const frame = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
