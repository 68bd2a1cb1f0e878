// Pages of plans: one tab each, kept up to date by the server's events.
import { randomBytes } from 'node:crypto';
import * as vscode from 'vscode';
import { openPlace } from '../commands/decisions.ts';
import type { Context } from '../context.ts';
import { showCorrection } from '../documents.ts';
import { brief, planName } from '../model/words.ts';
import { messageOf } from '../server.ts';
import { render } from './render.ts';

const TYPE = 'cleveragents.plan';

interface Message {
  readonly act: string;
  readonly decision?: string;
  readonly guidance?: string;
  readonly checkpoint?: string;
  readonly path?: string;
  readonly nth?: string;
  readonly room?: number;
}

/** Acts of the page that are commands with the plan and what else the page said. */
const COMMANDS: ReadonlySet<string> = new Set([
  'answer', 'execute', 'apply', 'diff', 'guide', 'revert', 'cancel', 'correct', 'append', 'correctionDiff', 'rollback',
]);

class Page implements vscode.Disposable {
  private selected: string | undefined;
  private superseded = false;
  private room: number | undefined;
  private drawing = false;
  private again = false;
  private reveal: string | undefined;
  readonly panel: vscode.WebviewPanel;
  private readonly context: Context;
  private readonly plan: string;

  constructor(panel: vscode.WebviewPanel, context: Context, plan: string, extension: vscode.Uri) {
    this.panel = panel;
    this.context = context;
    this.plan = plan;
    const dist = vscode.Uri.joinPath(extension, 'dist');
    const media = vscode.Uri.joinPath(extension, 'media');
    panel.webview.options = { enableScripts: true, localResourceRoots: [dist, media] };
    panel.iconPath = vscode.Uri.joinPath(media, 'activity.svg');
    panel.webview.html = frame(panel.webview, dist, media);
    panel.webview.onDidReceiveMessage((message: Message) => void this.act(message).catch((error) => {
      void vscode.window.showErrorMessage(`CleverAgents: ${messageOf(error)}`);
    }));
  }

  select(decision: string | undefined): void {
    if (decision !== undefined) this.selected = this.reveal = decision;
    void this.draw();
  }

  private async act({ act, decision, guidance, checkpoint, path, nth, room }: Message): Promise<void> {
    const { server } = this.context;
    if (act === 'ready') {
      this.room = room;
      return this.draw();
    }
    if (act === 'select') return this.select(decision);
    if (act === 'superseded') {
      this.superseded = !this.superseded;
      return this.draw();
    }
    if (act === 'file') return void (await vscode.commands.executeCommand('cleveragents.diffFile', this.plan, path));
    if (act === 'review') return void (await vscode.commands.executeCommand('cleveragents.review.start', { plan: this.plan }));
    if (act === 'place' && decision !== undefined) {
      return openPlace(this.context, await server.call('agents.plan.explain', { decision }), Number(nth ?? 0));
    }
    if (COMMANDS.has(act)) {
      await vscode.commands.executeCommand(`cleveragents.${act}`, { plan: this.plan, decision, guidance, checkpoint });
    }
  }

  /** Draws what is now; what happens meanwhile is one more drawing. */
  async draw(): Promise<void> {
    if (this.drawing) {
      this.again = true;
      return;
    }
    this.drawing = true;
    try {
      do {
        this.again = false;
        await this.drawOnce();
      } while (this.again);
    } catch (error) {
      this.context.server.output.warn(`The page of a plan was not drawn: ${messageOf(error)}`);
    } finally {
      this.drawing = false;
    }
  }

  private async drawOnce(): Promise<void> {
    const { server, plans } = this.context;
    const id = this.plan;
    if (!plans.find(id)) await plans.refresh();
    const plan = plans.find(id);
    if (!plan) return;
    const [status, tree, artifacts, events] = await Promise.all([
      server.call('agents.plan.status', { plan: id }),
      server.call('agents.plan.tree', { plan: id, show_superseded: this.superseded }),
      server.call('agents.plan.artifacts', { plan: id }),
      server.call('agents.events.after', { plan: id, sequence: 0, limit: 2000 }),
    ]);
    const wanted = this.selected ?? status.awaiting?.decision_id ?? undefined;
    const selected = wanted === undefined ? null
      : await server.call('agents.plan.explain', { decision: wanted, show_reasoning: true }).catch(() => null);
    this.panel.title = brief(planName(plan), 40);
    const html = render({
      plan, status, tree: tree.tree ?? null, artifacts, events: events.events, selected, superseded: this.superseded, now: Date.now(), room: this.room,
    });
    await this.panel.webview.postMessage({ html, plan: id, reveal: this.reveal });
    this.reveal = undefined;
  }

  dispose(): void {
    this.panel.dispose();
  }
}

/** What does not change on a page. Scripts and styles are the extension's own files; nothing else is loaded. */
function frame(webview: vscode.Webview, dist: vscode.Uri, media: vscode.Uri): string {
  const nonce = randomBytes(16).toString('base64');
  const script = webview.asWebviewUri(vscode.Uri.joinPath(dist, 'page.js'));
  const style = webview.asWebviewUri(vscode.Uri.joinPath(media, 'page.css'));
  return `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">
    <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src ${webview.cspSource}; script-src 'nonce-${nonce}'">
    <meta name="viewport" content="width=device-width"><link rel="stylesheet" href="${style}"></head>
    <body><main id="root" aria-live="polite"><p class="quiet">Reading the plan…</p></main>
    <script nonce="${nonce}" src="${script}"></script></body></html>`;
}

export class Pages implements vscode.Disposable {
  private readonly pages = new Map<string, Page>();
  private readonly corrections = new Map<string, string>();
  private readonly disposables: vscode.Disposable[] = [];
  private readonly extension: vscode.Uri;
  private context: Context | undefined;

  constructor(extension: vscode.Uri) {
    this.extension = extension;
  }

  /** Begins to follow the plans. */
  begin(context: Context): void {
    this.context = context;
    this.disposables.push(
      context.plans.onTouch((touched) => {
        for (const [plan, page] of this.pages) if (touched.has(plan)) void page.draw();
      }),
      context.server.onState((state) => {
        if (state === 'ready') for (const page of this.pages.values()) void page.draw();
      }),
      context.server.onEvent((event) => {
        if (event.event_type === 'correction.applied' && event.plan_id) void this.corrected(event.plan_id);
      }),
      vscode.window.registerWebviewPanelSerializer(TYPE, {
        deserializeWebviewPanel: async (panel, state: { readonly plan?: string } | undefined) => {
          if (state?.plan === undefined) panel.dispose();
          else this.adopt(panel, state.plan);
        },
      }),
    );
  }

  async show(plan: string, decision?: string): Promise<void> {
    const known = this.pages.get(plan);
    if (known) {
      known.panel.reveal(undefined, true);
      known.select(decision);
      return;
    }
    const column = vscode.window.activeTextEditor ? vscode.ViewColumn.Beside : vscode.ViewColumn.Active;
    const panel = vscode.window.createWebviewPanel(TYPE, 'Plan', { viewColumn: column, preserveFocus: true }, { retainContextWhenHidden: false });
    this.adopt(panel, plan).select(decision);
  }

  private adopt(panel: vscode.WebviewPanel, plan: string): Page {
    if (!this.context) throw new Error('pages are shown after they began');
    const page = new Page(panel, this.context, plan, this.extension);
    this.pages.set(plan, page);
    panel.onDidDispose(() => this.pages.delete(plan));
    panel.onDidChangeViewState(() => panel.visible && void page.draw());
    return page;
  }

  /** Offers to show what a correction changed once it is done. */
  expectCorrection(plan: string, correction: string): void {
    this.corrections.set(plan, correction);
  }

  private async corrected(plan: string): Promise<void> {
    const correction = this.corrections.get(plan);
    this.corrections.delete(plan);
    if (correction === undefined || !this.context) return;
    const said = await vscode.window.showInformationMessage('The correction is done.', 'Show What Changed');
    if (said) await showCorrection(await this.context.server.call('agents.plan.correction-diff', { correction }));
  }

  dispose(): void {
    for (const one of [...this.disposables, ...this.pages.values()]) one.dispose();
  }
}
