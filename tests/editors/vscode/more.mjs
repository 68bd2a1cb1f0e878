// What a person does less often: looking at many files at once, at what a correction changed, at the decision behind a line;
// going back to a checkpoint, and on; a server that dies; taking an applied plan back, adding to it, giving a plan up.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { until } from './person.mjs';

/** `desk`: the person, what the command line says, and how facts are told. */
export async function lookAround({ person, cli, plan, check }) {
  const { page } = person;
  const closeAll = () => person.command('View: Close All Editors');

  await closeAll();
  await person.command('CleverAgents: Show What a Plan Changes');
  const { files } = cli('plan', 'diff', plan);
  await page.locator('.multiDiffEntry').nth(files.length - 1).waitFor();
  const shown = await page.locator('.multiDiffEntry').allInnerTexts();
  check('all files of a plan are shown in one editor', files.every(({ path }) => shown.some((text) => text.includes(path.split('/').at(-1)))), shown);
  await person.look('multi-diff');

  await closeAll();
  await person.command('CleverAgents: Show What a Correction Changed');
  await page.locator('.quick-input-list .monaco-list-row', { hasText: 'Disable for this line' }).first().waitFor();
  await person.look('which-correction');
  await person.choose('Disable for this line');
  await page.locator('.tab.active', { hasText: 'Correction' }).waitFor();
  await page.locator('.diff-editor, .multiDiffEntry, .monaco-diff-editor').first().waitFor();
  check('what a correction changed is a diff of before and after', true);
  await person.look('correction-diff');

  await closeAll();
  await person.open('main.py');
  await person.line('import os').click({ position: { x: 60, y: 8 } });
  await person.command('CleverAgents: Explain the Decision Behind This Line');
  await person.planPage.locator('.detail h3').waitFor();
  await until('the page shows the decision behind the line', async () => (await person.planPage.locator('.detail').innerText()).includes('F401'));
  check('the decision behind the line of the cursor is explained', true);
  await person.look('explain-line');

  await closeAll();
  await person.command('CleverAgents: First Steps');
  await page.locator('.gettingStartedContainer', { hasText: 'Get the program' }).first().waitFor();
  check('the walkthrough opens at its steps', true);
  await person.look('walkthrough');
}

const servers = () => {
  try {
    return execFileSync('pgrep', ['-f', `${process.env.AGENTS} lsp serve`], { encoding: 'utf8' }).trim().split('\n').filter(Boolean);
  } catch {
    return [];
  }
};

export async function dieAndComeBack({ person, check }) {
  const before = servers();
  check('one server runs', before.length === 1, before);
  await person.open('main.py');
  await person.lens('apply').waitFor();
  process.kill(Number(before[0]), 'SIGKILL');
  await until('another server runs', () => servers().length === 1 && servers()[0] !== before[0], servers);
  await person.row('Plans', 'fix-diagnostics · cafe').waitFor();
  await until('the lenses are back', async () => (await person.lens('apply').count()) > 0);
  check('a server that dies is started again, and everything is there as before', true);
  await person.look('came-back');
}

/** Back to the first checkpoint of Execute; whoever calls brings the plan on again. */
export async function rollBack({ person, cli, plan, check, standing }) {
  const { page } = person;
  const before = cli('plan', 'artifacts', plan).checkpoints.length;
  await person.command('CleverAgents: Roll a Plan Back to a Checkpoint');
  const rows = page.locator('.quick-input-widget:visible .quick-input-list .monaco-list-row');
  await rows.nth(1).waitFor();
  await person.look('checkpoints');
  await rows.nth(1).click();
  await page.locator('.monaco-dialog-box', { hasText: 'back to' }).waitFor();
  await person.look('rollback');
  await person.confirm('Roll Back');
  await until('the plan is back', () => standing().endsWith('+rollback'), standing);
  check('a plan goes back to a checkpoint by clicks, what falls shown first', before > 1);
  await person.look('rolled-back');
}

export async function takeBackAndGiveUp({ person, cli, plan, check, world }) {
  const { page } = person;
  await person.notification('was applied').locator('.monaco-button', { hasText: 'Take It Back' }).click();
  await page.locator('.monaco-dialog-box', { hasText: 'Take fix-diagnostics' }).waitFor();
  await person.look('take-back');
  await person.confirm('Take Back');
  const back = await until('a plan that takes it back', () => cli('plan', 'list').plans.find((one) => one.id !== plan));
  check('an applied plan is taken back by a plan of its own', back.action.includes('revert'), back);
  await until('it rests', () => cli('plan', 'status', back.id).awaiting, () => cli('plan', 'status', back.id));
  await person.look('taking-back');

  await person.command('CleverAgents: Cancel a Plan');
  await page.locator('.monaco-dialog-box', { hasText: 'up for good' }).waitFor();
  await person.look('cancel');
  await person.confirm('Cancel the Plan');
  await until('it is given up', () => cli('plan', 'status', back.id).state === 'cancelled');
  check('a plan is given up by clicks', true);
  const sandbox = join(world, 'home/.cleveragents/sandboxes', back.id);
  const had = existsSync(sandbox);
  await person.command('CleverAgents: Remove the Sandbox of a Cancelled Plan');
  await page.locator('.statusbar-item', { hasText: 'is gone' }).waitFor();
  check('its sandbox is removed', !existsSync(sandbox), `there was ${had ? 'one' : 'none'}: ${sandbox}`);
  await person.look('discarded');

  await person.command('CleverAgents: Append a Fix to a Decision');
  await page.locator('.quick-input-widget:visible .monaco-list-row', { hasText: 'applied' }).first().click();
  await page.locator('.quick-input-widget:visible .monaco-list-row', { hasText: 'F401' }).first().click();
  await person.type('The import of sys stays');
  await page.locator('.monaco-dialog-box', { hasText: 'Append' }).waitFor();
  await person.look('append');
  await person.confirm('Append');
  const child = await until('a child plan adds to it', () => cli('plan', 'list').plans.find((one) => one.parent === plan), () => cli('plan', 'list').plans);
  check('a fix is appended to a decision of an applied plan, by a child plan', child.action.includes('fix-diagnostics'), child);
  await person.look('appended');
}
