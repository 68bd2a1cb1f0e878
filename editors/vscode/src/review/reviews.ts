// Reviewing a plan change by change: a thread in the diff for each, with what a person thinks of it. Rejections wait until
// they are sent: each is a correction of the decision behind the change, and none is sent while a worker is at the plan.
import * as vscode from 'vscode';
import type { Diff, Plan } from '../api.ts';
import { showFile, sides } from '../documents.ts';
import { isRunning } from '../model/look.ts';
import { type Change, changesOf, decisionBehind, type Mark, type Marks, step, tally, tallyWords, toSend } from '../model/review.ts';
import { brief, count, planName } from '../model/words.ts';
import type { Plans } from '../plans.ts';
import { messageOf, type Server } from '../server.ts';

interface Review {
  readonly plan: Plan;
  readonly diff: Diff;
  readonly changes: readonly Change[];
  readonly threads: ReadonlyMap<string, vscode.CommentThread>;
  current: string | undefined;
}

const stateKey = (plan: string) => `cleveragents.review.${plan}`;

export class Reviews implements vscode.Disposable {
  private readonly controller = vscode.comments.createCommentController('cleveragents.review', 'CleverAgents Review');
  private readonly item = vscode.window.createStatusBarItem('cleveragents.review', vscode.StatusBarAlignment.Left, 39);
  private readonly disposables: vscode.Disposable[];
  private review: Review | undefined;
  private sending = false;
  /** Plans whose rejections go out as soon as nobody works on them. */
  private readonly due = new Set<string>();
  private readonly server: Server;
  private readonly plans: Plans;
  private readonly memory: vscode.Memento;

  constructor(server: Server, plans: Plans, memory: vscode.Memento) {
    this.server = server;
    this.plans = plans;
    this.memory = memory;
    this.controller.options = {
      prompt: 'Why is this change wrong?',
      placeHolder: 'Say why this change is wrong. The decision behind it is corrected with your words.',
    };
    this.item.name = 'CleverAgents Review';
    this.disposables = [
      this.controller,
      this.item,
      plans.onTouch((touched) => void this.follow(touched)),
      plans.onChange(() => void this.sendDue()),
    ];
  }

  private marks(plan: string): Marks {
    return this.memory.get<Marks>(stateKey(plan), {});
  }

  /** Changes without a mark in a review that was begun; 0 where there is none. */
  unreviewed(plan: string): number {
    return this.review?.plan.id === plan ? tally(this.review.changes, this.marks(plan)).open : 0;
  }

  /** Opens the review of a plan at its first change without a mark. */
  async start(plan: Plan): Promise<void> {
    const diff = await this.server.call('agents.plan.diff', { plan: plan.id });
    const changes = changesOf(diff);
    if (changes.length === 0) {
      void vscode.window.showInformationMessage(`The plan ${planName(plan)} changes nothing that can be reviewed.`);
      return;
    }
    this.open(plan, diff, changes, undefined);
    await vscode.commands.executeCommand('setContext', 'cleveragents.reviewing', true);
    await this.go(1);
  }

  private open(plan: Plan, diff: Diff, changes: readonly Change[], current: string | undefined): void {
    this.clearThreads();
    const threads = new Map<string, vscode.CommentThread>();
    changes.forEach((change, nth) => {
      const file = diff.files.find((one) => one.path === change.file);
      if (!file) return;
      const last = Math.max(change.first, change.last);
      const at = new vscode.Range(change.first, 0, last, 0);
      const thread = this.controller.createCommentThread(sides(plan.id, file).after, at, [body(change)]);
      thread.canReply = true;
      thread.collapsibleState = vscode.CommentThreadCollapsibleState.Collapsed;
      thread.label = `Change ${nth + 1} of ${changes.length}`;
      threads.set(change.key, thread);
    });
    this.review = { plan, diff, changes, threads, current };
    this.draw();
  }

  private clearThreads(): void {
    for (const thread of this.review?.threads.values() ?? []) thread.dispose();
  }

  /** Shows the marks on threads and in the status bar. */
  private draw(): void {
    const { review } = this;
    if (!review) return this.item.hide();
    const marks = this.marks(review.plan.id);
    review.changes.forEach((change, nth) => {
      const thread = review.threads.get(change.key);
      if (!thread) return;
      const mark = marks[change.key];
      thread.contextValue = mark?.as ?? 'open';
      thread.state = mark ? vscode.CommentThreadState.Resolved : vscode.CommentThreadState.Unresolved;
      thread.label = `Change ${nth + 1} of ${review.changes.length} · ${markWords(mark)}`;
    });
    const found = tally(review.changes, marks);
    const unsent = toSend(review.changes, marks).length;
    this.item.text = `$(checklist) ${tallyWords(found)}`;
    this.item.command = unsent > 0 && found.open === 0 ? 'cleveragents.review.send' : 'cleveragents.review.next';
    this.item.tooltip = unsent > 0 && found.open === 0
      ? `Review of ${planName(review.plan)}: click to send ${count(unsent, 'rejection')}.`
      : `Review of ${planName(review.plan)}: click for the next change.`;
    this.item.accessibilityInformation = { label: `${tallyWords(found)}. ${this.item.tooltip}` };
    this.item.show();
  }

  /** The next or the previous change, those without a mark first. */
  async go(by: 1 | -1): Promise<void> {
    const { review } = this;
    if (!review) return;
    const change = step(review.changes, this.marks(review.plan.id), review.current, by);
    if (change) await this.show(review, change);
  }

  private async show(review: Review, change: Change): Promise<void> {
    review.current = change.key;
    const file = review.diff.files.find((one) => one.path === change.file);
    if (file) await showFile(review.plan, file, change.first);
    for (const [key, thread] of review.threads) {
      thread.collapsibleState = key === change.key
        ? vscode.CommentThreadCollapsibleState.Expanded : vscode.CommentThreadCollapsibleState.Collapsed;
    }
  }

  /** The change that a command is about: its thread's, else the current one. */
  private changeOf(given: unknown): { review: Review; change: Change; words: string } | undefined {
    const { review } = this;
    if (!review) return undefined;
    const reply = given as { readonly thread?: vscode.CommentThread; readonly text?: string } | undefined;
    const thread = reply?.thread ?? (given as vscode.CommentThread | undefined);
    const key = [...review.threads].find(([, one]) => one === thread)?.[0] ?? review.current;
    const change = review.changes.find((one) => one.key === key);
    return change && { review, change, words: reply?.thread ? (reply.text?.trim() ?? '') : '' };
  }

  private async mark(review: Review, change: Change, mark: Mark | undefined): Promise<void> {
    const { [change.key]: _, ...others } = this.marks(review.plan.id);
    await this.memory.update(stateKey(review.plan.id), mark ? { ...others, [change.key]: mark } : others);
    this.draw();
  }

  async accept(given: unknown): Promise<void> {
    const found = this.changeOf(given);
    if (!found) return;
    await this.mark(found.review, found.change, { as: 'accepted' });
    await this.onward(found.review, found.change);
  }

  async clear(given: unknown): Promise<void> {
    const found = this.changeOf(given);
    if (found) await this.mark(found.review, found.change, undefined);
  }

  /** Queues a correction of the decision behind a change. */
  async reject(given: unknown): Promise<void> {
    const found = this.changeOf(given);
    if (!found) return;
    const { review, change } = found;
    const reason = found.words || (await vscode.window.showInputBox({
      prompt: `Why is this change wrong? (${brief(change.reasons.join('; ') || change.file, 120)})`,
      placeHolder: 'Your words become the correction of the decision behind it', ignoreFocusOut: true,
      validateInput: (text) => (text.trim() === '' ? 'Say why in a few words.' : undefined),
    }))?.trim();
    if (!reason) return;
    const decision = await this.decisionOf(review, change);
    await this.mark(review, change, { as: 'rejected', reason, decision, sent: false });
    if (decision === null) {
      void vscode.window.showWarningMessage('No decision is on record for this change (somebody edited the sandbox). It is marked, but there is nothing to correct.');
    }
    await this.onward(review, change);
  }

  /** The decision to correct: the choice that the change carries out, as blame knows it, else as the tree lets guess. */
  private async decisionOf({ plan, diff }: Review, change: Change): Promise<string | null> {
    const file = diff.files.find((one) => one.path === change.file)?.sandbox_path;
    if (file != null) {
      const { segments } = await this.server.call('agents.plan.blame', { file });
      const strategy = segments.find((one) => change.decisions.includes(one.decision_id))?.strategy;
      if (strategy) return strategy.decision_id;
    }
    const { tree } = await this.server.call('agents.plan.tree', { plan: plan.id, show_superseded: true });
    return decisionBehind(tree, change);
  }

  async explain(given: unknown): Promise<void> {
    const found = this.changeOf(given);
    if (!found) return;
    const decision = found.change.decisions[0];
    if (decision !== undefined) await vscode.commands.executeCommand('cleveragents.explain', { decision });
    else void vscode.window.showInformationMessage('No decision is on record for this change: somebody edited the sandbox.');
  }

  private async onward(review: Review, from: Change): Promise<void> {
    const marks = this.marks(review.plan.id);
    const thread = review.threads.get(from.key);
    if (thread) thread.collapsibleState = vscode.CommentThreadCollapsibleState.Collapsed;
    if (tally(review.changes, marks).open > 0) return this.go(1);
    const rejections = toSend(review.changes, marks).length;
    if (rejections === 0) {
      const said = await vscode.window.showInformationMessage(`All ${count(review.changes.length, 'change')} are reviewed.`, 'Apply…');
      if (said) await vscode.commands.executeCommand('cleveragents.apply', { plan: review.plan.id });
      return;
    }
    const said = await vscode.window.showInformationMessage(
      `All ${count(review.changes.length, 'change')} are reviewed. ${count(rejections, 'decision')} will be corrected.`, 'Send the Rejections',
    );
    if (said) await this.send();
  }

  /** Sends the rejections: at once where nobody works on the plan, else when it comes to rest. */
  async send(): Promise<void> {
    const { review } = this;
    if (!review) return;
    const waiting = toSend(review.changes, this.marks(review.plan.id)).length;
    if (waiting === 0) {
      void vscode.window.showInformationMessage('There is no rejection to send.');
      return;
    }
    this.due.add(review.plan.id);
    if (this.isBusy(review.plan.id)) {
      void vscode.window.showInformationMessage(`The plan is being worked on. ${count(waiting, 'rejection')} will be sent when it pauses.`);
    }
    await this.sendDue();
  }

  private isBusy(plan: string): boolean {
    const now = this.plans.find(plan);
    return !now || isRunning(now);
  }

  private async sendDue(): Promise<void> {
    const { review } = this;
    if (this.sending || !review || !this.due.has(review.plan.id) || this.isBusy(review.plan.id)) return;
    this.sending = true;
    const id = review.plan.id;
    try {
      const marks = this.marks(id);
      const entry = toSend(review.changes, marks)[0];
      if (!entry) {
        this.due.delete(id);
        return;
      }
      const explained = await this.server.call('agents.plan.explain', { decision: entry.decision });
      if (explained.status === 'superseded') {
        void vscode.window.showWarningMessage(`“${brief(explained.question, 100)}” was decided anew meanwhile: look at its change again.`);
      } else {
        await this.server.call('agents.plan.correct', { decision: entry.decision, mode: 'revert', guidance: entry.guidance });
        vscode.window.setStatusBarMessage(`$(send) Correcting “${brief(explained.question, 80)}”`, 6000);
      }
      const sent = Object.fromEntries(entry.keys.flatMap((key) => {
        const mark = marks[key];
        return mark?.as === 'rejected' ? [[key, { ...mark, sent: true }]] : [];
      }));
      await this.memory.update(stateKey(id), { ...this.marks(id), ...sent });
      this.draw();
      await this.plans.refresh();
    } catch (error) {
      this.due.delete(id);
      void vscode.window.showErrorMessage(`A rejection could not be sent: ${messageOf(error)}`);
    } finally {
      this.sending = false;
    }
  }

  /** Shows what the plan changes now, where it is another than what is shown. */
  private async follow(touched: ReadonlySet<string>): Promise<void> {
    const { review } = this;
    if (!review || !touched.has(review.plan.id)) return;
    const plan = this.plans.find(review.plan.id);
    if (!plan || plan.state === 'applied' || plan.state === 'cancelled') return this.finish();
    if (isRunning(plan)) return;
    try {
      const diff = await this.server.call('agents.plan.diff', { plan: plan.id });
      const changes = changesOf(diff);
      const same = changes.length === review.changes.length && changes.every((change, at) => change.key === review.changes[at]?.key);
      if (same || this.review !== review) return;
      this.open(plan, diff, changes, review.current);
      const words = tallyWords(tally(changes, this.marks(plan.id)));
      // Whoever is at something else is not taken away from it.
      void vscode.window.showInformationMessage(`${planName(plan)} changes other lines now: ${words}.`, 'Next Change')
        .then((said) => (said ? this.go(1) : undefined));
    } catch (error) {
      this.server.output.warn(`The review was not brought up to date: ${messageOf(error)}`);
    }
  }

  async finish(): Promise<void> {
    this.clearThreads();
    this.review = undefined;
    this.item.hide();
    await vscode.commands.executeCommand('setContext', 'cleveragents.reviewing', false);
  }

  dispose(): void {
    this.clearThreads();
    for (const one of this.disposables) one.dispose();
  }
}

function markWords(mark: Mark | undefined): string {
  if (!mark) return 'not reviewed';
  if (mark.as === 'accepted') return '✓ accepted';
  return mark.sent ? `✗ rejected, sent: ${brief(mark.reason, 60)}` : `✗ rejected: ${brief(mark.reason, 60)}`;
}

function body(change: Change): vscode.Comment {
  const text = new vscode.MarkdownString();
  const reasons = [...new Set(change.reasons)];
  text.appendMarkdown('**').appendText(reasons.length > 0 ? reasons.join('; ') : 'Somebody edited the sandbox').appendMarkdown('**\n\n');
  text.appendText(`${change.file}: ${count(change.insertions, 'line')} put in, ${change.deletions} taken out`);
  return { author: { name: 'Plan' }, body: text, mode: vscode.CommentMode.Preview };
}
