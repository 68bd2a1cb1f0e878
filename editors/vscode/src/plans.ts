// The plans as they are now: one list that every view reads, brought up to date by the server's events.
import * as vscode from 'vscode';
import type { PendingDecision, Plan } from './api.ts';
import { hasEnded } from './model/look.ts';
import { messageOf, type Server } from './server.ts';

/** Events closer together than this are one refresh. */
const TOGETHER = 60;

export class Plans implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly touched = new vscode.EventEmitter<ReadonlySet<string>>();
  /** The list or what waits is another. */
  readonly onChange = this.changed.event;
  /** Something about these plans is another: decisions, files, progress. */
  readonly onTouch = this.touched.event;
  private plans: readonly Plan[] = [];
  private waiting: readonly PendingDecision[] = [];
  private readonly dirty = new Set<string>();
  private timer: NodeJS.Timeout | undefined;
  private reading = false;
  private again = false;
  private readonly disposables: vscode.Disposable[];
  private readonly server: Server;

  constructor(server: Server) {
    this.server = server;
    this.disposables = [
      server.onEvent((event) => {
        const plan = event.root_plan_id ?? event.plan_id;
        if (plan) this.dirty.add(plan);
        if (event.plan_id) this.dirty.add(event.plan_id);
        this.timer ??= setTimeout(() => void this.refresh(), TOGETHER);
      }),
      server.onState((state) => {
        if (state === 'ready') void this.refresh();
        else this.take([], []);
      }),
    ];
  }

  get all(): readonly Plan[] {
    return this.plans;
  }

  get open(): readonly Plan[] {
    return this.plans.filter((plan) => !hasEnded(plan));
  }

  get pending(): readonly PendingDecision[] {
    return this.waiting;
  }

  find(id: string): Plan | undefined {
    return this.plans.find((plan) => plan.id === id);
  }

  pendingOf(plan: string): readonly PendingDecision[] {
    return this.waiting.filter((decision) => decision.plan_id === plan);
  }

  /** Reads everything anew. One read at a time; what happens meanwhile is one more. */
  async refresh(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    if (this.reading) {
      this.again = true;
      return;
    }
    if (this.server.state !== 'ready') return;
    this.reading = true;
    const touched = new Set(this.dirty);
    this.dirty.clear();
    try {
      const [list, pending] = await Promise.all([
        this.server.call('agents.plan.list', {}),
        this.server.call('agents.plan.pending', {}),
      ]);
      this.take(list.plans, pending.decisions);
      if (touched.size > 0) this.touched.fire(touched);
    } catch (error) {
      this.server.output.warn(`The plans could not be read: ${messageOf(error)}`);
    } finally {
      this.reading = false;
      if (this.again) {
        this.again = false;
        void this.refresh();
      }
    }
  }

  private take(plans: readonly Plan[], pending: readonly PendingDecision[]): void {
    this.plans = plans;
    this.waiting = pending;
    this.changed.fire();
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const one of [...this.disposables, this.changed, this.touched]) one.dispose();
  }
}
