// A plan as a person meets it in VS Code. Prints a line per fact and leaves with 0 when all of them hold.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dieAndComeBack, lookAround, rollBack, takeBackAndGiveUp } from './more.mjs';
import { Person, until } from './person.mjs';

const { AGENTS, AGENTS_WORLD: world, RUFF } = process.env;
const repo = join(world, 'cafe');
const file = join(repo, 'app/main.py');

const say = (line) => console.log(line);

function check(what, holds, more = '') {
  if (!holds) throw new Error(`${what}: ${typeof more === 'string' ? more : JSON.stringify(more)}`);
  say(`ok - ${what}`);
}

const run = (program, args, cwd = world) => execFileSync(program, args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();
const git = (...args) => run('git', args, repo);
const cli = (...args) => JSON.parse(run(AGENTS, ['--format', 'json', ...args])).data;

// --- the world --------------------------------------------------------------------------------------------------------

mkdirSync(join(repo, 'app'), { recursive: true });
writeFileSync(file, 'import os\nimport sys\n\n\ndef main():\n    print(f"hello", sys.argv)\n');
writeFileSync(join(repo, 'app/menu.py'), 'import json\n\n\ndef menu():\n    return {"tea": 3}\n');
git('init', '-q', '-b', 'main');
git('config', 'user.name', 'Ada Example');
git('config', 'user.email', 'ada@example.invalid');
git('add', '-A');
git('commit', '-q', '-m', 'start');
writeFileSync(join(world, 'ruff.yaml'), `name: local/ruff\nlanguages: [python]\ncommand: "${RUFF}"\nargs: [server]\n`);
cli('lsp', 'add', '--config', join(world, 'ruff.yaml'));

// --- the way ----------------------------------------------------------------------------------------------------------

const person = await Person.sitDown(repo);
const { page } = person;
let plan;
const standing = () => {
  const { phase, state, awaiting } = cli('plan', 'status', plan);
  return `${phase}/${state}+${awaiting?.kind ?? 'nothing'}`;
};
const rests = () => until('the plan comes to rest', () => !standing().endsWith('+nothing'), standing);

async function trustAndFindTheProgram() {
  await page.locator('.statusbar-item', { hasText: 'Restricted Mode' }).waitFor();
  await page.locator('.activitybar .action-label[aria-label^="CleverAgents"]').click();
  await page.getByText('CleverAgents waits until you trust the folder').waitFor();
  check('without trust nothing is started, and the view says why', true);
  await person.look('untrusted');
  await page.getByText('Manage Workspace Trust').first().click();
  await page.locator('.workspace-trust-editor .monaco-button', { hasText: 'Trust' }).first().click();
  await page.getByText('was not found on the PATH').first().waitFor();
  check('with trust it looks for the program, and says what to do when there is none', true);
  await person.look('no-program');
  await person.closeNotifications();
  await person.command('CleverAgents: Set the Path of the Program');
  await person.type(AGENTS);
  await page.getByText('There is no plan yet').waitFor();
  check('the setting brings the server up; the empty view says what to do next', true);
  await person.look('empty');
}

async function setUpAndStart() {
  await person.command('CleverAgents: Set Up This Folder');
  await person.notification('The folder is ready').waitFor();
  check('the folder is a resource with a project', cli('project', 'list').projects.some(({ name }) => name === 'local/cafe'));
  await person.look('set-up');
  await person.notification('The folder is ready').locator('.monaco-button', { hasText: 'Start a Plan' }).click();
  await person.choose('builtin/fix-diagnostics');
  await person.choose('review');
  plan = (await until('the plan is made', () => cli('plan', 'list').plans[0])).id;
  await until('the plan waits', () => standing() === 'strategize/processing+decision', standing);
  check('a plan was started by clicks', true);
  await person.row('Plans', 'fix-diagnostics · cafe').waitFor();
  await person.notification('asks:').waitFor();
  check('it is in the view, and a message says that it asks', true);
  await person.look('asks');
  await person.closeNotifications();
}

async function answerEverything() {
  await person.open('main.py');
  await person.lens('decision waits').waitFor();
  check('a lens stands over the line that a decision is about', true);
  await person.look('lens-waits');
  await person.lens('decision waits').click();
  await page.locator('.quick-input-list .monaco-list-row', { hasText: 'proposed, confidence' }).waitFor();
  await person.look('answer');
  await person.choose('proposed, confidence');
  for (let answered = 1; standing() !== 'execute/complete+apply_approval'; answered += 1) {
    check('there is an end to the questions', answered < 12);
    const before = await until('the next question', () => {
      const { decisions } = cliPending();
      return decisions[0] ?? (standing().endsWith('apply_approval') && { decision_id: '' });
    }, standing);
    if (before.decision_id === '') break;
    await person.command('CleverAgents: Answer a Decision That Waits');
    const many = cliPending().decisions.length > 1;
    if (many) await page.locator('.quick-input-list .monaco-list-row').first().click();
    await person.choose('proposed, confidence');
    await until('the answer is taken', () => !cliPending().decisions.some((one) => one.decision_id === before.decision_id) || standing().endsWith('apply_approval'), standing);
    await rests();
  }
  check('all questions were answered from the palette', true);
}

// What waits, from the plan's own tree: the command line has no list of it.
function cliPending() {
  const { tree } = cli('plan', 'tree', plan);
  const decisions = [];
  const stack = tree ? [tree] : [];
  for (let node = stack.pop(); node; node = stack.pop()) {
    if (node.status === 'pending') decisions.push(node);
    stack.push(...node.children);
  }
  return { decisions };
}

async function seeWhy() {
  await person.open('main.py');
  check('the file is untouched', readFileSync(file, 'utf8').includes('import os'));
  await person.lens('apply').waitFor();
  await person.lens('correct…').waitFor();
  check('lenses offer to apply the plan and to correct a decision', true);
  await person.look('lenses');
  const hover = await person.hover('hello');
  check('hover tells the decision that will change the line', (await hover.innerText()).includes('F541'), await hover.innerText());
  await person.look('hover');
  await hover.getByText('Explain', { exact: true }).first().click();
  await person.planPage.locator('h1').waitFor();
  await person.planPage.locator('.detail h3').waitFor();
  check('a link of the hover opens the page of the plan at the decision', (await person.planPage.locator('.detail').innerText()).includes('F541'));
  await person.look('page');
  await person.planPage.locator('.node', { hasText: 'F401' }).first().click();
  await until('a click in the picture shows the decision', async () => (await person.planPage.locator('.detail').innerText()).includes('F401'));
  check('a click in the picture shows the decision', true);
  const words = await person.planPage.locator('main').innerText();
  check('the page shows no raw id', !words.includes(plan), words);
  await person.look('page-decision');
  await person.command('View: Close All Editors');
}

async function seeTheViews() {
  const row = person.row('Plans', 'fix-diagnostics · cafe');
  await row.click();
  await row.locator('.monaco-tl-twistie').click();
  await person.row('Plans', 'main.py').waitFor();
  await person.row('Decisions', 'What should be done').waitFor();
  check('the views show files, checkpoints and the tree of decisions', true);
  const shown = await page.locator('.sidebar').innerText();
  check('the views show no raw id', !/[0-9A-HJKMNP-TV-Z]{26}/.test(shown), shown);
  await person.look('views');
}

async function review() {
  await person.command('CleverAgents: Review a Plan Change by Change');
  await page.locator('.review-widget', { hasText: 'Change 1 of' }).first().waitFor();
  check('the review opens the first change in the diff, with its thread', true);
  await person.look('review');
  await person.command('Comments: Focus on Comments View');
  await page.locator('.comments-panel .monaco-list-row', { hasText: 'main.py' }).first().waitFor();
  const listed = await page.locator('.comments-panel').innerText();
  check('the list of comments names files, not hashes', !/[0-9a-f]{16}/.test(listed), listed);
  await person.look('comments');
  await person.command('View: Toggle Panel Visibility');
  await page.locator('.review-widget:visible .codicon-check').first().click();
  await page.locator('.review-widget', { hasText: 'Change 2 of' }).first().waitFor();
  await page.locator('.statusbar-item', { hasText: '1 of 3 reviewed' }).waitFor();
  check('accepting a change goes on to the next and counts', true);
  await person.command('CleverAgents: Reject This Change');
  await person.look('reject');
  await person.type('The f string stays: a name comes into it later');
  await page.locator('.statusbar-item', { hasText: '2 of 3 reviewed, 1 rejected' }).waitFor();
  await page.locator('.review-widget', { hasText: 'Change 3 of' }).first().waitFor();
  await person.command('CleverAgents: Accept This Change');
  await person.notification('All 3 changes are reviewed').waitFor();
  check('a rejection is kept until it is sent', standing() === 'execute/complete+apply_approval', standing());
  await person.look('reviewed');
  await person.notification('All 3 changes are reviewed').locator('.monaco-button', { hasText: 'Send the Rejections' }).click();
  await until('the decision behind the change is corrected', () => cli('plan', 'status', plan).attempt === 2, standing);
  await rests();
  const { tree } = cli('plan', 'tree', plan);
  const corrected = tree.children.find(({ question }) => question.includes('F541'));
  check('a sent rejection corrected the choice behind the change', corrected?.chosen.startsWith('The f string stays'), tree.children);
  await person.look('sent');
}

async function settle() {
  for (let answered = 0; standing() !== 'execute/complete+apply_approval'; answered += 1) {
    check('there is an end to the questions', answered < 12);
    const now = () => `${standing()} ${cliPending().decisions.map((one) => one.decision_id)}`;
    const before = now();
    if (standing().endsWith('+decision')) {
      await person.command('CleverAgents: Answer a Decision That Waits');
      if (cliPending().decisions.length > 1) await page.locator('.quick-input-list .monaco-list-row').first().click();
      await person.choose('proposed, confidence');
    } else if (standing().endsWith('+execute_approval') || standing().endsWith('+rollback')) {
      await person.command('CleverAgents: Execute or Go On With a Plan');
    }
    await until('it goes on', () => now() !== before, now);
    await rests();
  }
}

async function correctTheRest() {
  const { files } = cli('plan', 'diff', plan);
  check('what was rejected is not among the changes any more', !files.some(({ patch }) => patch.includes('+    print("hello"')), files);
  await person.command('View: Close All Editors');
  await person.open('main.py');
  const hover = await person.hover('import os');
  await hover.getByText('Correct…', { exact: true }).first().click();
  await page.locator('.quick-input-list .monaco-list-row', { hasText: 'In your own words' }).waitFor();
  await person.look('correct');
  await person.choose('Disable for this line');
  await page.locator('.monaco-dialog-box', { hasText: 'taken back' }).waitFor();
  await person.look('correct-consequences');
  await person.confirm('Correct');
  await until('the correction began', () => cli('plan', 'status', plan).attempt === 3, standing);
  await rests();
  await settle();
  const patches = cli('plan', 'diff', plan).files.map(({ patch }) => patch).join('');
  check('a decision is corrected by clicks: its changes are others', patches.includes('+import os  # noqa: F401'), patches);
  await person.command('CleverAgents: Show Replaced Decisions');
  await person.row('Decisions', 'replaced').waitFor();
  await person.look('replaced');
}

async function apply() {
  const start = git('rev-parse', 'HEAD');
  await person.command('CleverAgents: Apply a Plan');
  await page.locator('.monaco-dialog-box', { hasText: 'Apply fix-diagnostics' }).waitFor();
  await person.look('apply');
  await person.confirm('Apply');
  await until('the plan is applied', () => standing() === 'apply/applied+nothing', standing);
  check('the plan is applied as one commit', git('rev-parse', 'HEAD^') === start);
  await person.notification('was applied').waitFor();
  await person.look('applied');
}

try {
  await trustAndFindTheProgram();
  await setUpAndStart();
  await answerEverything();
  await seeWhy();
  await seeTheViews();
  await review();
  await settle();
  await correctTheRest();
  const desk = { person, cli, plan, check, repo, world, standing, rests };
  await lookAround(desk);
  await dieAndComeBack(desk);
  await rollBack(desk);
  await settle();
  await apply();
  await takeBackAndGiveUp(desk);
  check('the page asked no host but its own', person.strangers.size === 0, [...person.strangers].join(', '));
  say('VS Code: all of this holds');
} catch (error) {
  say(`FAILED - ${error.stack ?? error}`);
  if (plan) say(`the plan: ${standing()}`);
  await person.look('failed').catch(() => undefined);
  process.exitCode = 1;
} finally {
  await person.getUp();
}
