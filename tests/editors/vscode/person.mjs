// What a person does in VS Code, with the mouse and the keyboard, and what they see.
import { createRequire } from 'node:module';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const { AGENTS_TEST_VSCODE, AGENTS_WORLD, PICTURES } = process.env;
const { chromium } = createRequire(`${AGENTS_TEST_VSCODE}/`)('playwright-core');

/** How long anything may take. The machine may be busy; nothing waits longer than it must. */
export const LONG = Number(process.env.AGENTS_TEST_LONG ?? 240_000);

let picture = 0;

export class Person {
  static async sitDown(folder) {
    const address = await until('code-server serves', () =>
      readFileSync(join(AGENTS_WORLD, 'code.log'), 'utf8').match(/http:\/\/127\.0\.0\.1:\d+/)?.[0]);
    const profile = mkdtempSync(join(tmpdir(), 'chromium-'));
    const browser = await chromium.launchPersistentContext(profile, {
      executablePath: '/usr/bin/chromium', headless: true, viewport: { width: 1360, height: 860 },
      args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
        '--disable-background-networking', '--disable-component-update', '--disable-sync'],
    });
    const page = browser.pages()[0] ?? await browser.newPage();
    const person = new Person(browser, page, profile);
    page.on('request', (request) => {
      const { hostname, protocol } = new URL(request.url());
      if (protocol.startsWith('http') && hostname !== '127.0.0.1' && !hostname.endsWith('localhost') && !hostname.endsWith('vscode-cdn.net')) person.strangers.add(hostname);
    });
    await page.goto(`${address}/?folder=${folder}`, { waitUntil: 'domcontentloaded' });
    await page.locator('.monaco-workbench').waitFor({ timeout: LONG });
    await page.locator('.statusbar-item').first().waitFor({ timeout: LONG });
    return person;
  }

  constructor(browser, page, profile) {
    Object.assign(this, { browser, page, profile, strangers: new Set() });
    page.setDefaultTimeout(LONG);
  }

  async getUp() {
    await this.browser.close();
    rmSync(this.profile, { recursive: true, force: true });
  }

  /** Keeps a picture of what is on the screen. */
  async look(name) {
    picture += 1;
    await this.page.waitForTimeout(250);
    await this.page.screenshot({ path: join(PICTURES, `${String(picture).padStart(2, '0')}-${name}.png`) });
  }

  async press(...keys) {
    for (const key of keys) await this.page.keyboard.press(key);
  }

  async open(file) {
    const { page } = this;
    const row = page.locator('.quick-input-list .monaco-list-row', { hasText: file }).first();
    for (let tries = 0; ; tries += 1) {
      await this.press('Escape', 'Control+P');
      try {
        // A busy editor may not have seen the keys, or not know a new file yet.
        await page.locator('.quick-input-widget input').first().fill(file, { timeout: 4000 });
        await row.click({ timeout: 4000 });
        await page.locator('.tab.active', { hasText: file.split('/').at(-1) }).waitFor({ timeout: 4000 });
        return;
      } catch (error) {
        if (tries === 30) throw error;
      }
    }
  }

  /** Runs a command of the palette by its title. The list is made when it opens, so it is opened until it has it. */
  async command(title) {
    const { page } = this;
    const row = page.locator('.quick-input-list .monaco-list-row', { hasText: title }).first();
    for (let tries = 0; ; tries += 1) {
      await this.press('Escape', 'F1');
      try {
        // A busy editor may not have seen the key.
        await page.locator('.quick-input-widget input').first().fill(`>${title}`, { timeout: 4000 });
        await row.waitFor({ timeout: 4000 });
        // What opens meanwhile may take the list away.
        await row.click({ timeout: 4000 });
        return;
      } catch (error) {
        if (tries === 30) throw error;
      }
    }
  }

  /** Chooses from a list that is open. */
  async choose(text) {
    // At its beginning: what the mouse rests on is explained over the middle.
    await this.page.locator('.quick-input-widget:visible .quick-input-list .monaco-list-row', { hasText: text }).first()
      .click({ position: { x: 30, y: 10 } });
  }

  /** Types into the box that is open. */
  async type(text) {
    const box = this.page.locator('.quick-input-widget:visible input').first();
    await box.fill(text);
    await this.press('Enter');
  }

  /** Presses a button of the dialog that is open. */
  async confirm(label) {
    await this.page.locator('.monaco-dialog-box .monaco-button', { hasText: new RegExp(`^${label}$`) }).click();
  }

  lens(text) {
    return this.page.locator('.contentWidgets .codelens-decoration a', { hasText: text }).first();
  }

  line(text) {
    return this.page.locator('.editor-instance .view-line', { hasText: text }).first();
  }

  /** Rests the mouse on a text of the code; what is shown. */
  async hover(text) {
    const shown = this.page.locator('.monaco-hover:visible', { hasText: 'Explain' }).first();
    await this.page.mouse.move(5, 5);
    for (let tries = 0; ; tries += 1) {
      await this.line(text).hover({ position: { x: 60, y: 8 } });
      try {
        await shown.waitFor({ timeout: 5000 });
        return shown;
      } catch (error) {
        if (tries === 6) throw error;
        await this.page.mouse.move(5, 5);
      }
    }
  }

  view(name) {
    return this.page.locator('.pane', { has: this.page.locator('.pane-header', { hasText: name }) });
  }

  row(name, text) {
    return this.view(name).locator('.monaco-list-row', { hasText: text }).first();
  }

  /** The page of a plan, inside its two frames. */
  get planPage() {
    return this.page.frameLocator('iframe.webview.ready').last().frameLocator('#active-frame');
  }

  notification(text) {
    return this.page.locator('.notification-toast', { hasText: text }).first();
  }

  async closeNotifications() {
    await this.command('Notifications: Clear All Notifications');
  }
}

/** Waits until `ask` gives something; what it gave. */
export async function until(what, ask, more = () => '') {
  const end = Date.now() + LONG;
  for (;;) {
    let found;
    try {
      found = await ask();
    } catch {
      found = undefined;
    }
    if (found) return found;
    if (Date.now() > end) throw new Error(`not in time: ${what} ${JSON.stringify(await more())}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
