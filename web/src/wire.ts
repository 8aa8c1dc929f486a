// The wire: what goes over REST and over /ws. Made by scripts/schemas of the server's own contract; not to be edited.
// A field with a question mark may be missing; one that may be empty says null.

/** Who caused it. */
export interface Actor {
  tenant: string;
  user: string | null;
  request_id: string | null;
  principal: string | null;
}

/** A listener, and what it does now. */
export interface Agent {
  name: string;
  description: string;
  is_agent: boolean;
  /** Whom it may write to. */
  peers: string[];
  payload_class: string;
  state: AgentState;
  /** That of the latest start still open. */
  current_thread: string | null;
  /** What waits for a start, retries too. */
  queue_depth: number;
  last_activity: string | null;
  /** True from the pause on, though something may still run. */
  paused: boolean;
  message_count: number;
  model: string | null;
  version: string | null;
}

/** What an agent does now. It is a view and no event of the log: the latest wins. */
export interface AgentChanged {
  event: "agent_state";
  agent: string;
  state: AgentState;
  current_thread: string | null;
  paused: boolean;
  queue_depth: number;
}

/** The listeners, in the order of organism.yaml. */
export interface AgentList {
  /** How many are here. */
  count: number;
  /** How many there are. */
  total: number;
  limit: number;
  /** How many come before these. */
  offset: number;
  /** The `cursor` of the next page; null on the last. */
  next: string | null;
  agents: Agent[];
}

/** What an agent does. */
export type AgentState = "idle" | "processing" | "waiting" | "paused" | "error";

/** What waits, or waited, for a human's word. */
export interface Approval {
  id: string;
  thread_id: string;
  message_id: string;
  agent: string;
  /** Of a call that waits for consent: its payload is the preview. */
  payload_type: string | null;
  /** Of a tainted run's call that cannot be undone: why you are asked. */
  why: string | null;
  /** Of the receiver's schema; `{"erased":true}` once it was erased. */
  preview: unknown;
  /** What `edits` of the payload may be. */
  form_schema?: Record<string, unknown>;
  /** Of the preview's canonical bytes, to which a decision is bound. */
  digest: string;
  status: ApprovalStatus;
  /** UTC, ISO 8601. */
  requested_at: string;
  /** UTC, ISO 8601. */
  expires_at: string;
  /** Where it stands in the log. */
  position: number;
}

/** `POST /approvals/{id}/resolve`. */
export interface ApprovalBody {
  decision: "approve" | "reject";
  edits?: unknown;
  comment?: string;
}

/** An approval waits no more. */
export interface ApprovalClosed {
  event: "approval";
  /** Where it stands in the log. */
  position: number;
  thread_id: string;
  approval: ClosedApproval;
}

/** Approvals, oldest first. */
export interface ApprovalList {
  /** How many are here. */
  count: number;
  /** How many there are. */
  total: number;
  limit: number;
  /** How many come before these. */
  offset: number;
  /** The `cursor` of the next page; null on the last. */
  next: string | null;
  approvals: Approval[];
}

/** Something waits for a human's word. */
export interface ApprovalRequested {
  event: "approval";
  /** Where it stands in the log. */
  position: number;
  thread_id: string;
  agent: string;
  approval: Approval;
}

/** How an approval stands. */
export type ApprovalStatus = 
    | "pending"
    | "approved"
    | "rejected"
    | "expired"
    | "cancelled";

/** An attempt to handle a message failed; `next_at` is when the next one begins, null after the last. */
export interface AttemptFailed {
  event: "error";
  /** Where it stands in the log. */
  position: number;
  thread_id: string;
  agent: string;
  error: string;
  /** UTC, ISO 8601. */
  timestamp: string;
  message_id: string;
  attempt: number;
  next_at: string | null;
}

/** The first message of a client that could send no header. */
export interface AuthCommand {
  cmd: "auth";
  token: string;
  /** Of any kind, up to 200 bytes of JSON; the answer carries it too. */
  id?: unknown;
}

/** With `batch`: what passes of one commit, or of a page of the past. */
export type Batch = Array<
    | MessageSent
    | ThreadCreated
    | ThreadUpdated
    | AttemptFailed
    | DeadLetterOpened
    | DeadLetterClosed
    | ApprovalRequested
    | ApprovalClosed
    | EffectInDoubt
    | OrganismChanged
    | ReloadDone
    | RunShown
    | TextHeard
    | ModelCalled
    | AgentChanged>;

/** You are live. */
export interface CaughtUp {
  event: "caught_up";
  /** Where it stands in the log. */
  position: number;
}

/** What the AI SDK's chat transport posts, with `x-ag-messages-format: vercel`: the talk as UI messages. A page may add `agent`, `session_id` and `flags`. Nothing else is read: the SDK sends the whole talk each time, so the chat's `id`, `trigger` and `messageId` say nothing more. */
export interface ChatBody {
  messages: TalkMessage[];
  agent?: string | null;
  session_id?: string | null;
  flags?: FlagsBody | null;
}

/** So far the log has come, where the filter is quiet. */
export interface Checkpoint {
  event: "checkpoint";
  /** Where it stands in the log. */
  position: number;
}

/** Which one it was, and what became of it. */
export interface ClosedApproval {
  id: string;
  status: "approved" | "rejected" | "expired" | "cancelled";
}

/** Which one it was. */
export interface ClosedDeadLetter {
  id: string;
}

/** It is done. */
export interface CommandDone {
  event: "ok";
  /** That of the command, if it had one. */
  id?: unknown;
  /** Where it stands in the log. */
  position: number;
}

/** The message is on disk. */
export interface CommandInjected {
  event: "injected";
  /** That of the command, if it had one. */
  id?: unknown;
  thread_id: string;
  message_id: string;
  /** Where it stands in the log. */
  position: number;
}

/** What was wrong. It is told from a failed attempt by its code. */
export interface CommandRefused {
  event: "error";
  /** That of the command, or null. */
  id: unknown;
  code: string;
  error: string;
  param: string | null;
  details?: Fault[];
  request_id: string;
}

/** organism.yaml as it is in force, defaults filled in, without anything secret. */
export interface Configuration {
  organism: OrganismSection;
  limits: Limits;
  retry: Retry;
  models: Record<string, unknown>;
  embeddings: Record<string, unknown>;
  tools: Record<string, unknown>;
  fx: Record<string, unknown>;
  listeners: Section[];
}

/** The first frame: how everything stands at this position. */
export interface Connected {
  event: "connected";
  /** Where it stands in the log. */
  position: number;
  /** The name of this log's timeline. */
  log: string;
  organism: Organism;
  agents: Agent[];
  /** The newest 500 active ones and the newest 100 others. */
  threads: Thread[];
  threads_total: number;
}

/** The agent as it stands after the act, and where the act stands in the log. */
export interface ControlledAgent {
  name: string;
  description: string;
  is_agent: boolean;
  /** Whom it may write to. */
  peers: string[];
  payload_class: string;
  state: AgentState;
  /** That of the latest start still open. */
  current_thread: string | null;
  /** What waits for a start, retries too. */
  queue_depth: number;
  last_activity: string | null;
  /** True from the pause on, though something may still run. */
  paused: boolean;
  message_count: number;
  model: string | null;
  version: string | null;
  /** Where it stands in the log. */
  position: number;
}

/** A message that failed for good, or a send that was refused, with its payload. */
export interface DeadLetter {
  id: string;
  thread_id: string;
  /** Who was to handle it, or wanted to send it. */
  agent: string;
  from: string;
  to: string;
  payload_type: string;
  code: string;
  reason: string;
  attempts: number;
  /** When it died. UTC, ISO 8601. */
  timestamp: string;
  /** Where it stands in the log. */
  position: number;
  /** Of the receiver's schema; `{"erased":true}` once it was erased. */
  payload: unknown;
}

/** A dead letter was sent again or discarded. */
export interface DeadLetterClosed {
  event: "dead_letter";
  /** Where it stands in the log. */
  position: number;
  thread_id: string;
  status: "replayed" | "discarded";
  dead_letter: ClosedDeadLetter;
}

/** A message that failed for good, or a send that was refused. */
export interface DeadLetterHead {
  id: string;
  thread_id: string;
  /** Who was to handle it, or wanted to send it. */
  agent: string;
  from: string;
  to: string;
  payload_type: string;
  code: string;
  reason: string;
  attempts: number;
  /** When it died. UTC, ISO 8601. */
  timestamp: string;
  /** Where it stands in the log. */
  position: number;
}

/** Open dead letters, newest first. */
export interface DeadLetterList {
  /** How many are here. */
  count: number;
  /** How many there are. */
  total: number;
  limit: number;
  /** How many come before these. */
  offset: number;
  /** The `cursor` of the next page; null on the last. */
  next: string | null;
  dead_letters: DeadLetter[];
}

/** A message failed for good, or a send was refused. */
export interface DeadLetterOpened {
  event: "dead_letter";
  /** Where it stands in the log. */
  position: number;
  thread_id: string;
  agent: string;
  status: "open";
  dead_letter: DeadLetterHead;
}

/** Who may write to whom. */
export interface Edge {
  from: string;
  to: string;
}

/** An effect was found begun and not finished, or somebody said what became of it. */
export interface EffectInDoubt {
  event: "indeterminate";
  /** Where it stands in the log. */
  position: number;
  thread_id: string;
  agent: string;
  indeterminate: Question;
}

/** The type of an entry of a run. */
export type EntryType = 
    | "data"
    | "done"
    | "error"
    | "file"
    | "interaction_request"
    | "interaction_response"
    | "message"
    | "message_delta"
    | "message_end"
    | "message_start"
    | "thought"
    | "thought_delta"
    | "thought_end"
    | "thought_start"
    | "tool_call"
    | "tool_result"
    | "usage";

/** The one shape of errors. */
export interface Error {
  error: Refusal;
}

/** What a code means and what to do. */
export interface ErrorCode {
  code: string;
  type: ErrorType;
  http_status: number;
  title: string;
  description: string;
  remediation: string;
  typical_param: string | null;
}

/** Every code there is. */
export interface ErrorCodes {
  version: number;
  count: number;
  entries: ErrorCode[];
}

/** The kind of an error. */
export type ErrorType = 
    | "invalid_request_error"
    | "authentication_error"
    | "permission_denied"
    | "not_found"
    | "conflict"
    | "rate_limit_exceeded"
    | "upstream_error"
    | "internal_error";

/** One event of the log. */
export interface Event {
  /** Where it stands in the log. */
  position: number;
  type: EventType;
  /** UTC, ISO 8601. */
  at: string;
  /** Null for what concerns the whole organism. */
  thread_id: string | null;
  /** The message whose handling led to it. */
  cause: string | null;
  /** The message of the injection at the root. */
  correlation: string | null;
  actor: Actor | null;
  /** What belongs to this type; docs/design.md lists it to the field. */
  data: Record<string, unknown>;
  /** With `content=true`: the text that was kept beside it. */
  content?: unknown;
}

/** The type of an event. */
export type EventType = 
    | "agent_paused"
    | "agent_resumed"
    | "approval_cancelled"
    | "approval_expired"
    | "approval_requested"
    | "approval_resolved"
    | "budget_reserved"
    | "budget_settled"
    | "call_answered"
    | "confirm_redeemed"
    | "confirm_refused"
    | "confirm_requested"
    | "content_erased"
    | "damage_found"
    | "documents_changed"
    | "index_created"
    | "index_deleted"
    | "loop_blocked"
    | "message_dead"
    | "message_discarded"
    | "message_dropped"
    | "message_failed"
    | "message_handled"
    | "message_refused"
    | "message_replayed"
    | "message_retried"
    | "message_sent"
    | "message_started"
    | "model_called"
    | "organism_paused"
    | "organism_reloaded"
    | "organism_resumed"
    | "organism_started"
    | "organism_stopped"
    | "run_data"
    | "run_done"
    | "run_error"
    | "run_file"
    | "run_interaction_request"
    | "run_interaction_response"
    | "run_message"
    | "run_message_delta"
    | "run_message_end"
    | "run_message_start"
    | "run_thought"
    | "run_thought_delta"
    | "run_thought_end"
    | "run_thought_start"
    | "run_tool_call"
    | "run_tool_result"
    | "run_usage"
    | "session_compacted"
    | "session_created"
    | "session_deleted"
    | "session_uncompacted"
    | "spoof_attempt"
    | "step_recorded"
    | "step_resolved"
    | "step_started"
    | "tenant_config_changed"
    | "thread_completed"
    | "thread_created"
    | "thread_failed"
    | "thread_forked"
    | "thread_killed"
    | "thread_paused"
    | "thread_reopened"
    | "thread_resumed"
    | "todo_closed"
    | "todo_registered"
    | "turn_appended"
    | "turn_ended"
    | "turn_started"
    | "value_set";

/** A page of the log. */
export interface Events {
  events: Event[];
  /** The `after` of the next page; null at the end. */
  next: number | null;
}

/** `POST /tools/execute`: `arguments` are of the tool's `parameters`. */
export interface ExecuteBody {
  name: string;
  arguments?: Record<string, unknown>;
}

/** One of several things that are wrong. */
export interface Fault {
  param: string;
  message: string;
}

/** You read slowly, and are served from the log now. */
export interface FellBehind {
  event: "fell_behind";
  /** Where it stands in the log. */
  position: number;
}

/** The lists that were given. */
export interface FilterSaid {
  threads?: string[];
  agents?: string[];
  /** Only frames of these, parted by commas. */
  events?: FrameName[];
}

/** What the caller asks for; null is not said. */
export interface FlagsBody {
  stream?: boolean | null;
  trim?: boolean | null;
  force?: boolean | null;
  resolve?: boolean | null;
}

/** A run as it was in the end: what is null is left out. */
export interface Folded {
  messages: Record<string, unknown>[];
  stop_reason: string;
  pending_interaction?: Record<string, unknown>;
}

/** The name of a frame. */
export type FrameName = 
    | "agent_state"
    | "approval"
    | "dead_letter"
    | "error"
    | "indeterminate"
    | "message"
    | "organism_state"
    | "reload"
    | "run"
    | "thread_created"
    | "thread_updated"
    | "usage";

/** What stands under `data`. */
export interface Given {
  inputs: Inputs;
}

/** Who may write to whom. */
export interface Graph {
  nodes: Node[];
  edges: Edge[];
}

/** The process answers. */
export interface Healthy {
  status: "ok";
}

/** An unsafe effect of which nobody knows whether it happened. */
export interface Indeterminate {
  /** `MESSAGE:STEP`. */
  id: string;
  thread_id: string;
  message_id: string;
  agent: string;
  step: number;
  /** The key that the effect got. */
  key: string;
  /** UTC, ISO 8601. */
  since: string;
  /** Where it stands in the log. */
  position: number;
}

/** `POST /indeterminate/{id}/resolve`: `result` belongs to `done`. */
export interface IndeterminateBody {
  outcome: "done" | "redo" | "fail";
  result?: unknown;
}

/** Open questions, oldest first. */
export interface IndeterminateList {
  /** How many are here. */
  count: number;
  /** How many there are. */
  total: number;
  limit: number;
  /** How many come before these. */
  offset: number;
  /** The `cursor` of the next page; null on the last. */
  next: string | null;
  indeterminate: Indeterminate[];
}

/** `POST /inject`: `wait` is in seconds. */
export interface InjectBody {
  to: string;
  payload: unknown;
  thread_id?: string | null;
  wait?: number | null;
}

/** Send a payload from `console` to a listener. */
export interface InjectCommand {
  cmd: "inject";
  to: string;
  payload: unknown;
  thread_id?: string | null;
  idempotency_key?: string | null;
  /** Of any kind, up to 200 bytes of JSON; the answer carries it too. */
  id?: unknown;
}

/** The message is on disk. */
export interface Injected {
  thread_id: string;
  message_id: string;
  /** Where it stands in the log. */
  position: number;
}

/** The message's thread has ended; all of it is as it stood at that end. */
export interface InjectedAndEnded {
  thread_id: string;
  message_id: string;
  /** Where it stands in the log. */
  position: number;
  /** The messages to `console` that this injection caused. */
  replies: Message[];
  thread: Thread;
}

/** What the agent gets: the talk so far, its next message alone, or a payload of its class. */
export interface Inputs {
  messages?: TalkMessage[] | null;
  message?: string | null;
  payload?: Record<string, unknown> | null;
}

/** `POST /invoke`. */
export interface InvokeBody {
  agent: string;
  data: Given;
  session_id?: string | null;
  flags?: FlagsBody | null;
}

/** The turn of an agent, all at once. */
export interface Invoked {
  data: Output;
  session_id: string | null;
  thread_id: string;
}

/** End a thread's whole tree. */
export interface KillCommand {
  cmd: "kill";
  thread_id: string;
  /** Of any kind, up to 200 bytes of JSON; the answer carries it too. */
  id?: unknown;
}

/** Bounds of the whole organism. Times are in seconds; `pause_after_failures` 0 means never (G8). */
export interface Limits {
  max_concurrent_handlers?: number;
  max_concurrent_per_agent?: number;
  max_queue_per_agent?: number;
  max_open_per_thread?: number;
  max_depth?: number;
  max_payload_bytes?: number;
  handler_timeout_s?: number;
  ask_timeout_s?: number;
  approval_expires_s?: number;
  max_tokens_per_thread?: number;
  pause_after_failures?: number;
}

/** `POST /mcp`: a message of JSON-RPC 2.0; what the method takes, the Model Context Protocol says. */
export interface McpBody {
  jsonrpc: "2.0";
  method?: string | null;
  id?: string | number | null;
  params?: Record<string, unknown> | null;
  result?: unknown;
  error?: Record<string, unknown> | null;
}

/** A message. */
export interface Message {
  id: string;
  thread_id: string;
  /** Who sent it; `console` is the outside. */
  from: string;
  to: string;
  payload_type: string;
  /** Of the receiver's schema; `{"erased":true}` once it was erased. */
  payload: unknown;
  /** UTC, ISO 8601. */
  timestamp: string;
  /** Where it stands in the log. */
  position: number;
  /** The message whose handling led to it. */
  cause: string | null;
  /** With `?xml=true`: the recorded envelope, byte for byte; null once it was erased. */
  xml?: string | null;
}

/** Messages, oldest first. */
export interface MessageList {
  /** How many are here. */
  count: number;
  /** How many there are. */
  total: number;
  limit: number;
  /** How many come before these. */
  offset: number;
  /** The `cursor` of the next page; null on the last. */
  next: string | null;
  messages: Message[];
}

/** A message was sent. */
export interface MessageSent {
  event: "message";
  /** Where it stands in the log. */
  position: number;
  message: Message;
}

/** A call of a model is over: what it used and cost. */
export interface ModelCalled {
  event: "usage";
  /** Where it stands in the log. */
  position: number;
  thread_id: string;
  agent: string;
  message_id: string;
  step: number;
  /** Its name in organism.yaml. */
  model: string;
  /** The provider that answered, whatever model was asked for. */
  served_by: string;
  input_tokens: number;
  output_tokens: number;
  /** Exact, as text. */
  cost_usd: string;
  /** The provider's own figure, the price, or nothing. */
  cost_source: "upstream" | "price" | "zero";
  attempts: number;
  error: string | null;
}

/** The models that the token may use. */
export interface ModelList {
  object: "list";
  data: ModelShown[];
}

/** A model that the token may use, in the form in which OpenAI-compatible clients read it. */
export interface ModelShown {
  /** Its name in organism.yaml. */
  id: string;
  object: "model";
  /** Since when it is served: the organism's start, in seconds since 1970. */
  created: number;
  /** Its provider. */
  owned_by: string;
  /** Tokens of a request and its answer together. */
  context_window: number;
  /** What it is, where no one else is asked. */
  description: string;
}

/** What one model was called for. */
export interface ModelUsage {
  /** Its name in organism.yaml. */
  model: string;
  /** The provider that answered, whatever model was asked for. */
  served_by: string;
  calls: number;
  input_tokens: number;
  output_tokens: number;
  tokens: number;
  /** Exact, as text. */
  cost_usd: string;
}

/** A command that needs no fields. */
export interface NoBody {}

/** Who writes or is written to. */
export interface Node {
  name: string;
  kind: "agent" | "listener" | "console" | "system";
  description: string | null;
  payload_class: string | null;
}

/** The organism as a whole. */
export interface Organism {
  name: string;
  status: OrganismStatus;
  uptime_seconds: number;
  agent_count: number;
  active_threads: number;
  total_messages: number;
  /** Changes with the configuration and the code. */
  version: string;
  /** The head of the log. */
  position: number;
}

/** The organism was started, paused, resumed or stopped. */
export interface OrganismChanged {
  event: "organism_state";
  /** Where it stands in the log. */
  position: number;
  status: "running" | "paused" | "stopping";
}

/** The section `organism`. */
export interface OrganismSection {
  name: string;
  imports: string[];
  /** The file that every prompt begins with; true: the usual one, false: none. */
  charter: string | boolean;
}

/** How the organism stands. */
export type OrganismStatus = "running" | "starting" | "paused" | "stopping";

/** What came of it. */
export interface Output {
  outputs: Folded;
}

/** Pause an agent or a thread: one of them is named. */
export interface PauseCommand {
  cmd: "pause";
  agent?: string | null;
  thread_id?: string | null;
  /** Of any kind, up to 200 bytes of JSON; the answer carries it too. */
  id?: unknown;
}

/** A part of a message; only text is read. */
export interface Piece {
  type: string;
  text?: string;
}

/** A command that needs no fields. */
export interface PingCommand {
  cmd: "ping";
  /** Of any kind, up to 200 bytes of JSON; the answer carries it too. */
  id?: unknown;
}

/** An unsafe effect of which nobody knows whether it happened, or what an operator said of it. */
export interface Question {
  /** `MESSAGE:STEP`. */
  id: string;
  message_id: string;
  step: number;
  status: "open" | "done" | "redo" | "fail";
}

/** It takes work. */
export interface Ready {
  status: "running" | "paused";
}

/** What was wrong. */
export interface Refusal {
  type: ErrorType;
  /** Stable; `GET /errors` explains each. */
  code: string;
  message: string;
  /** Where: a JSON pointer into the body, `query.x` or `headers.x`. */
  param: string | null;
  /** Every fault, where there are several. */
  details?: Fault[];
  /** What was asked for and cannot be had. */
  requested?: string;
  /** What can be had instead. */
  supported?: string[];
  /** Stands in the server's log, too. */
  request_id: string;
}

/** The configuration was read anew: the names of listeners. */
export interface ReloadDone {
  event: "reload";
  /** Where it stands in the log. */
  position: number;
  added: string[];
  removed: string[];
  updated: string[];
}

/** What a reload changed: the names of listeners. */
export interface Reloaded {
  added: string[];
  removed: string[];
  updated: string[];
  /** Where it stands in the log. */
  position: number;
}

/** `POST /dead-letters/{id}/replay`: without `payload` it is sent again as it was. */
export interface ReplayBody {
  payload?: unknown;
}

/** Decide an approval. */
export interface ResolveCommand {
  cmd: "resolve";
  approval: string;
  decision: "approve" | "reject";
  edits?: unknown;
  comment?: string;
  /** Of any kind, up to 200 bytes of JSON; the answer carries it too. */
  id?: unknown;
}

/** Resume an agent or a thread: one of them is named. */
export interface ResumeCommand {
  cmd: "resume";
  agent?: string | null;
  thread_id?: string | null;
  /** Of any kind, up to 200 bytes of JSON; the answer carries it too. */
  id?: unknown;
}

/** The first frame for a client that has the state already. */
export interface Resumed {
  event: "connected";
  /** Where it stands in the log. */
  position: number;
  /** The name of this log's timeline. */
  log: string;
}

/** How often a handling is tried in all, and how long it waits in between (seconds, growing to `max_delay_s`). */
export interface Retry {
  attempts?: number;
  base_delay_s?: number;
  max_delay_s?: number;
}

/** An entry of the run of a handling: what people see of it. */
export interface RunShown {
  event: "run";
  /** Where it stands in the log. */
  position: number;
  thread_id: string;
  message_id: string;
  agent: string;
  type: EntryType;
  /** What the entry says, by its type; `{"erased":true}` once it was erased. */
  data: Record<string, unknown>;
}

/** A listener's section of organism.yaml, or the file of a conversational agent: the keys that stand there. */
export interface Section {
  name?: string;
  payload_class?: string;
  handler?: string;
  description?: string;
  agent?: boolean;
  peers?: string[];
  /** Its text for `admin` alone, else `sha256:…`. */
  prompt?: string;
  prompt_ref?: string;
  model?: string;
  tools?: string[];
  budget?: Record<string, unknown>;
  max_concurrent?: number;
  timeout_s?: number;
  max_payload_bytes?: number;
  broadcast?: boolean;
  blocking?: boolean;
  confirm?: boolean;
  approval?: boolean;
  brings_outside_text?: boolean;
  invoke?: Array<"batch" | "stream">;
  /** As `prompt`, in an agent's file. */
  system_prompt?: string;
  max_tokens?: number;
  temperature?: number;
  rag_index?: string;
  rag_top_k?: number;
  taint?: "escalate" | "allow";
}

/** The graceful stop has begun. */
export interface StopBegun {
  status: "stopping";
  /** Where it stands in the log. */
  position: number;
}

/** Replace the filter; with `since`, go on from that position of the timeline `log`. With `batch` what is pushed comes as JSON arrays, one for each commit. */
export interface SubscribeCommand {
  cmd: "subscribe";
  threads?: string[] | null;
  agents?: string[] | null;
  events?: string[] | null;
  since?: number | null;
  log?: string | null;
  batch?: boolean;
  /** Of any kind, up to 200 bytes of JSON; the answer carries it too. */
  id?: unknown;
}

/** The filter holds from this position on. */
export interface Subscribed {
  event: "subscribed";
  /** That of the command, if it had one. */
  id?: unknown;
  filter: FilterSaid;
  /** Where it stands in the log. */
  position: number;
}

/** A message of the talk so far: its text stands in `content` or in `parts`. */
export interface TalkMessage {
  role: "user" | "assistant" | "tool";
  content?: string | Piece[] | null;
  parts?: Piece[] | null;
}

/** Text of a run as it comes, before it is in the log: it comes again from there, gathered and with a position. */
export interface TextHeard {
  event: "run";
  thread_id: string;
  message_id: string;
  agent: string;
  type: "message_delta" | "thought_delta";
  data: TextPiece;
}

/** The next characters of a message or a thought; `offset` counts those before them (Unicode code points). */
export interface TextPiece {
  id: string;
  delta: string;
  offset: number;
}

/** A thread. */
export interface Thread {
  id: string;
  status: ThreadStatus;
  paused: boolean;
  /** Who takes part, in the order in which they came. */
  participants: string[];
  message_count: number;
  /** UTC, ISO 8601. */
  created_at: string;
  /** UTC, ISO 8601. */
  last_activity: string;
  /** Why it failed, if it did. */
  error: string | null;
  session_id: string | null;
  tokens: number;
  /** A decimal number. */
  cost_usd: string;
  /** That of its last event: its ETag, what `If-Match` compares. */
  position: number;
}

/** A thread begins. */
export interface ThreadCreated {
  event: "thread_created";
  /** Where it stands in the log. */
  position: number;
  thread: Thread;
}

/** Threads, newest activity first. */
export interface ThreadList {
  /** How many are here. */
  count: number;
  /** How many there are. */
  total: number;
  limit: number;
  /** How many come before these. */
  offset: number;
  /** The `cursor` of the next page; null on the last. */
  next: string | null;
  threads: Thread[];
}

/** How a thread stands. */
export type ThreadStatus = "completed" | "active" | "error" | "killed";

/** A thread ended, goes on, was paused, resumed or killed. */
export interface ThreadUpdated {
  event: "thread_updated";
  /** Where it stands in the log. */
  position: number;
  thread_id: string;
  status: ThreadStatus;
  message_count: number;
  paused: boolean;
  error: string | null;
  /** UTC, ISO 8601. */
  last_activity: string;
}

/** A thread with its first 500 messages. */
export interface ThreadWithMessages {
  id: string;
  status: ThreadStatus;
  paused: boolean;
  /** Who takes part, in the order in which they came. */
  participants: string[];
  message_count: number;
  /** UTC, ISO 8601. */
  created_at: string;
  /** UTC, ISO 8601. */
  last_activity: string;
  /** Why it failed, if it did. */
  error: string | null;
  session_id: string | null;
  tokens: number;
  /** A decimal number. */
  cost_usd: string;
  /** That of its last event: its ETag, what `If-Match` compares. */
  position: number;
  messages: Message[];
  /** The `cursor` for `/threads/{id}/messages` to go on with. */
  next: string | null;
}

/** Opens `/ws?ticket=…`, once. */
export interface Ticket {
  ticket: string;
  expires_in_seconds: number;
}

/** A tool, in the form in which OpenAI-compatible models take it. */
export interface Tool {
  type: "function";
  function: ToolFunction;
  /** Its answers may hold text of strangers. */
  brings_outside_text: boolean;
  /** A person consents to each call. */
  approval: boolean;
  /** A call is previewed, then confirmed. */
  confirm: boolean;
}

/** What a model is told of a tool. */
export interface ToolFunction {
  name: string;
  description: string;
  /** The JSON Schema of its arguments. */
  parameters: Record<string, unknown>;
}

/** The tools that may be called. */
export interface ToolList {
  object: "list";
  data: Tool[];
}

/** What a tool answered. */
export interface ToolResult {
  /** Of the tool's own shape. */
  result: unknown;
}

/** `POST /agents/{name}/invoke`; an `agent` that stands here too is the path's. */
export interface TurnBody {
  data: Given;
  agent?: string | null;
  session_id?: string | null;
  flags?: FlagsBody | null;
}

/** Calls of models: how many, what they used and cost, and how long they took. */
export interface Usage {
  calls: number;
  /** Those that gave no answer, or died with the process. */
  failed_calls: number;
  input_tokens: number;
  output_tokens: number;
  /** Both together. */
  tokens: number;
  /** Exact, as text. */
  cost_usd: string;
  /** By `fx.eur_per_usd` of organism.yaml; null without it. */
  cost_eur: string | null;
  model_seconds: number;
  last_called: string | null;
  /** The same by the model that answered. */
  models: ModelUsage[];
}

/** An agent's calls. */
export interface UsageOfAgent {
  calls: number;
  /** Those that gave no answer, or died with the process. */
  failed_calls: number;
  input_tokens: number;
  output_tokens: number;
  /** Both together. */
  tokens: number;
  /** Exact, as text. */
  cost_usd: string;
  /** By `fx.eur_per_usd` of organism.yaml; null without it. */
  cost_eur: string | null;
  model_seconds: number;
  last_called: string | null;
  /** The same by the model that answered. */
  models: ModelUsage[];
  agent: string;
}

/** All calls since the log began. */
export interface UsageOfAll {
  total: Usage;
  /** By name, the first 500. */
  agents: UsageOfAgent[];
  /** The newest 31 with calls, newest first. */
  days: UsageOfDay[];
}

/** The calls of one day. */
export interface UsageOfDay {
  calls: number;
  /** Those that gave no answer, or died with the process. */
  failed_calls: number;
  input_tokens: number;
  output_tokens: number;
  /** Both together. */
  tokens: number;
  /** Exact, as text. */
  cost_usd: string;
  /** By `fx.eur_per_usd` of organism.yaml; null without it. */
  cost_eur: string | null;
  model_seconds: number;
  last_called: string | null;
  /** The same by the model that answered. */
  models: ModelUsage[];
  /** Of UTC. */
  day: string;
}

/** A thread's calls. */
export interface UsageOfThread {
  calls: number;
  /** Those that gave no answer, or died with the process. */
  failed_calls: number;
  input_tokens: number;
  output_tokens: number;
  /** Both together. */
  tokens: number;
  /** Exact, as text. */
  cost_usd: string;
  /** By `fx.eur_per_usd` of organism.yaml; null without it. */
  cost_eur: string | null;
  model_seconds: number;
  last_called: string | null;
  /** The same by the model that answered. */
  models: ModelUsage[];
  thread_id: string;
}

/** How a message came about: it, the one whose handling led to it, and so on; the injection comes last. */
export interface Why {
  messages: Message[];
  count: number;
  /** Where the path goes on, if it is longer than 500. */
  next: string | null;
}

/** What is pushed to all whose filter it passes. */
export type Pushed =
  | MessageSent
  | ThreadCreated
  | ThreadUpdated
  | AttemptFailed
  | DeadLetterOpened
  | DeadLetterClosed
  | ApprovalRequested
  | ApprovalClosed
  | EffectInDoubt
  | OrganismChanged
  | ReloadDone
  | RunShown
  | TextHeard
  | ModelCalled
  | AgentChanged;

/** Whatever may come over the socket. */
export type Frame =
  | MessageSent
  | ThreadCreated
  | ThreadUpdated
  | AttemptFailed
  | DeadLetterOpened
  | DeadLetterClosed
  | ApprovalRequested
  | ApprovalClosed
  | EffectInDoubt
  | OrganismChanged
  | ReloadDone
  | RunShown
  | TextHeard
  | ModelCalled
  | AgentChanged
  | Connected
  | Resumed
  | Checkpoint
  | FellBehind
  | CaughtUp
  | Subscribed
  | CommandInjected
  | CommandDone
  | CommandRefused;

/** Whatever may be sent over the socket. */
export type Command =
  | SubscribeCommand
  | InjectCommand
  | KillCommand
  | PauseCommand
  | ResumeCommand
  | ResolveCommand
  | AuthCommand
  | PingCommand;

/** What answers each command, unless it is a CommandRefused. */
export interface Answers {
  subscribe: Subscribed;
  inject: CommandInjected;
  kill: CommandDone;
  pause: CommandDone;
  resume: CommandDone;
  resolve: CommandDone;
  auth: CommandDone;
  ping: CommandDone;
}

/** Every route, by its method and path. Refused, it answers an Error. */
export interface Routes {
  "GET /api/v1/threads/{id}/messages": {
    query: {
      /** How many at most. */
      limit?: number;
      /** How many to pass over. */
      offset?: number;
      /** `next` of the page before, of this list and filter. */
      cursor?: string;
      /** As it stood at this position, or the last one of this time. */
      at?: number | string;
      /** Only what this one takes part in, sent or got. */
      agent?: string;
      status?: ThreadStatus;
      /** Only what was sent, or last active, at this time or later. */
      since?: string;
      /** Only what has this text in its payload. */
      q?: string;
      /** With the recorded envelopes. */
      xml?: boolean;
    };
    body: undefined;
    answer: MessageList;
  };
  "GET /api/v1/threads/{id}": {
    query: {
      /** With the recorded envelopes. */
      xml?: boolean;
      /** As it stood at this position, or the last one of this time. */
      at?: number | string;
    };
    body: undefined;
    answer: ThreadWithMessages;
  };
  "GET /api/v1/threads": {
    query: {
      /** How many at most. */
      limit?: number;
      /** How many to pass over. */
      offset?: number;
      /** `next` of the page before, of this list and filter. */
      cursor?: string;
      /** As it stood at this position, or the last one of this time. */
      at?: number | string;
      status?: ThreadStatus;
      /** Only what this one takes part in, sent or got. */
      agent?: string;
      /** Only what was sent, or last active, at this time or later. */
      since?: string;
      /** Only what has this text in its payload. */
      q?: string;
    };
    body: undefined;
    answer: ThreadList;
  };
  "POST /api/v1/threads/{id}/kill": {
    query: {};
    body: NoBody;
    answer: Thread;
  };
  "POST /api/v1/threads/{id}/pause": {
    query: {};
    body: NoBody;
    answer: Thread;
  };
  "POST /api/v1/threads/{id}/resume": {
    query: {};
    body: NoBody;
    answer: Thread;
  };
  "GET /api/v1/messages": {
    query: {
      /** How many at most. */
      limit?: number;
      /** How many to pass over. */
      offset?: number;
      /** `next` of the page before, of this list and filter. */
      cursor?: string;
      /** As it stood at this position, or the last one of this time. */
      at?: number | string;
      /** Only what this one takes part in, sent or got. */
      agent?: string;
      status?: ThreadStatus;
      /** Only what was sent, or last active, at this time or later. */
      since?: string;
      /** Only what has this text in its payload. */
      q?: string;
      /** With the recorded envelopes. */
      xml?: boolean;
    };
    body: undefined;
    answer: MessageList;
  };
  "GET /api/v1/messages/{id}/why": {
    query: {
      /** With the recorded envelopes. */
      xml?: boolean;
    };
    body: undefined;
    answer: Why;
  };
  "GET /api/v1/messages/{id}": {
    query: {
      /** With the recorded envelopes. */
      xml?: boolean;
    };
    body: undefined;
    answer: Message;
  };
  "POST /api/v1/inject": {
    query: {
      /** The receiver; with an XML body alone, where it must be there. */
      to?: string;
      /** Only what belongs to this thread. */
      thread_id?: string;
      /** Seconds to wait for the thread's end; with an XML body. */
      wait?: number;
    };
    body: InjectBody;
    answer: Injected | InjectedAndEnded;
  };
  "POST /api/v1/invoke": {
    query: {};
    body: InvokeBody | ChatBody;
    answer: Invoked | string;
  };
  "POST /api/v1/agents/{name}/invoke": {
    query: {};
    body: TurnBody | ChatBody;
    answer: Invoked | string;
  };
  "GET /api/v1/agents": {
    query: {
      /** How many at most. */
      limit?: number;
      /** How many to pass over. */
      offset?: number;
      /** `next` of the page before, of this list and filter. */
      cursor?: string;
      /** As it stood at this position, or the last one of this time. */
      at?: number | string;
      status?: AgentState;
      /** Only this one. */
      agent?: string;
      /** Only who was last active at this time or later. */
      since?: string;
    };
    body: undefined;
    answer: AgentList;
  };
  "GET /api/v1/agents/{name}": {
    query: {
      /** As it stood at this position, or the last one of this time. */
      at?: number | string;
    };
    body: undefined;
    answer: Agent;
  };
  "GET /api/v1/agents/{name}/config": {
    query: {};
    body: undefined;
    answer: Section;
  };
  "GET /api/v1/agents/{name}/schema": {
    query: {};
    body: undefined;
    answer: string | Record<string, unknown>;
  };
  "POST /api/v1/agents/{name}/pause": {
    query: {};
    body: NoBody;
    answer: ControlledAgent;
  };
  "POST /api/v1/agents/{name}/resume": {
    query: {};
    body: NoBody;
    answer: ControlledAgent;
  };
  "GET /api/v1/organism": {
    query: {
      /** As it stood at this position, or the last one of this time. */
      at?: number | string;
    };
    body: undefined;
    answer: Organism;
  };
  "GET /api/v1/organism/config": {
    query: {};
    body: undefined;
    answer: Configuration;
  };
  "POST /api/v1/organism/pause": {
    query: {};
    body: NoBody;
    answer: Organism;
  };
  "POST /api/v1/organism/resume": {
    query: {};
    body: NoBody;
    answer: Organism;
  };
  "POST /api/v1/organism/reload": {
    query: {};
    body: NoBody;
    answer: Reloaded;
  };
  "POST /api/v1/organism/stop": {
    query: {};
    body: NoBody;
    answer: StopBegun;
  };
  "GET /api/v1/organism/graph": {
    query: {
      /** As data, or as the text of a flowchart. */
      format?: "json" | "mermaid";
    };
    body: undefined;
    answer: Graph | string;
  };
  "GET /api/v1/dead-letters": {
    query: {
      /** How many at most. */
      limit?: number;
      /** How many to pass over. */
      offset?: number;
      /** `next` of the page before, of this list and filter. */
      cursor?: string;
      /** As it stood at this position, or the last one of this time. */
      at?: number | string;
      /** Only what belongs to this thread. */
      thread_id?: string;
      /** Only what this one takes part in, sent or got. */
      agent?: string;
      /** Only what was sent, or last active, at this time or later. */
      since?: string;
      /** Only what has this text in its payload. */
      q?: string;
    };
    body: undefined;
    answer: DeadLetterList;
  };
  "POST /api/v1/dead-letters/{id}/replay": {
    query: {};
    body: ReplayBody;
    answer: Injected;
  };
  "DELETE /api/v1/dead-letters/{id}": {
    query: {};
    body: NoBody;
    answer: Thread;
  };
  "GET /api/v1/approvals": {
    query: {
      /** How many at most. */
      limit?: number;
      /** How many to pass over. */
      offset?: number;
      /** `next` of the page before, of this list and filter. */
      cursor?: string;
      /** As it stood at this position, or the last one of this time. */
      at?: number | string;
      status?: ApprovalStatus;
      /** Only what belongs to this thread. */
      thread_id?: string;
      /** Only what this one takes part in, sent or got. */
      agent?: string;
      /** Only what was sent, or last active, at this time or later. */
      since?: string;
    };
    body: undefined;
    answer: ApprovalList;
  };
  "POST /api/v1/approvals/{id}/resolve": {
    query: {};
    body: ApprovalBody;
    answer: Approval;
  };
  "GET /api/v1/indeterminate": {
    query: {
      /** How many at most. */
      limit?: number;
      /** How many to pass over. */
      offset?: number;
      /** `next` of the page before, of this list and filter. */
      cursor?: string;
      /** As it stood at this position, or the last one of this time. */
      at?: number | string;
      /** Only what belongs to this thread. */
      thread_id?: string;
      /** Only what this one takes part in, sent or got. */
      agent?: string;
      /** Only what was sent, or last active, at this time or later. */
      since?: string;
    };
    body: undefined;
    answer: IndeterminateList;
  };
  "POST /api/v1/indeterminate/{id}/resolve": {
    query: {};
    body: IndeterminateBody;
    answer: Thread;
  };
  "GET /api/v1/usage": {
    query: {
      /** As it stood at this position, or the last one of this time. */
      at?: number | string;
    };
    body: undefined;
    answer: UsageOfAll;
  };
  "GET /api/v1/usage/threads/{id}": {
    query: {
      /** As it stood at this position, or the last one of this time. */
      at?: number | string;
    };
    body: undefined;
    answer: UsageOfThread;
  };
  "GET /api/v1/usage/agents/{name}": {
    query: {
      /** As it stood at this position, or the last one of this time. */
      at?: number | string;
    };
    body: undefined;
    answer: UsageOfAgent;
  };
  "GET /api/v1/log": {
    query: {
      /** What follows this position. */
      after?: number;
      /** Up to this position; by default to the head. */
      until?: number;
      /** Only events of this thread. */
      thread?: string;
      /** Only events of this type. */
      type?: EventType;
      /** How many at most. */
      limit?: number;
      /** With the text that is kept beside the events. */
      content?: boolean;
    };
    body: undefined;
    answer: Events;
  };
  "GET /api/v1/events": {
    query: {
      /** Where it stands in the log. */
      since?: number;
      /** The timeline of `since`, as `connected` named it. */
      log?: string;
      /** Only these threads, parted by commas. */
      threads?: string[];
      /** Only these agents, parted by commas. */
      agents?: string[];
      /** Only frames of these, parted by commas. */
      events?: FrameName[];
    };
    body: undefined;
    answer: string;
  };
  "POST /api/v1/ws-ticket": {
    query: {};
    body: NoBody;
    answer: Ticket;
  };
  "GET /api/v1/healthz": {
    query: {};
    body: undefined;
    answer: Healthy;
  };
  "GET /api/v1/readyz": {
    query: {};
    body: undefined;
    answer: Ready;
  };
  "GET /api/v1/errors": {
    query: {};
    body: undefined;
    answer: ErrorCodes;
  };
  "GET /api/v1/openapi.json": {
    query: {};
    body: undefined;
    answer: Record<string, unknown>;
  };
  "GET /api/v1/asyncapi.json": {
    query: {};
    body: undefined;
    answer: Record<string, unknown>;
  };
  "GET /api/v1/docs": {
    query: {};
    body: undefined;
    answer: string;
  };
  "GET /healthz": {
    query: {};
    body: undefined;
    answer: Healthy;
  };
  "GET /readyz": {
    query: {};
    body: undefined;
    answer: Ready;
  };
  "GET /errors": {
    query: {};
    body: undefined;
    answer: ErrorCodes;
  };
  "GET /openapi.json": {
    query: {};
    body: undefined;
    answer: Record<string, unknown>;
  };
  "GET /asyncapi.json": {
    query: {};
    body: undefined;
    answer: Record<string, unknown>;
  };
  "GET /docs": {
    query: {};
    body: undefined;
    answer: string;
  };
  "POST /invoke": {
    query: {};
    body: InvokeBody | ChatBody;
    answer: Invoked | string;
  };
  "POST /agents/{name}/invoke": {
    query: {};
    body: TurnBody | ChatBody;
    answer: Invoked | string;
  };
  "GET /v1/models": {
    query: {};
    body: undefined;
    answer: ModelList;
  };
  "GET /v1/tools": {
    query: {};
    body: undefined;
    answer: ToolList;
  };
  "POST /v1/tools/execute": {
    query: {};
    body: ExecuteBody;
    answer: ToolResult | Injected;
  };
  "POST /mcp": {
    query: {};
    body: McpBody;
    answer: Record<string, unknown>;
  };
  "GET /metrics": {
    query: {};
    body: undefined;
    answer: string;
  };
}
