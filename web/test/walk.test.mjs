// A walk through the desk of the demo, as two persons take it: queue, case, picture, actions, closed by the second one.
// UNITAPE names the binary, CHROMIUM the browser.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';

const unitape = process.env.UNITAPE ?? 'unitape';
const dir = mkdtempSync(join(tmpdir(), 'unitape-desk-'));
const axe = readFileSync(new URL('../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
/** No step of the walk may take longer; it is no measure of speed. */
const PATIENCE_MS = 120_000;
let demo, desk, browser, page;
const troubles = [];

before(async () => {
  demo = spawn(unitape, ['demo', '--desk', '--json', '--seconds', '1', '--dir', dir], { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: demo.stdout })) {
    const said = JSON.parse(line);
    if (said.desk) {
      desk = said;
      break;
    }
  }
  assert.ok(desk, 'the demo did not serve a desk');
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.on('console', (message) => {
    // A refused request of the page itself is logged by the browser, too: the walk asks for some.
    if (message.type() === 'error' && !/status of (401|403|409|422)/.test(message.text())) troubles.push(message.text());
  });
  page.on('pageerror', (error) => troubles.push(String(error)));
  page.on('request', (request) => {
    if (!request.url().startsWith(desk.desk)) troubles.push(`a request to outside: ${request.url()}`);
  });
});

after(async () => {
  await browser?.close();
  if (demo && demo.exitCode === null) {
    const ended = new Promise((resolve) => demo.once('exit', resolve));
    demo.kill('SIGTERM');
    assert.equal(await ended, 0, 'the desk ends cleanly');
  }
  rmSync(dir, { recursive: true, force: true });
});

const run = (...args) => execFileSync(unitape, args, { encoding: 'utf8' });
const lines = (...args) => run(...args).trim().split('\n').map((line) => JSON.parse(line));

async function logIn(name) {
  const { password } = desk.accounts.find((account) => account.user === name);
  await page.getByLabel('User').fill(name);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('heading', { name: 'Cases', exact: true }).waitFor();
}

async function checkAccess(where) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => window.axe.run());
  assert.deepEqual(found.violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.target).join(' ')}`), [], `axe on ${where}`);
}

test('queue, case, picture, actions, closed by a second person', async () => {
  await page.goto(desk.desk);
  await page.getByLabel('User').fill('anna');
  await page.getByLabel('Password').fill('a guess');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('alert').getByText('wrong').waitFor();
  await checkAccess('the log-in');
  await logIn('anna');

  // The queue has each alert of the tape once.
  const alerts = lines('tape', 'cat', join(dir, 'alerts'), '--json', '--kind', 'alert');
  const rows = page.locator('tbody tr');
  await rows.first().waitFor();
  const counts = await rows.locator('td:nth-child(6)').allTextContents();
  assert.equal(counts.reduce((sum, text) => sum + Number(text), 0), alerts.length);
  await checkAccess('the queue');

  // The first spoofing case: who, why, and the order that was pulled on the picture.
  await rows.filter({ has: page.getByText('spoofing', { exact: true }) }).first().getByRole('link').click();
  await page.getByRole('heading', { name: /^Case \d+: spoofing$/ }).waitFor();
  const id = (await page.getByRole('heading', { level: 1 }).textContent()).match(/\d+/)[0];
  await page.getByRole('heading', { name: 'Why' }).waitFor();
  const detail = lines('case', 'list', '--cases', join(dir, 'cases'), '--json').find((row) => String(row.id ?? row.case) === id);
  assert.ok(detail, 'the command line lists the case');
  const alert = alerts.find((alert) => alert.scenario === 'spoofing' && JSON.stringify(alert.key) === JSON.stringify(detail.key));
  const picture = page.locator('svg.picture');
  await picture.waitFor();
  assert.ok((await picture.locator('rect').count()) > 0, 'levels are drawn');
  await picture.locator(`path.order[data-oid="${alert.detail.spoof_oid}"]`).waitFor({ state: 'attached' });
  assert.ok((await page.locator('section[aria-labelledby=evidence] tbody tr').count()) >= 3, 'evidence is listed');

  // The table twin is the book that the command line prints.
  await page.getByText('The book as a table').click();
  const columns = await page.locator('tr[data-ts]').evaluateAll((rows) =>
    rows.map((row) => ({ ts: row.dataset.ts, bids: row.querySelector('.bids').textContent, asks: row.querySelector('.asks').textContent })),
  );
  assert.ok(columns.length >= 3, `${columns.length} columns`);
  for (const column of [columns[1], columns[columns.length >> 1], columns.at(-1)]) {
    const books = lines('book', join(dir, 'tape'), '--at', column.ts, '--instr', alert.key.instr, '--venue', alert.key.venue, '--depth', '5', '--json');
    const book = books.find((line) => line.basis === 'orders');
    const text = (levels) => levels.map(({ px, qty }) => `${qty} @ ${px}`).join('  ');
    assert.equal(column.bids, text(book.bids), `bids at ${column.ts}`);
    assert.equal(column.asks, text(book.asks), `asks at ${column.ts}`);
  }
  await checkAccess('a case');

  // Actions; what is written is text.
  const hostile = '<img src=x onerror="document.title=1"> \u202e note';
  await page.getByLabel('Assign to').fill('anna');
  await page.getByRole('button', { name: 'Assign' }).click();
  await page.locator('.state').getByText('with anna').waitFor();
  await page.getByLabel('Text').fill(hostile);
  await page.getByRole('button', { name: 'Add a note' }).click();
  await page.locator('.history').getByText('<img src=x').waitFor();
  await page.getByLabel('Text').fill('see the pulled order');
  await page.getByRole('button', { name: 'Escalate' }).click();
  await page.locator('.state').getByText('escalated').waitFor();
  await page.getByLabel('Disposition').selectOption('explained');
  await page.getByRole('button', { name: 'Close' }).click();
  await page.locator('.state').getByText('pending close').waitFor();

  // The person who proposed it cannot close it; what she wrote stays.
  await page.getByLabel('Text').fill('again');
  await page.getByRole('button', { name: 'Close' }).click();
  await page.getByRole('alert').getByText('second person').waitFor();
  assert.equal(await page.getByLabel('Text').inputValue(), 'again');
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
  await logIn('sam');
  await page.getByRole('link', { name: id, exact: true }).click();
  await page.getByRole('button', { name: 'Close' }).click();
  await page.locator('.state').getByText('closed: explained').waitFor();

  // The exported case opens without a complaint of the browser, and asks nobody for anything.
  const sheet = join(dir, 'case.html');
  run('case', 'export', id, '--cases', join(dir, 'cases'), '--tape', join(dir, 'tape'), '--html', sheet);
  const paper = await browser.newPage();
  paper.on('console', (message) => troubles.push(`the exported case: ${message.text()}`));
  paper.on('request', (request) => {
    if (!request.url().startsWith('file:')) troubles.push(`the exported case asks for ${request.url()}`);
  });
  await paper.goto(pathToFileURL(sheet).href);
  assert.ok((await paper.locator('svg rect').count()) > 1, 'the exported case has the picture');
  assert.ok((await paper.getByText('<img src=x').count()) > 0, 'the note is text');
  await paper.close();

  const audit = run('case', 'audit', 'verify', '--cases', join(dir, 'cases'));
  assert.ok(audit.length > 0);
  assert.deepEqual(troubles, []);
});

test('without a session, from elsewhere and without the token nothing is given', async () => {
  const base = `${desk.desk}/api/v1`;
  const json = { 'content-type': 'application/json' };
  assert.equal((await fetch(`${base}/cases`)).status, 401);
  assert.equal((await fetch(`${base}/cases/1`)).status, 401);
  assert.equal((await fetch(`${base}/nothing`)).status, 404);
  const { user, password } = desk.accounts[0];
  const answer = await fetch(`${base}/session`, { method: 'POST', headers: json, body: JSON.stringify({ user, password }) });
  assert.equal(answer.status, 200);
  const cookie = answer.headers.get('set-cookie').split(';')[0];
  const session = await answer.json();
  assert.ok(answer.headers.get('set-cookie').includes('HttpOnly') && answer.headers.get('set-cookie').includes('SameSite=Strict'));
  const act = (headers) =>
    fetch(`${base}/cases/1/actions`, { method: 'POST', headers: { ...json, cookie, ...headers }, body: '{"action":"note","text":"x"}' });
  assert.equal((await act({})).status, 403);
  assert.equal((await act({ 'x-csrf-token': 'guess' })).status, 403);
  assert.equal((await act({ 'x-csrf-token': session.csrf, origin: 'http://evil.example' })).status, 403);
  assert.equal((await act({ 'x-csrf-token': session.csrf })).status, 200);
  assert.equal((await fetch(`${base}/cases/999999`, { headers: { cookie } })).status, 404);
  assert.equal((await fetch(`${base}/cases?state=nothing`, { headers: { cookie } })).status, 400);
  assert.equal((await fetch(`${base}/session`, { method: 'DELETE', headers: { cookie, 'x-csrf-token': session.csrf } })).status, 204);
  assert.equal((await fetch(`${base}/cases`, { headers: { cookie } })).status, 401);
});
