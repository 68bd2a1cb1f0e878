// The language server as the extension sees it: started, followed, asked.
import { accessSync, constants, statSync } from 'node:fs';
import { homedir } from 'node:os';
import * as vscode from 'vscode';
import {
  CloseAction, ErrorAction, LanguageClient, type LanguageClientOptions, type Middleware, RevealOutputChannelOn, State,
} from 'vscode-languageclient/node';
import type { Call, EngineEvent } from './api.ts';
import { findProgram } from './model/find.ts';

export type ServerState = 'untrusted' | 'missing' | 'starting' | 'ready' | 'failed';

const SECTION = 'cleveragents';

export const setting = <T>(name: string, fallback: T): T => vscode.workspace.getConfiguration(SECTION).get<T>(name) ?? fallback;

export class Server implements vscode.Disposable {
  readonly output = vscode.window.createOutputChannel('CleverAgents', { log: true });
  private readonly trace = vscode.window.createOutputChannel('CleverAgents Trace');
  private readonly stateChanged = new vscode.EventEmitter<ServerState>();
  private readonly happened = new vscode.EventEmitter<EngineEvent>();
  readonly onState = this.stateChanged.event;
  readonly onEvent = this.happened.event;
  private client: LanguageClient | undefined;
  private current: ServerState = 'starting';
  private readonly middleware: Middleware;
  private deaths: number[] = [];

  constructor(middleware: Middleware) {
    this.middleware = middleware;
  }

  get state(): ServerState {
    return this.current;
  }

  private async enter(state: ServerState): Promise<void> {
    this.current = state;
    await vscode.commands.executeCommand('setContext', 'cleveragents.server', state);
    this.stateChanged.fire(state);
  }

  /** Starts the server, if the folder is trusted and the program is there. */
  async start(): Promise<void> {
    await this.stop();
    if (!vscode.workspace.isTrusted) return this.enter('untrusted');
    const found = findProgram({
      configured: setting('server.path', '').trim(),
      path: process.env.PATH ?? '',
      home: homedir(),
      windows: process.platform === 'win32',
      isProgram,
    });
    if ('problem' in found) {
      await this.enter('missing');
      this.output.warn(found.problem);
      void this.explainMissing(found.problem);
      return;
    }
    await this.enter('starting');
    const data = setting('server.dataDirectory', '').trim().replace(/^~(?=[/\\])/, homedir());
    const args = ['lsp', 'serve', ...setting<readonly string[]>('server.arguments', [])];
    this.output.info(`${found.program} ${args.join(' ')}`);
    const client = new LanguageClient(
      SECTION,
      'CleverAgents',
      {
        command: found.program,
        args,
        options: { env: { ...process.env, ...(data && { CLEVERAGENTS_DATA_DIR: data }) } },
      },
      this.options(),
    );
    client.registerFeature({
      fillClientCapabilities(capabilities) {
        capabilities.experimental = { ...capabilities.experimental, cleveragents: { interactive: true } };
      },
      initialize() {},
      getState: () => ({ kind: 'static' }),
      clear() {},
    });
    client.onNotification('agents/event', (event: EngineEvent) => this.happened.fire(event));
    client.onDidChangeState(({ newState }) => {
      if (newState === State.Stopped && this.client === client) void this.enter('failed');
      if (newState === State.Running && this.client === client && this.current === 'failed') void this.begin(client);
    });
    this.client = client;
    try {
      await client.start();
      await this.begin(client);
    } catch (error) {
      if (this.client !== client) return;
      await this.enter('failed');
      this.output.error(`The server did not start: ${messageOf(error)}`);
      const chosen = await vscode.window.showErrorMessage(
        `CleverAgents: ${found.program} did not start as a language server. Is it the program agents of CleverAgents?`,
        'Show the Log', 'Set Its Path…',
      );
      if (chosen === 'Show the Log') this.output.show();
      if (chosen === 'Set Its Path…') await vscode.commands.executeCommand('cleveragents.setServerPath');
    }
  }

  private async begin(client: LanguageClient): Promise<void> {
    await client.sendRequest('agents/subscribe', {});
    await this.enter('ready');
  }

  private options(): LanguageClientOptions {
    return {
      // Pages of plans, decisions and corrections have links, lenses and a hierarchy, too; the sides of diffs have none.
      documentSelector: [{ scheme: 'file' }, { scheme: 'agents', pattern: '/{plan,decision,correction}/*' }],
      outputChannel: this.output,
      traceOutputChannel: this.trace,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      markdown: {
        isTrusted: { enabledCommands: ['agents.plan.explain', 'agents.plan.correct', 'agents.plan.diff'] },
      },
      // Messages about plans are ours: with buttons that lead to the place.
      initializationOptions: { notifications: false, inlayHints: setting('inlayHints', true) },
      middleware: {
        ...this.middleware,
        workspace: {
          configuration: async (params, token, next) => {
            const answers = await next(params, token);
            return Array.isArray(answers)
              ? answers.map((answer: unknown, at) =>
                  params.items[at]?.section === SECTION ? { ...(answer as object), notifications: false } : answer)
              : answers;
          },
        },
      },
      synchronize: { configurationSection: [] },
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue }),
        closed: () => {
          const now = Date.now();
          this.deaths = [...this.deaths.filter((at) => now - at < 180_000), now];
          if (this.deaths.length <= 4) return { action: CloseAction.Restart };
          return {
            action: CloseAction.DoNotRestart,
            message: 'The CleverAgents server ended five times in three minutes and is not started again. Its output says why.',
          };
        },
      },
    };
  }

  private async explainMissing(problem: string): Promise<void> {
    const chosen = await vscode.window.showErrorMessage(`CleverAgents: ${problem}`, 'Set Its Path…', 'First Steps');
    if (chosen === 'Set Its Path…') await vscode.commands.executeCommand('cleveragents.setServerPath');
    if (chosen === 'First Steps') await vscode.commands.executeCommand('cleveragents.openWalkthrough');
  }

  /** Carries an operation out. */
  readonly call: Call = async (command, params) =>
    this.request('workspace/executeCommand', { command, arguments: [params] });

  /** The text of a virtual document. */
  async content(uri: string): Promise<string> {
    const document = await this.request<{ text: string }>('agents/content', { uri });
    return document.text;
  }

  private async request<T>(method: string, params: object): Promise<T> {
    const client = this.client;
    if (!client?.isRunning()) throw new Error('the CleverAgents server is not running: use “CleverAgents: Restart the Server”');
    return client.sendRequest<T>(method, params);
  }

  async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    if (client?.isRunning()) await client.stop().catch(() => undefined);
    await client?.dispose().catch(() => undefined);
  }

  dispose(): void {
    void this.stop();
    for (const one of [this.output, this.trace, this.stateChanged, this.happened]) one.dispose();
  }
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
