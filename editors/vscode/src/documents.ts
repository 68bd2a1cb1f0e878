// Texts that are not on disk: the sides of diffs, pages that links lead to, and results of commands. Sides keep their file
// name, so that the editor knows their language.
import * as vscode from 'vscode';
import type { CorrectionDiff, Diff, DiffedFile } from './api.ts';
import { planName } from './model/words.ts';
import type { Plans } from './plans.ts';
import type { Server } from './server.ts';

export const SCHEME = 'agents';
const RESULT = 'cleveragents-result';
const NOTHING = 'none';

/** Whether a document is the page of a plan, a decision or a correction, as the server writes it. */
const isPage = (uri: vscode.Uri): boolean => uri.scheme === SCHEME && uri.query === '' && /^\/(plan|decision|correction)\//.test(uri.path);

/** One side of a change, by the hash of its text; people see the path only. */
export function sideUri(hash: string | null | undefined, path: string, plan: string, side: 'before' | 'after'): vscode.Uri {
  return vscode.Uri.from({ scheme: SCHEME, path: `/${path}`, query: new URLSearchParams({ text: hash ?? NOTHING, plan, side }).toString() });
}

/** The two sides of a file of a plan. */
export const sides = (plan: string, file: DiffedFile): { before: vscode.Uri; after: vscode.Uri } => ({
  before: sideUri(file.base_hash, file.old_path ?? file.path, plan, 'before'),
  after: sideUri(file.sandbox_hash, file.path, plan, 'after'),
});

export class Documents implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly disposables: vscode.Disposable[];
  private readonly results = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly server: Server;

  constructor(server: Server, plans: Plans) {
    this.server = server;
    this.disposables = [
      vscode.workspace.onDidOpenTextDocument((document) => {
        if (isPage(document.uri)) void vscode.languages.setTextDocumentLanguage(document, document.uri.path.endsWith('/diff') ? 'diff' : 'markdown');
      }),
      plans.onTouch(() => {
        for (const { uri } of vscode.workspace.textDocuments) if (isPage(uri)) this.changed.fire(uri);
      }),
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      vscode.workspace.registerTextDocumentContentProvider(RESULT, this),
      vscode.workspace.onDidCloseTextDocument(({ uri }) => void this.results.delete(uri.toString())),
    ];
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    if (uri.scheme === RESULT) return this.results.get(uri.toString()) ?? '';
    if (isPage(uri)) return this.server.content(`${SCHEME}:${uri.path}`);
    const hash = new URLSearchParams(uri.query).get('text') ?? NOTHING;
    if (hash === NOTHING) return '';
    return this.server.content(vscode.Uri.from({ scheme: SCHEME, path: `/text/${hash}${uri.path}` }).toString());
  }

  /** Shows the result of a command beside what is open. */
  async showResult(title: string, text: string, language: string): Promise<void> {
    const uri = vscode.Uri.from({ scheme: RESULT, path: `/${title.replaceAll('/', '-')}` });
    this.results.set(uri.toString(), text);
    this.changed.fire(uri);
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.languages.setTextDocumentLanguage(document, language);
    await vscode.window.showTextDocument(document, { preview: true });
  }

  dispose(): void {
    for (const one of [...this.disposables, this.changed]) one.dispose();
  }
}

/** All that a plan changes, in the editor's own view of many diffs. */
export async function showDiff(plan: { readonly id: string; readonly action: string; readonly project: string }, diff: Diff): Promise<void> {
  const texts = diff.files.filter((file) => !file.binary);
  if (texts.length === 0) {
    const what = diff.files.length > 0 ? `only changes files that are no text: ${diff.files.map((file) => file.path).join(', ')}` : 'changes nothing yet';
    void vscode.window.showInformationMessage(`The plan ${planName(plan)} ${what}.`);
    return;
  }
  const { insertions, deletions } = diff.diff_summary;
  const one = texts.length === 1 ? texts[0] : undefined;
  if (one) return showFile(plan, one);
  const resources = texts.map((file) => {
    const { before, after } = sides(plan.id, file);
    return [after, before, after] as const;
  });
  await vscode.commands.executeCommand('vscode.changes', `${planName(plan)} (+${insertions} -${deletions})`, resources);
}

/** What a plan changes in one file; `line` is shown. */
export async function showFile(
  plan: { readonly id: string; readonly action: string; readonly project: string },
  file: DiffedFile,
  line?: number,
): Promise<void> {
  const { before, after } = sides(plan.id, file);
  const name = file.path.slice(file.path.lastIndexOf('/') + 1);
  const options: vscode.TextDocumentShowOptions = { preview: true };
  if (line !== undefined) options.selection = new vscode.Range(line, 0, line, 0);
  await vscode.commands.executeCommand('vscode.diff', before, after, `${name} (${planName(plan)}, ${file.change})`, options);
}

/** What a correction made of the files. */
export async function showCorrection(found: CorrectionDiff): Promise<void> {
  const changed = found.comparison.filter((file) => file.changed);
  const { guidance } = found.correction_diff;
  const title = `Correction: ${guidance.length > 40 ? `${guidance.slice(0, 39)}…` : guidance}`;
  if (changed.length === 0) {
    void vscode.window.showInformationMessage(
      found.correction_diff.in_progress
        ? 'The correction has changed nothing yet: its plan is still at it, or waits for you.'
        : 'The correction changed no file.',
    );
    return;
  }
  const resources = changed.map((file) => {
    const before = sideUri(file.before_hash, file.file, found.plan_id, 'before');
    const after = sideUri(file.after_hash, file.file, found.plan_id, 'after');
    return [after, before, after] as const;
  });
  const one = changed.length === 1 ? resources[0] : undefined;
  if (one) await vscode.commands.executeCommand('vscode.diff', one[1], one[2], `${changed[0]?.file}: ${title}`);
  else await vscode.commands.executeCommand('vscode.changes', title, resources);
}
