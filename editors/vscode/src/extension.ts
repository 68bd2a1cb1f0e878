// Where the extension begins: everything is made here, once, and handed to those who need it.
import * as vscode from 'vscode';
import * as decisionCommands from './commands/decisions.ts';
import { catalogue, entryId, runOperation } from './commands/operation.ts';
import * as planCommands from './commands/plans.ts';
import { type Context, subjectOf } from './context.ts';
import { Documents } from './documents.ts';
import { notify } from './notify.ts';
import { Pages } from './page/panel.ts';
import { Pick } from './pick.ts';
import { Plans } from './plans.ts';
import { Reviews } from './review/reviews.ts';
import { messageOf, Server, setting } from './server.ts';
import { StatusBar } from './status.ts';
import { DecisionsView } from './views/decisions.ts';
import { PlansView } from './views/plans.ts';

type Handler = (context: Context, ...given: unknown[]) => Promise<unknown>;

/** Commands of the server that lenses, actions and hovers carry, as this extension shows them. */
const TAKEN_OVER: Readonly<Record<string, Handler>> = {
  'agents.plan.explain': decisionCommands.explain,
  'agents.plan.correct': decisionCommands.correct,
  'agents.plan.prompt': decisionCommands.answer,
  'agents.decision.answer': decisionCommands.answer,
  'agents.plan.diff': planCommands.diff,
  'agents.plan.apply': planCommands.apply,
  'agents.plan.revert': planCommands.revert,
  'agents.plan.rollback': planCommands.rollback,
  'agents.plan.cancel': planCommands.cancel,
  'agents.plan.execute': planCommands.execute,
  'agents.plan.use': planCommands.useHere,
  'agents.plan.correction-diff': decisionCommands.correctionDiff,
  'agents.plan.status': planCommands.openPlan,
  'agents.plan.errors': planCommands.openPlan,
};

/** The extension's own commands, without their prefix. */
const COMMANDS: Readonly<Record<string, Handler>> = {
  use: planCommands.use,
  setUp: planCommands.setUp,
  openPlan: planCommands.openPlan,
  choosePlan: planCommands.choosePlan,
  execute: planCommands.execute,
  apply: planCommands.apply,
  diff: planCommands.diff,
  diffFile: planCommands.diffFile,
  guide: planCommands.guide,
  rollback: planCommands.rollback,
  revert: planCommands.revert,
  cancel: planCommands.cancel,
  discard: planCommands.discard,
  answer: decisionCommands.answer,
  explain: decisionCommands.explain,
  explainLine: decisionCommands.explainLine,
  correct: decisionCommands.correct,
  append: (context, given) => decisionCommands.correct(context, { ...subjectOf(given), mode: 'append' }),
  correctionDiff: decisionCommands.correctionDiff,
  goToPlace: decisionCommands.goToPlace,
  'review.start': async (context, given) => {
    const plan = await planCommands.planOf(context, given, 'Which plan shall be reviewed?', (one) => one.phase === 'execute', 'No plan has changes to review.');
    if (plan) await context.reviews.start(plan);
  },
  'review.next': ({ reviews }) => reviews.go(1),
  'review.previous': ({ reviews }) => reviews.go(-1),
  'review.accept': ({ reviews }, given) => reviews.accept(given),
  'review.reject': ({ reviews }, given) => reviews.reject(given),
  'review.clear': ({ reviews }, given) => reviews.clear(given),
  'review.explain': ({ reviews }, given) => reviews.explain(given),
  'review.send': ({ reviews }) => reviews.send(),
  'review.finish': ({ reviews }) => reviews.finish(),
  refresh: ({ plans }) => plans.refresh(),
  showSuperseded: ({ decisions }) => decisions.showSuperseded(true),
  hideSuperseded: ({ decisions }) => decisions.showSuperseded(false),
  copyId: async (_, given) => {
    const { decision, plan } = subjectOf(given);
    await vscode.env.clipboard.writeText(decision ?? plan ?? '');
  },
  showOutput: async ({ server }) => server.output.show(),
  restart: ({ server }) => server.start(),
  setServerPath,
  openWalkthrough: () => Promise.resolve(vscode.commands.executeCommand('workbench.action.openWalkthrough', 'cleveragents.cleveragents#start', false)),
  menu,
};

export async function activate(extension: vscode.ExtensionContext): Promise<void> {
  const contextNow: { current?: Context } = {};
  const server = new Server({
    executeCommand: async (command, args, next) => {
      const handler = TAKEN_OVER[command];
      if (handler && contextNow.current) return guarded(contextNow.current, handler, args);
      return next(command, args);
    },
  });
  const plans = new Plans(server);
  const decisions = new DecisionsView(server, plans);
  const pages = new Pages(extension.extensionUri);
  const reviews = new Reviews(server, plans, extension.workspaceState);
  const context: Context = {
    server, plans, decisions, pages, reviews, documents: new Documents(server, plans), pick: new Pick(server, plans),
  };
  contextNow.current = context;
  pages.begin(context);
  extension.subscriptions.push(
    server, plans, decisions, pages, reviews, context.documents,
    new PlansView(server, plans), new StatusBar(server, plans), notify(context),
    vscode.workspace.onDidGrantWorkspaceTrust(() => void server.start()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration('cleveragents.server')) void server.start();
    }),
    ...Object.entries(COMMANDS).map(([name, handler]) =>
      vscode.commands.registerCommand(`cleveragents.${name}`, (...given: unknown[]) => guarded(context, handler, given))),
    ...catalogue.map((entry) =>
      vscode.commands.registerCommand(entryId(entry), () => guarded(context, () => runOperation(context, entry), []))),
  );
  await vscode.commands.executeCommand('setContext', 'cleveragents.server', 'starting');
  // The editor need not wait for the server.
  void server.start();
}

/** Runs a command; what it refuses is said to the person. */
async function guarded(context: Context, handler: Handler, given: unknown[]): Promise<unknown> {
  try {
    return await handler(context, ...given);
  } catch (error) {
    const { suggestions = [] } = ((error as { data?: { suggestions?: string[] } }).data ?? {});
    const help = suggestions.length > 0 ? ` Try: ${suggestions.join(' or ')}` : '';
    context.server.output.error(messageOf(error));
    void vscode.window.showErrorMessage(`CleverAgents: ${messageOf(error)}${help}`);
    return undefined;
  }
}

async function setServerPath({ server }: Context): Promise<void> {
  const chosen = await vscode.window.showInputBox({
    prompt: 'Where is the program agents? Empty: it is looked for on the PATH.',
    value: setting('server.path', ''), placeHolder: '/home/you/.cargo/bin/agents', ignoreFocusOut: true,
  });
  if (chosen === undefined) return;
  const before = setting('server.path', '');
  await vscode.workspace.getConfiguration('cleveragents').update('server.path', chosen.trim(), vscode.ConfigurationTarget.Global);
  // A change starts the server; the same path again is a wish to try again.
  if (chosen.trim() === before) await server.start();
}

/** What waits and what can be done, from the status bar. */
async function menu(context: Context): Promise<void> {
  const { plans } = context;
  const entries: (vscode.QuickPickItem & { readonly command?: string; readonly given?: object })[] = [];
  if (plans.pending.length > 0) {
    entries.push({ label: '$(comment-discussion) Answer…', description: `${plans.pending.length} decisions wait`, command: 'answer' });
  }
  for (const plan of plans.open.filter((one) => one.awaiting === 'apply_approval')) {
    const { planName } = await import('./model/words.ts');
    entries.push({ label: `$(checklist) Review ${planName(plan)}`, command: 'review.start', given: { plan: plan.id } });
    entries.push({ label: `$(check-all) Apply ${planName(plan)}…`, command: 'apply', given: { plan: plan.id } });
  }
  entries.push(
    { label: '$(add) Start a Plan…', command: 'use' },
    { label: '$(open-preview) Open a Plan…', command: 'openPlan' },
    { label: '$(list-tree) Show the Plans', command: 'plans.focus' },
    { label: '$(output) Show the Output', command: 'showOutput' },
  );
  const chosen = await vscode.window.showQuickPick(entries, { placeHolder: 'CleverAgents' });
  if (chosen?.command) await vscode.commands.executeCommand(`cleveragents.${chosen.command}`, chosen.given);
}

export function deactivate(): void {
  // What was subscribed is disposed of by the editor; the server goes with it.
}
