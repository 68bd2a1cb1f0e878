// The server's operations as types, and the names that the rest of the extension uses for parts of them.
import type { Operations } from './generated/operations.ts';

export type Command = keyof Operations;
export type Params<C extends Command> = Operations[C]['params'];
export type Output<C extends Command> = Operations[C]['output'];

/** Carries an operation out; what it refuses is an error whose message is for people. */
export type Call = <C extends Command>(command: C, params: Params<C>) => Promise<Output<C>>;

export type Plan = Output<'agents.plan.list'>['plans'][number];
export type PlanStatus = Output<'agents.plan.status'>;
export type AllowedAction = PlanStatus['allowed_actions'][number];
export type Awaiting = NonNullable<PlanStatus['awaiting']>;
export type AwaitingKind = Awaiting['kind'];
export type Verb = AllowedAction['verb'];
export type DecisionTree = Output<'agents.plan.tree'>;
export type TreeNode = NonNullable<DecisionTree['tree']>;
export type Explained = Output<'agents.plan.explain'>;
export type Artifacts = Output<'agents.plan.artifacts'>;
export type Checkpoint = Artifacts['checkpoints'][number];
export type Diff = Output<'agents.plan.diff'>;
export type DiffedFile = Diff['files'][number];
export type PendingDecision = Output<'agents.plan.pending'>['decisions'][number];
export type Correction = Output<'agents.plan.correct'>;
export type CorrectionDiff = Output<'agents.plan.correction-diff'>;
export type EngineEvent = Output<'agents.events.after'>['events'][number];
