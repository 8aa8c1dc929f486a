// The wire: what goes over REST and over /ws. Made by scripts/schemas of the server's own contract; not to be edited.
// A field with a question mark may be missing; one that may be empty says null.

/** `POST /foreign-tools/{name}/accept`: `digest` is that of what was looked at, its `offered`. */
export interface AcceptToolBody {
  digest: string;
}

/** What became of one. */
export interface Acted {
  id: string;
  /** As of the act on this one alone. */
  status: number;
  /** Why not, if it was refused. */
  error?: Refusal;
}

/** What happened after a position and up to another; buckets in which nothing is counted are left out. */
export interface Activity {
  /** Where it stands in the log. */
  after: number;
  /** Where it stands in the log. */
  until: number;
  buckets: organism__server__api__activity__Bucket[];
  /** All up to 500; of more, one a kind and bucket. */
  marks: ShownMark[];
  marks_total: number;
}

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
  /** Those under way, the oldest first, at most five. */
  handlings: OpenHandling[];
  /** How many are under way. */
  open_handlings: number;
  /** Since when the oldest waits of what waits for a start. */
  oldest_waiting_at: string | null;
  /** Who paused it, if it is paused and that is known. */
  paused_by: By | null;
  paused_at: string | null;
  /** Which others it is shown with, if it says. */
  group: string | null;
}

/** What an agent does now. It is a view and no event of the log: the latest wins. */
export interface AgentChanged {
  event: "agent_state";
  agent: string;
  state: AgentState;
  current_thread: string | null;
  paused: boolean;
  queue_depth: number;
  handlings: OpenHandling[];
  open_handlings: number;
  oldest_waiting_at: string | null;
  paused_by: By | null;
  paused_at: string | null;
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

/** The agent was paused: none of its messages starts. */
export interface AgentPausedData {
  agent: string;
  by: "failures" | "operator";
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** How many messages an agent has handled, and how many failed for good. */
export interface AgentRate {
  handled: number;
  failed: number;
}

/** The agent was resumed. */
export interface AgentResumedData {
  agent: string;
  by: "operator" | "removal";
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** What an agent does. */
export type AgentState = "idle" | "processing" | "waiting" | "paused" | "error";

/** An agent was paused or resumed. */
export interface AgentUpdated {
  event: "agent_updated";
  /** Where it stands in the log. */
  position: number;
  agent: string;
  paused: boolean;
  by: By | null;
  /** UTC, ISO 8601. */
  timestamp: string;
}

/** What waits, or waited, for a human's word. */
export interface Approval {
  id: string;
  thread_id: string;
  message_id: string;
  agent: string;
  /** Of a call that waits for consent: its payload is the preview. */
  payload_type: string | null;
  /** Of a tainted run's call that cannot be undone: why a person decides. */
  why: string | null;
  /** Of the receiver's schema; `{"erased":true}` once it was erased. */
  preview: unknown;
  /** With `payloads`: the beginning of a longer payload, which is null then. */
  payload_cut?: PayloadCut;
  /** While it is pending, what `edits` may be: of a payload its schema, else as the preview is. */
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
  /** How it was closed; null while it is pending. */
  resolved: Resolution | null;
}

/** `POST /approvals/{id}/resolve`; with `check` nothing is decided. */
export interface ApprovalBody {
  decision: "approve" | "reject";
  edits?: unknown;
  comment?: string;
  check?: boolean;
}

/** The approval's message failed or was killed. */
export interface ApprovalCancelledData {
  approval: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** What a decision would be, which was not made. */
export interface ApprovalCheck {
  /** To what it would be bound; null if the edits do not fit. */
  digest: string | null;
  /** Why the edits do not fit, every fault. */
  details: Fault[];
}

/** An approval waits no more. */
export interface ApprovalClosed {
  event: "approval";
  /** Where it stands in the log. */
  position: number;
  thread_id: string;
  approval: ClosedApproval;
  by: By | null;
  /** UTC, ISO 8601. */
  timestamp: string;
}

/** The approval was not decided in time. */
export interface ApprovalExpiredData {
  approval: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
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
  /** UTC, ISO 8601. */
  timestamp: string;
}

/** A person was asked; the content is the preview, `digest` its digest. `type` is the class of the payload if it is one, `why` says why a tainted run's call needs consent. */
export interface ApprovalRequestedData {
  approval: string;
  message: string;
  agent: string;
  step: number;
  digest: string;
  expires_at: number;
  type?: string;
  why?: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** A person decided; the content are the edits, if any. `digest` is that of what the decision is bound to. */
export interface ApprovalResolvedData {
  approval: string;
  decision: "approve" | "reject";
  comment: string;
  by: string;
  digest?: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** How an approval stands. */
export type ApprovalStatus = 
    | "pending"
    | "approved"
    | "rejected"
    | "expired"
    | "cancelled";

/** An attempt to handle a message. What has not ended is null, and so is the end that a crash left out. */
export interface Attempt {
  attempt: number;
  /** UTC, ISO 8601. */
  started_at: string;
  ended_at: string | null;
  duration_ms: number | null;
  outcome: "done" | "killed" | "retried" | "failed" | null;
  error: string | null;
  line: CodeLine | null;
}

/** An attempt to handle a message ended by failing; `next_at` is when the next one begins, null after the last. */
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
  outcome: "retried" | "failed";
  duration_ms: number | null;
  line: CodeLine | null;
  phase: "ended";
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
    | AgentUpdated
    | ReloadDone
    | RunShown
    | TextHeard
    | ModelCalled
    | IndexChanged
    | IndexProgress
    | HandlingStarted
    | HandlingEnded
    | StepShown
    | RatesShown
    | AgentChanged>;

/** What models cost in a span. */
export interface Billed {
  /** UTC, ISO 8601. */
  from: string;
  /** UTC, ISO 8601. */
  to: string;
  granularity: "hour" | "day";
  total: BilledTotal;
  /** The oldest first; those without a call are left out. */
  buckets: organism__server__api__usage__Bucket[];
}

/** The sum of the buckets. */
export interface BilledTotal {
  calls: number;
  failed_calls: number;
  input_tokens: number;
  output_tokens: number;
  tokens: number;
  /** Exact, as text. */
  cost_usd: string;
  cost_eur: string | null;
}

/** What one run may spend, and what all runs of a day may. */
export interface Budget {
  run?: Spend;
  day?: Spend;
}

/** What each turn of a session may spend, and what all its turns of a day may. */
export interface BudgetBody {
  run?: SpendBody | null;
  day?: SpendBody | null;
}

/** A model will be called and may use at most this much; `tokens` are input and output together. */
export interface BudgetReservedData {
  message: string;
  agent: string;
  step: number;
  model: string;
  provider: string;
  input_tokens: number;
  output_tokens: number;
  tokens: number;
  cost_usd: string;
  duration: number;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** A model call was settled with what it used. */
export interface BudgetSettledData {
  message: string;
  agent: string;
  step: number;
  tokens: number;
  cost_usd: string;
  duration: number;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** Who did it: a person, or the organism itself for a `reason`. */
export interface By {
  /** Whose token it was. */
  principal: string | null;
  /** The user for whom it was done. */
  user: string | null;
  /** Why, if it was the organism itself. */
  reason: "failures" | "crash_loop" | "removal" | null;
}

/** A request with an idempotency key was answered; `body` lacks its position, which lies `back` before this. The content is the whole body of an answer that shows how something then stood. */
export interface CallAnsweredData {
  key: string;
  method: string;
  path: string;
  digest: string;
  status: number;
  body: Record<string, unknown>;
  back: number;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** The function of an earlier call; `arguments` are JSON text. */
export interface CalledFunction {
  name: string;
  arguments?: string | null;
}

/** You are live, or have all up to the `until` of the address; then the connection ends. */
export interface CaughtUp {
  event: "caught_up";
  /** Where it stands in the log. */
  position: number;
}

/** An agent's configuration; null is what the model, or its own code, decides. */
export interface ChatAgent {
  name: string;
  description: string;
  model: string | null;
  /** What it may call. */
  tools: string[];
  peers: string[];
  /** Its text for administrators, else `sha256:…`. */
  system_prompt: string | null;
  max_tokens: number | null;
  temperature: number | null;
  rag_index: string | null;
  rag_top_k: number | null;
  taint: "escalate" | "allow" | null;
  budget: Record<string, unknown>;
  /** Changes with the configuration and the code. */
  version: string;
}

/** An agent to talk with. */
export interface ChatAgentHead {
  name: string;
  description: string;
  model: string | null;
  /** What it may call. */
  tools: string[];
}

/** The agents to talk with. */
export interface ChatAgentList {
  /** How many are here. */
  count: number;
  /** How many there are. */
  total: number;
  limit: number;
  /** How many come before these. */
  offset: number;
  /** The `cursor` of the next page; null on the last. */
  next: string | null;
  agents: ChatAgentHead[];
}

/** What the AI SDK's chat transport posts, with `x-ag-messages-format: vercel`: the conversation as UI messages. A page may add `agent`, `session_id` and `flags`. Nothing else is read: the SDK sends all messages each time, so the chat's `id`, `trigger` and `messageId` say nothing more. */
export interface ChatBody {
  messages: TalkMessage[];
  agent?: string | null;
  session_id?: string | null;
  on_busy?: "queue" | "reject" | "force" | "steer" | null;
  /** Wait for what is paused, instead of 503 `paused`. */
  wait?: boolean | null;
  flags?: FlagsBody | null;
}

/** The answer in the form of OpenAI's API. */
export interface ChatCompleted {
  id: string;
  object: "chat.completion";
  /** Seconds since 1970. */
  created: number;
  /** As it was asked for. */
  model: string;
  choices: CompletionChoice[];
  usage: CompletionUsage;
  /** The provider that answered. */
  served_by: string;
}

/** What came of a turn. */
export interface ChatTurn {
  /** The agent's last words. */
  reply: string;
  messages: Record<string, unknown>[];
  stop_reason: string;
  pending_interaction?: Record<string, unknown>;
  /** Of a turn that failed after it had shown something. */
  error?: RunError;
  usage: Record<string, number>;
  /** The sources that the answer names. */
  citations?: string[];
  agent: string;
  model: string | null;
  thread_id: string;
}

/** `POST /a1/agents/{name}/chat`. */
export interface ChatTurnBody {
  message: string;
  stream?: boolean | null;
  /** Wait for what is paused, instead of 503 `paused`. */
  wait?: boolean | null;
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
  resolved: Resolution;
}

/** Which one it was. */
export interface ClosedDeadLetter {
  id: string;
}

/** A line of a handler's own code; no values. */
export interface CodeLine {
  file: string;
  line: number;
  function: string;
  /** The line as it was loaded. */
  code: string;
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

/** What was wrong. Its `code` distinguishes it from a failed attempt. */
export interface CommandRefused {
  event: "error";
  /** That of the command, or null. */
  id: unknown;
  code: string;
  error: string;
  param: string | null;
  details?: Fault[];
  /** Who was first, if it is resolved already. */
  resolved?: Resolved;
  request_id: string;
}

/** `POST /v1/chat/completions`. */
export interface CompletionBody {
  model: string;
  messages: MessageBody[];
  tools?: ToolBody[] | null;
  tool_choice?: "auto" | "none" | "required" | ToolChoice | null;
  parallel_tool_calls?: boolean | null;
  response_format?: FormatBody | null;
  temperature?: number | null;
  max_tokens?: number | null;
  max_completion_tokens?: number | null;
  stream?: boolean | null;
  stream_options?: StreamOptions | null;
  n?: 1 | null;
  stop?: string | string[] | null;
  seed?: number | null;
  top_p?: number | null;
  presence_penalty?: number | null;
  frequency_penalty?: number | null;
  logit_bias?: Record<string, number> | null;
  reasoning_effort?: 
    | "none" | "minimal" | "low" | "medium" | "high" | "xhigh"
    | null;
  verbosity?: "low" | "medium" | "high" | null;
  logprobs?: false | null;
  top_logprobs?: 0 | null;
  modalities?: "text"[] | null;
  store?: boolean | null;
  service_tier?: string | null;
  metadata?: Record<string, string> | null;
  user?: string | null;
  safety_identifier?: string | null;
  prompt_cache_key?: string | null;
  prompt_cache_retention?: string | null;
  prompt_cache_options?: Record<string, unknown> | null;
  cache_control?: Record<string, unknown> | null;
}

/** The one answer. */
export interface CompletionChoice {
  index: number;
  message: CompletionMessage;
  finish_reason: "stop" | "length" | "tool_calls" | "content_filter";
}

/** What the model said, and the calls of the caller's own functions. */
export interface CompletionMessage {
  role: "assistant";
  content: string | null;
  /** What the model thought aloud. */
  reasoning_content?: string;
  tool_calls?: Record<string, unknown>[];
}

/** Tokens of all of the answer's model calls, as the provider counted them. */
export interface CompletionUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
}

/** The keys to write; one that is null gets the value of the levels below again. */
export interface ConfigBody {
  compact_strategy?: "auto" | "manual" | "off" | null;
  compact_keep_last_n?: number | null;
  compact_observation_mask?: boolean | null;
  compact_summary_model?: string | null;
  on_busy?: "queue" | "reject" | "force" | "steer" | null;
  taint?: "escalate" | "allow" | null;
  audit_prompts?: boolean | null;
  tools_enabled_default?: string[] | null;
  budget?: Budget | null;
}

/** A key of the tenant's configuration. */
export interface ConfigValue {
  value: unknown;
  /** Who says so: the program, the operator's file, or the tenant by `PUT`. */
  source: "process" | "yaml" | "db";
  /** Whether `PUT` takes it. */
  writable: boolean;
}

export interface ConfigValues {}

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

/** The token was used by this call. */
export interface ConfirmRedeemedData {
  token: string;
  message: string;
  agent: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** The token was refused: `code` says why. */
export interface ConfirmRefusedData {
  token: string;
  message: string;
  agent: string;
  code: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** A call was answered with a preview and a token; `token` is the token's digest, `digest` the call's. `version` is that of what the preview showed, if it has one. */
export interface ConfirmRequestedData {
  token: string;
  digest: string;
  message: string;
  agent: string;
  expires_at: number;
  version?: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
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
  /** The newest 100 that are pending; long previews are cut. */
  approvals: Approval[];
  /** The newest 100 that are open; long payloads are cut. */
  dead_letters: DeadLetter[];
  /** The newest 100. */
  indeterminate: Indeterminate[];
}

/** The contents of an owner, a session or thread, up to here were erased. */
export interface ContentErasedData {
  owner: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
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
  /** Those under way, the oldest first, at most five. */
  handlings: OpenHandling[];
  /** How many are under way. */
  open_handlings: number;
  /** Since when the oldest waits of what waits for a start. */
  oldest_waiting_at: string | null;
  /** Who paused it, if it is paused and that is known. */
  paused_by: By | null;
  paused_at: string | null;
  /** Which others it is shown with, if it says. */
  group: string | null;
  /** Where it stands in the log. */
  position: number;
}

/** A bound of what may be spent on a day of UTC, and how near it is. */
export interface DayBudget {
  of: "tenant" | "agent";
  /** Of the tenant or the agent. */
  name: string;
  unit: "tokens" | "usd" | "calls" | "seconds";
  limit: number;
  /** Spent, or reserved for calls under way. */
  used: number;
  /** UTC, ISO 8601. */
  resets_at: string;
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
  /** The dead letter that it failed with, and is closed with. */
  root?: string;
  /** The handler's own lines, the one that raised first. */
  traceback?: CodeLine[];
  /** Of the receiver's schema; `{"erased":true}` once it was erased. */
  payload: unknown;
  /** With `payloads`: the beginning of a longer payload, which is null then. */
  payload_cut?: PayloadCut;
  /** With `?q=`: where it was found. */
  hit?: Hit | null;
}

/** A dead letter was sent again or discarded. */
export interface DeadLetterClosed {
  event: "dead_letter";
  /** Where it stands in the log. */
  position: number;
  thread_id: string;
  status: "replayed" | "discarded";
  dead_letter: ClosedDeadLetter;
  by: By | null;
  /** UTC, ISO 8601. */
  timestamp: string;
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
  /** The dead letter that it failed with, and is closed with. */
  root?: string;
  /** The handler's own lines, the one that raised first. */
  traceback?: CodeLine[];
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
  /** UTC, ISO 8601. */
  timestamp: string;
}

/** A listener as the configuration declares it; `group` is where it is shown, `tools` are what it calls. */
export interface Declared {
  name: string;
  description: string;
  is_agent: boolean;
  peers: string[];
  payload_class: string;
  model: string | null;
  version: string;
  group?: string | null;
  tools?: string[];
}

/** A listener as the configuration declares it: those fields of an agent that only a start or a reload changes. */
export interface DeclaredAgent {
  name: string;
  description: string;
  is_agent: boolean;
  peers: string[];
  payload_class: string;
  model: string | null;
  version: string | null;
  group: string | null;
}

/** Whether there was anything to delete. */
export interface Deleted {
  deleted: boolean;
}

/** A document of the library; the library's own limits are checked by it, since tools have them too. */
export interface DocumentBody {
  id: string;
  text: string;
  metadata?: Record<string, unknown> | null;
}

/** An index is now what its store has as of `generation`, `doc_count` documents. `written` are those that are new or changed, each with its digest. `replaced`: no others are left. If the index has another embedding model now, it is `embedding_model`. */
export interface DocumentsChangedData {
  index: string;
  generation: number;
  doc_count: number;
  written?: Record<string, string>;
  deleted?: string[];
  replaced?: boolean;
  embedding_model?: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** A call of an earlier answer. */
export interface EarlierCall {
  id: string;
  type?: "function" | null;
  function: CalledFunction;
}

/** Who may write to whom, or did: replies, and what anyone sent who may write to all. */
export interface Edge {
  from: string;
  to: string;
  kind: "peer" | "tool" | "reply" | "outside";
  messages: number;
  failed: number;
  last_at: string | null;
  /** At most five, the most frequent first. */
  types: string[];
}

/** An effect was found begun and not finished, or an operator resolved it: `done` and `fail` end the step. */
export interface EffectInDoubt {
  event: "indeterminate";
  /** Where it stands in the log. */
  position: number;
  thread_id: string;
  agent: string;
  indeterminate: Question;
  message_id: string;
  step: number;
  kind: "effect";
  key: string | null;
  by: By | null;
  /** UTC, ISO 8601. */
  timestamp: string;
}

/** The vectors, in the order of the inputs. */
export interface EmbeddingList {
  object: "list";
  data: EmbeddingShown[];
  model: string;
  usage: EmbeddingUsage;
}

/** The vector of one input. */
export interface EmbeddingShown {
  object: "embedding";
  index: number;
  /** Numbers, or as `base64` their bytes: float32, little-endian. */
  embedding: number[] | string;
}

/** Tokens, as the provider counted them; those of the built-in model are estimated. */
export interface EmbeddingUsage {
  prompt_tokens: number;
  total_tokens: number;
}

/** `POST /v1/embeddings`: `dimensions` may only say what the model has. */
export interface EmbeddingsBody {
  model: string;
  input: string | string[];
  encoding_format?: "float" | "base64" | null;
  dimensions?: number | null;
  user?: string | null;
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
export interface ErrorAnswer {
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
  data: EventData;
  /** With `content=true`: its content. */
  content?: unknown;
}

/** What an event says, by its type. */
export type EventData = 
    | OrganismStartedData
    | OrganismStoppedData
    | OrganismPausedData
    | OrganismResumedData
    | OrganismReloadedData
    | AgentPausedData
    | AgentResumedData
    | TodoRegisteredData
    | TodoClosedData
    | ThreadCreatedData
    | ThreadReopenedData
    | ThreadPausedData
    | ThreadResumedData
    | ThreadCompletedData
    | ThreadFailedData
    | ThreadKilledData
    | ThreadForkedData
    | MessageSentData
    | MessageStartedData
    | MessageHandledData
    | MessageRetriedData
    | MessageFailedData
    | MessageDroppedData
    | MessageDeadData
    | MessageRefusedData
    | MessageReplayedData
    | MessageDiscardedData
    | StepStartedData
    | StepRecordedData
    | StepResolvedData
    | ApprovalRequestedData
    | ApprovalResolvedData
    | ApprovalExpiredData
    | ApprovalCancelledData
    | ConfirmRequestedData
    | ConfirmRedeemedData
    | ConfirmRefusedData
    | RunMessageData
    | RunMessageStartData
    | RunThoughtStartData
    | RunMessageDeltaData
    | RunThoughtDeltaData
    | RunMessageEndData
    | RunThoughtData
    | RunThoughtEndData
    | RunToolCallData
    | RunToolResultData
    | RunInteractionRequestData
    | RunInteractionResponseData
    | RunDataData
    | RunFileData
    | RunUsageData
    | RunErrorData
    | RunDoneData
    | SessionCreatedData
    | TurnStartedData
    | TurnAppendedData
    | TurnEndedData
    | MessageKeptData
    | SessionCompactedData
    | SessionUncompactedData
    | SessionDeletedData
    | BudgetReservedData
    | BudgetSettledData
    | ModelCalledData
    | TextsEmbeddedData
    | IndexCreatedData
    | DocumentsChangedData
    | IndexDeletedData
    | CallAnsweredData
    | TenantConfigChangedData
    | ValueSetData
    | TenantOpenedData
    | ForeignToolsAcceptedData
    | ForeignToolsChangedData
    | SpoofAttemptData
    | LoopBlockedData
    | ContentErasedData;

/** A page of the log. */
export interface EventList {
  events: Event[];
  /** The `after` of the next page, with `order=desc` its `until`; null at the end. */
  next: number | null;
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
    | "documents_changed"
    | "foreign_tools_accepted"
    | "foreign_tools_changed"
    | "index_created"
    | "index_deleted"
    | "loop_blocked"
    | "message_dead"
    | "message_discarded"
    | "message_dropped"
    | "message_failed"
    | "message_handled"
    | "message_kept"
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
    | "tenant_opened"
    | "texts_embedded"
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

/** `POST /tools/execute`: `arguments` are of the tool's `parameters`. */
export interface ExecuteBody {
  name: string;
  arguments?: Record<string, unknown> | null;
}

/** A failure of a group; `position` is where it died. */
export interface FailureAt {
  id: string;
  /** UTC, ISO 8601. */
  timestamp: string;
  /** Where it stands in the log. */
  position: number;
}

/** Failures that are alike: same agent, code and line; refused sends, and what never began: same reason. */
export interface FailureGroup {
  group: string;
  agent: string;
  code: string;
  line: CodeLine | null;
  /** That of the newest. */
  reason: string;
  /** How many are open; what failed with one is not counted. */
  count: number;
  newest: FailureAt;
  oldest: FailureAt;
}

/** Open failures in groups, the group with the newest first. */
export interface FailureGroupList {
  /** How many are here. */
  count: number;
  /** How many there are. */
  total: number;
  limit: number;
  /** How many come before these. */
  offset: number;
  /** The `cursor` of the next page; null on the last. */
  next: string | null;
  groups: FailureGroup[];
}

/** One of several things that are wrong. */
export interface Fault {
  param: string;
  message: string;
}

/** You read slowly, and are served from the log now: said again once a second until `caught_up`. */
export interface FellBehind {
  event: "fell_behind";
  /** Where it stands in the log. */
  position: number;
  /** How old the first event is that you have not got. */
  lag_ms: number;
}

/** What a file has become. */
export interface FileTaken {
  index_id: string;
  /** The file's name: `path` of its documents' metadata. */
  source: string;
  /** How many; none if the file has no text. */
  documents: number;
  /** What goes on with the index; null if all is embedded. */
  work: Work | null;
}

/** What was sent of it. */
export interface FilterSaid {
  threads?: string[];
  agents?: string[];
  events?: FrameName[];
  /** Of a payload with more bytes of JSON than this only the beginning, as `payload_cut`. */
  payloads?: number;
}

/** What the caller wants; null counts as absent. */
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
  /** Of a run that failed after it had shown something. */
  error?: RunError;
}

/** A tool of an MCP server: what was accepted of it, and what it is now. */
export interface ForeignTool {
  name: string;
  server: string;
  /** What is waiting is off until it is accepted. */
  status: "accepted" | "waiting";
  /** The digest of name, description and schema that were accepted; empty if none were. */
  accepted: string;
  /** That of what is offered instead and waits; empty if nothing does. */
  offered: string;
  /** Where it stands in the log. */
  position: number;
  /** What its server says of it now; null if it is not known. */
  description: string | null;
  /** And which arguments it says that it takes. */
  parameters: Record<string, unknown> | null;
}

/** The tools of MCP servers that were seen, by name. */
export interface ForeignToolList {
  /** How many are here. */
  count: number;
  /** How many there are. */
  total: number;
  limit: number;
  /** How many come before these. */
  offset: number;
  /** The `cursor` of the next page; null on the last. */
  next: string | null;
  foreign_tools: ForeignTool[];
}

/** Tools of an MCP server, by their listeners, and the digests of what was accepted: at first sight, or by hand. */
export interface ForeignToolsAcceptedData {
  server: string;
  tools: Record<string, string>;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** What the server offers now in place of what was accepted, by digests: it is off. Empty: nothing else any more. */
export interface ForeignToolsChangedData {
  server: string;
  tools: Record<string, string>;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** The form of the answer's text. */
export interface FormatBody {
  type: "text" | "json_object" | "json_schema";
  json_schema?: SchemaBody | null;
}

/** What was found, of each kind the newest. */
export interface Found {
  agents: FoundAgent[];
  threads: FoundThread[];
  messages: FoundMessage[];
  /** Whether every payload was searched; `false`: only the newest. */
  complete: boolean;
}

/** An agent whose name has the text. */
export interface FoundAgent {
  name: string;
  description: string;
}

/** A message whose id begins or ends with the text, or whose payload has it. */
export interface FoundMessage {
  id: string;
  thread_id: string;
  from: string;
  to: string;
  payload_type: string;
  /** UTC, ISO 8601. */
  timestamp: string;
  /** Where it stands in the log. */
  position: number;
  /** Where its payload has the text; null if its id alone has it. */
  hit: Hit | null;
}

/** A thread whose id begins or ends with the text, or whose title has it. */
export interface FoundThread {
  id: string;
  title: string | null;
  status: ThreadStatus;
}

/** The name of a frame. */
export type FrameName = 
    | "agent_state"
    | "agent_updated"
    | "approval"
    | "dead_letter"
    | "error"
    | "handling"
    | "indeterminate"
    | "library"
    | "message"
    | "organism_state"
    | "rates"
    | "reload"
    | "run"
    | "step"
    | "thread_created"
    | "thread_updated"
    | "usage";

/** A function of the caller's; `parameters` is the JSON Schema of its arguments. */
export interface FunctionBody {
  name: string;
  description?: string | null;
  parameters?: Record<string, unknown> | null;
  strict?: boolean | null;
  cache_control?: Record<string, unknown> | null;
}

/** What stands under `data`. */
export interface Given {
  inputs: Inputs;
}

/** Who may write to whom, and what they did lately. */
export interface Graph {
  nodes: Node[];
  edges: Edge[];
}

/** The failures of a group that died up to a position, the oldest first. */
export interface GroupBody {
  group: string;
  until: number;
}

/** An attempt to handle a message ended; one that failed ends with `error`. Or a message that waited starts no more: it was `unread`, `appended` to a running turn, or `dropped` by a kill. */
export interface HandlingEnded {
  event: "handling";
  /** Where it stands in the log. */
  position: number;
  thread_id: string;
  message_id: string;
  agent: string;
  phase: "ended";
  attempt: number | null;
  outcome: "done" | "killed" | "unread" | "appended" | "dropped";
  duration_ms: number | null;
  /** UTC, ISO 8601. */
  timestamp: string;
}

/** An attempt to handle a message began, and ends the one before it that a crash or a stop left open. */
export interface HandlingStarted {
  event: "handling";
  /** Where it stands in the log. */
  position: number;
  thread_id: string;
  message_id: string;
  agent: string;
  phase: "started";
  attempt: number;
  /** Why again: empty for the first. */
  after: "" | "retry" | "death" | "stop";
  /** UTC, ISO 8601. */
  timestamp: string;
}

/** The process answers. */
export interface Healthy {
  status: "ok";
}

/** The first place where a payload has the text: a piece of what the payload says, and where in it the text is. */
export interface Hit {
  message_id: string;
  text: string;
  /** How many characters of the piece come before the text. */
  start: number;
  /** Where the text ends in the piece. */
  end: number;
}

/** What to act on; one that is named twice is acted on once. */
export interface IdsBody {
  ids: string[];
}

/** Where an image lies: in the address itself, or where the model's provider fetches it. */
export interface ImageAddress {
  url: string;
  detail?: "auto" | "low" | "high" | null;
}

/** An image in a user's message, for models of providers that take images. */
export interface ImagePart {
  type: "image_url";
  image_url: ImageAddress;
  cache_control?: Record<string, unknown> | null;
}

/** A session of a line; of one that was deleted nothing but its id is known. */
export interface InLine {
  id: string;
  deleted: boolean;
  /** UTC, ISO 8601. */
  created_at?: string;
  archived_at?: string | null;
}

/** An unsafe effect that may or may not have happened. */
export interface Indeterminate {
  /** `MESSAGE:STEP`. */
  id: string;
  thread_id: string;
  message_id: string;
  agent: string;
  step: number;
  /** The key that the effect got. */
  key: string;
  /** When it was found open. UTC, ISO 8601. */
  since: string;
  /** Where it stands in the log. */
  position: number;
  /** When it began; null in older logs. */
  started_at: string | null;
}

/** `POST /indeterminate/{id}/resolve`: `result` belongs to `done`. */
export interface IndeterminateBody {
  outcome: "done" | "redo" | "fail";
  result?: unknown;
}

/** Open questions, newest first. */
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

/** An index of the library began, was changed or deleted. */
export interface IndexChanged {
  event: "library";
  /** Where it stands in the log. */
  position: number;
  index: string;
  change: "created" | "changed" | "deleted";
  doc_count: number;
  /** What makes its vectors. */
  embedding_model: string;
  /** UTC, ISO 8601. */
  timestamp: string;
}

/** An index began with these documents, each with its digest; its rows in the store are of `generation`. */
export interface IndexCreatedData {
  index: string;
  generation: number;
  embedding_model: string;
  documents: Record<string, string>;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** An index was deleted with all of its documents. */
export interface IndexDeletedData {
  index: string;
  generation: number;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** How far the background is with an index; `work` is null once it is done. It is no event: the latest wins. */
export interface IndexProgress {
  event: "library";
  index: string;
  change: "progress";
  doc_count: number;
  /** What makes its vectors. */
  embedding_model: string;
  work: Work | null;
  /** UTC, ISO 8601. */
  timestamp: string;
}

/** `POST /a1/rag/indices/{index_id}/documents` and `…/append`. */
export interface IngestBody {
  documents: DocumentBody[];
  /** Of a new index; by default the default one. */
  embedding_model?: string | null;
}

/** What came into an index. */
export interface Ingested {
  index_id: string;
  /** How many documents the request had. */
  ingested: number;
  /** How many the index has now. */
  doc_count: number;
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

/** What the agent gets: the conversation so far, its next message alone, or a payload of its class. */
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
  on_busy?: "queue" | "reject" | "force" | "steer" | null;
  /** Wait for what is paused, instead of 503 `paused`. */
  wait?: boolean | null;
  flags?: FlagsBody | null;
}

/** The turn of an agent, all at once. */
export interface Invoked {
  data: Output;
  session_id: string | null;
  thread_id: string;
  /** In a session: where the message was taken up. */
  position?: number;
}

/** End a thread's whole tree. */
export interface KillCommand {
  cmd: "kill";
  thread_id: string;
  /** Of any kind, up to 200 bytes of JSON; the answer carries it too. */
  id?: unknown;
}

/** A document of an index. */
export interface LibraryDocument {
  id: string;
  text: string;
  metadata: Record<string, unknown>;
}

/** Documents of an index, in the order in which their ids came first. */
export interface LibraryDocumentList {
  /** How many are here. */
  count: number;
  /** How many there are. */
  total: number;
  limit: number;
  /** How many come before these. */
  offset: number;
  /** The `cursor` of the next page; null on the last. */
  next: string | null;
  documents: LibraryDocument[];
}

/** How far an index is embedded. */
export interface LibraryEmbedding {
  index_id: string;
  embedding_model: string;
  doc_count: number;
  /** How many of them have vectors; words find the others too. */
  embedded: number;
  /** Why the last attempt failed; another one follows by itself. */
  error: string | null;
}

/** The indices, oldest first. */
export interface LibraryIndexList {
  /** How many are here. */
  count: number;
  /** How many there are. */
  total: number;
  limit: number;
  /** How many come before these. */
  offset: number;
  /** The `cursor` of the next page; null on the last. */
  next: string | null;
  indices: ShownIndex[];
}

/** Bounds of the whole organism. Times are in seconds; `pause_after_failures` 0 means never (G8). Where `max_concurrent_per_agent` is left out, it depends on what a listener does. */
export interface Limits {
  max_concurrent_handlers?: number;
  max_concurrent_per_agent?: number;
  max_blocking_threads?: number;
  max_queue_per_agent?: number;
  max_open_per_thread?: number;
  max_depth?: number;
  max_steps_per_handling?: number;
  max_payload_bytes?: number;
  handler_timeout_s?: number;
  ask_timeout_s?: number;
  approval_expires_s?: number;
  max_tokens_per_thread?: number;
  pause_after_failures?: number;
}

/** The sessions before this one and after it, nearest first, and the summaries with which they begin. */
export interface Lineage {
  backward: InLine[];
  forward: InLine[];
  summaries: Record<string, unknown>[];
}

/** The event loop was blocked. */
export interface LoopBlockedData {
  duration: number;
  stack: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
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

/** Who calls, and what the token grants. */
export interface Me {
  tenant: string;
  /** Who holds the token. */
  principal: string;
  /** The user for whom this request is, as its `SPASS-User-Id` names one. */
  user: string | null;
  /** As they were granted, narrowed ones too. */
  scopes: string[];
  /** The only models it may use; null: all. */
  models: string[] | null;
  /** When the token ends; null: never. */
  expires_at: string | null;
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
  /** With `payloads`: the beginning of a longer payload, which is null then. */
  payload_cut?: PayloadCut;
  /** UTC, ISO 8601. */
  timestamp: string;
  /** Where it stands in the log. */
  position: number;
  /** The message whose handling led to it. */
  cause: string | null;
  /** With `?handlings=true`: what has become of it. */
  handling?: MessageHandling;
  /** With `?xml=true`: the recorded envelope, byte for byte; null once it was erased. */
  xml?: string | null;
  /** With `?q=`: where it was found. */
  hit?: Hit | null;
}

/** A message of the conversation; what answers say besides, such as `reasoning_content`, is not read. */
export interface MessageBody {
  role: "system" | "developer" | "user" | "assistant" | "tool";
  content?: string | unknown[] | null;
  name?: string | null;
  tool_calls?: EarlierCall[] | null;
  tool_call_id?: string | null;
  /** Read where there is no `content`. */
  refusal?: string | null;
  audio?: unknown;
  function_call?: unknown;
  cache_control?: Record<string, unknown> | null;
}

/** The message became a dead letter; `sent` is the position of its `message_sent`. `traceback` are the handler's own lines, the one that raised first. `root` is the dead letter with which an ask of its handling failed, and so the handling. Whether it was a `reply` is in no older log. */
export interface MessageDeadData {
  message: string;
  agent: string;
  from: string;
  type: string;
  sent: number;
  code: 
    | "handler_error"
    | "killed_process"
    | "listener_gone"
    | "replay_diverged"
    | "schema_changed"
    | "stuck"
    | "timeout"
    | "too_many_steps"
    | "wrong_return";
  reason: string;
  attempts: number;
  traceback?: CodeLine[];
  root?: string;
  reply?: boolean;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** The dead letter was discarded. */
export interface MessageDiscardedData {
  message: string;
  failed: boolean;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** The message was killed while it waited for its start, after so many `attempts`. */
export interface MessageDroppedData {
  message: string;
  agent: string;
  attempts?: number;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** The last attempt failed in the `line` of the handler; `message_dead` follows in the same unit. */
export interface MessageFailedData {
  message: string;
  agent: string;
  attempt: number;
  error: string;
  duration?: number;
  line?: CodeLine;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** The message was handled by its `attempt`; 0 if none had begun. Or `delivered` to the console, `answered` an ask, `appended` to a running turn, or `unread` by anyone. */
export interface MessageHandledData {
  message: string;
  agent: string;
  outcome: 
    | "answered"
    | "appended"
    | "delivered"
    | "done"
    | "killed"
    | "unread";
  duration: number;
  attempt?: number;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** What has become of a message. */
export interface MessageHandling {
  state: 
    | "queued"
    | "running"
    | "retrying"
    | "done"
    | "failed"
    | "killed"
    | "unread";
  attempts: Attempt[];
}

/** A message that a successor begins with; it is the content. */
export interface MessageKeptData {
  message: string;
  role: "assistant" | "tool" | "user";
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** Messages, by default oldest first. */
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

/** A send was refused and became a dead letter; `message` is the id of the send that was not made. */
export interface MessageRefusedData {
  message: string;
  from: string;
  to: string;
  type: string;
  code: "routing" | "validation";
  why: 
    | "depth"
    | "flood"
    | "not_a_peer"
    | "schema"
    | "unknown_receiver";
  reason: string;
  authors?: string[];
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** The dead letter `dead` was sent again as `message`. `failed`: a failed handling, no refused send. */
export interface MessageReplayedData {
  dead: string;
  message: string;
  edited: boolean;
  failed: boolean;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** The attempt failed in the `line` of the handler, and another one follows at `next_at`. */
export interface MessageRetriedData {
  message: string;
  agent: string;
  attempt: number;
  error: string;
  next_at: number;
  duration?: number;
  line?: CodeLine;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** A message was sent. */
export interface MessageSent {
  event: "message";
  /** Where it stands in the log. */
  position: number;
  message: Message;
  /** True of an answer to an `ask`: its step takes it, so it waits for no start. */
  answers?: boolean;
}

/** A message was sent; its payload and envelope are the record's content. `type` names the payload's class; `token` is the call token in the envelope. `authors` names whose text it may contain: agents, and listeners that bring text from outside. `notes` say what was repaired in the payload. Of a reply: `call` is the request whose call it is handled in, `class` its class as `module:Class`. `step` is (message, number) of the ask that sent it, `answers` of the ask that it answers. Of an injection: `caller_depth`, the runs of agents around the call that made it, and `caller_request`, the request it was made in. Of a replayed dead letter: `calls` are (request, caller), innermost first, `root` is that of its chain, `first` the message that was sent first, with whose id the keys of its effects begin; of a request in it, the same request of the first run. */
export interface MessageSentData {
  message: string;
  from: string;
  to: string;
  type: string;
  depth: number;
  token: string;
  call?: string;
  reply?: boolean;
  class?: string;
  step?: [string, number];
  answers?: [string, number];
  calls?: [string, string][];
  root?: Root;
  caller_depth?: number;
  caller_request?: string;
  notes?: string[];
  authors?: string[];
  first?: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** An attempt to handle the message began; `after`: why again. It is in the unit that makes the start possible. */
export interface MessageStartedData {
  message: string;
  agent: string;
  attempt: number;
  deadline: number;
  version: string;
  after?: "death" | "retry" | "stop";
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
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
  /** The provider that answered, whatever model was requested. */
  served_by: string;
  input_tokens: number;
  output_tokens: number;
  /** Exact, as text. */
  cost_usd: string;
  /** The provider's own figure, the price, or nothing. */
  cost_source: "upstream" | "price" | "zero";
  attempts: number;
  error: string | null;
  /** In milliseconds, to the microsecond. */
  duration_ms: number;
  /** UTC, ISO 8601. */
  timestamp: string;
}

/** A model was called; `prompt` is the digest of what was sent. Error `lost`: the process died meanwhile. */
export interface ModelCalledData {
  message: string;
  agent: string;
  step: number;
  model: string;
  provider: string;
  input_tokens: number;
  output_tokens: number;
  cost_usd: string;
  cost_source: "price" | "upstream" | "zero";
  attempts: number;
  duration: number;
  prompt?: string;
  error?: StepError;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
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
  /** What it is, unless it is a model of a provider. */
  description: string;
}

/** What one model was called for. */
export interface ModelUsage {
  /** Its name in organism.yaml. */
  model: string;
  /** The provider that answered, whatever model was requested. */
  served_by: string;
  calls: number;
  input_tokens: number;
  output_tokens: number;
  tokens: number;
  /** Exact, as text. */
  cost_usd: string;
}

/** The function that is to be called. */
export interface NamedFunction {
  name: string;
}

/** What a start says of the organism. What ran before it waits for a start again. */
export interface NewLife {
  name: string;
  /** Changes with the configuration and the code. */
  version: string;
  agents: DeclaredAgent[];
}

/** A command that needs no fields. */
export interface NoBody {}

/** Who writes or is written to, and what it did in the window. */
export interface Node {
  name: string;
  kind: "agent" | "listener" | "tool" | "console" | "system";
  description: string | null;
  payload_class: string | null;
  /** Which others it is shown with, if it says. */
  group: string | null;
  /** It may write to anyone. */
  any_peer: boolean;
  handled: number;
  failed: number;
  /** How often it asked a person. */
  asked: number;
  /** Exact, as text. */
  cost_usd: string;
  /** Half of its handlings took at most so long, within 6 %. */
  p50_ms: number | null;
  /** 19 of 20 handlings took at most so long, within 6 %. */
  p95_ms: number | null;
}

/** A handling that is under way. */
export interface OpenHandling {
  message_id: string;
  thread_id: string;
  agent: string;
  payload_type: string | null;
  attempt: number;
  /** UTC, ISO 8601. */
  started_at: string;
  /** Of several a person's word, else what it has waited for longest. */
  waits_for: WaitsFor | null;
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
  waiting_for_people: WaitingForPeople;
  /** Who paused it, if it is paused and that is known. */
  paused_by: By | null;
  paused_at: string | null;
}

/** The organism was started, paused, resumed or stopped. */
export interface OrganismChanged {
  event: "organism_state";
  /** Where it stands in the log. */
  position: number;
  status: "running" | "paused" | "stopping";
  by: By | null;
  /** UTC, ISO 8601. */
  timestamp: string;
  /** Of a start alone. */
  started?: NewLife;
}

/** The organism was paused: no message starts. */
export interface OrganismPausedData {
  by: "crash_loop" | "operator";
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** A changed configuration took effect; `listeners` are all of it, `config` is its digest. */
export interface OrganismReloadedData {
  added: string[];
  removed: string[];
  updated: string[];
  listeners: Declared[];
  config: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** The organism was resumed. */
export interface OrganismResumedData {
  by: "operator";
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** The section `organism`. */
export interface OrganismSection {
  name: string;
  imports: string[];
  /** The file that every prompt begins with; true: the usual one, false: none. */
  charter: string | boolean;
}

/** Life number `life` began. `removed`: listeners of the last life only; `clean`: that life was stopped. */
export interface OrganismStartedData {
  name: string;
  version: string;
  config: string;
  listeners: Declared[];
  removed: string[];
  life: number;
  clean: boolean;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** How the organism stands. */
export type OrganismStatus = "running" | "starting" | "paused" | "stopping";

/** The life ended gracefully. */
export interface OrganismStoppedData {
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** What came of it. */
export interface Output {
  outputs: Folded;
}

/** `PATCH /a1/rag/indices/{index_id}/documents/{doc_id}`: at least one of the two. */
export interface PatchDocumentBody {
  text?: string | null;
  metadata?: Record<string, unknown> | null;
}

/** Pause an agent or a thread: one of them is named. */
export interface PauseCommand {
  cmd: "pause";
  agent?: string | null;
  thread_id?: string | null;
  /** Of any kind, up to 200 bytes of JSON; the answer carries it too. */
  id?: unknown;
}

/** What is shown of a payload that is longer than was asked for. */
export interface PayloadCut {
  /** How long its JSON is. */
  bytes: number;
  /** The beginning of its JSON. */
  text: string;
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

/** An unsafe effect of which it is unknown whether it happened, or how an operator resolved it. */
export interface Question {
  /** `MESSAGE:STEP`. */
  id: string;
  message_id: string;
  step: number;
  status: "open" | "done" | "redo" | "fail";
  /** Of an open one: when it began; null in older logs. */
  started_at?: string | null;
}

/** What moved in so many seconds: at most once a second, and never while nothing moves. */
export interface RatesShown {
  event: "rates";
  seconds: number;
  agents: Record<string, AgentRate>;
  edges: [string, string, number, number][];
}

/** It takes work. */
export interface Ready {
  status: "running" | "paused";
}

/** `POST /a1/rag/indices/{index_id}/reembed`. */
export interface ReembedBody {
  /** One of `embeddings`, or `builtin`. */
  embedding_model: string;
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
  /** What was requested and is not available. */
  requested?: string;
  /** What is available instead. */
  supported?: string[];
  /** Who was first, if it is resolved already. */
  resolved?: Resolved;
  /** Stands in the server's log, too. */
  request_id: string;
}

/** What the model said instead of an answer; it is read as text. */
export interface RefusalPart {
  type: "refusal";
  refusal: string;
}

/** The configuration was read again: the names of listeners that changed, and all `agents` from now on. */
export interface ReloadDone {
  event: "reload";
  /** Where it stands in the log. */
  position: number;
  added: string[];
  removed: string[];
  updated: string[];
  agents: DeclaredAgent[];
  /** UTC, ISO 8601. */
  timestamp: string;
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

/** How an approval was closed. */
export interface Resolution {
  by: By | null;
  /** UTC, ISO 8601. */
  at: string;
  decision: "approve" | "reject" | "expired" | "cancelled";
  /** Why, in the words of who decided. */
  comment: string;
  /** To what the decision is bound; null if nobody decided. */
  digest: string | null;
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

/** Who has resolved what waited for a person. */
export interface Resolved {
  by: By | null;
  /** UTC, ISO 8601. */
  at: string;
  /** What it was. */
  decision: string;
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

/** `POST /a1/rag/indices/{index_id}/query`: `filter` names metadata and the values that they must have. Null counts as absent. */
export interface RetrieveBody {
  query: string;
  top_k?: number | null;
  mode?: "vector" | "keyword" | "hybrid" | null;
  filter?: Record<string, string | number | boolean | null> | null;
}

/** What was found, the best first. */
export interface Retrieved {
  results: RetrievedDocument[];
  mode: "vector" | "keyword" | "hybrid";
  embedding_model: string;
}

/** A document that was found. */
export interface RetrievedDocument {
  id: string;
  text: string;
  metadata: Record<string, unknown>;
  /** The higher the better, among those of this answer alone; by `vector` it is a cosine. */
  score: number;
  /** By what it was found: it has a word of the query, its vector is among the nearest, or both. */
  matched: Array<"keyword" | "vector">;
  /** The cosine of the two vectors, from 0 on; null where none were compared. */
  similarity: number | null;
  /** Where `text` has words of the query: the first character, and the one behind the last. */
  highlights: [number, number][];
}

/** How often a handling is tried, and how long it waits in between (seconds, growing to `max_delay_s`). */
export interface Retry {
  attempts?: number;
  base_delay_s?: number;
  max_delay_s?: number;
}

/** The injection at the root of a causal chain, which decides the rights of all that follows from it. `principal` injected it (None: the host program) for `user`; `depth` counts the agent runs around it. */
export type Root = [string | null, number, string | null];

/** A refusal as JSON-RPC has it. */
export interface RpcError {
  jsonrpc: "2.0";
  /** The request's, if that could be read. */
  id: string | number | null;
  error: RpcRefusal;
}

/** An error of JSON-RPC. */
export interface RpcRefusal {
  /** -32700, -32600, -32603, or one of the protocol's. */
  code: number;
  /** What went wrong. */
  message: string;
  /** All of it, as `Refusal`, or as the protocol has it. */
  data?: unknown;
}

/** What people see of the handling of a message: thoughts, calls of tools, text. */
export interface Run {
  entries: RunEntryShown[];
  /** The `after` of the next page; null at the end. */
  next: number | null;
}

/** Anything for a front end. */
export interface RunDataData {
  message: string;
  agent: string;
  id?: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** The last entry of the run. */
export interface RunDoneData {
  message: string;
  agent: string;
  id?: string;
  stopReason: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** An entry of a run, as the log has it. */
export interface RunEntryShown {
  /** Where it stands in the log. */
  position: number;
  type: EntryType;
  /** What the entry says, by its type; `{"erased":true}` once it was erased. */
  data: unknown;
  /** UTC, ISO 8601. */
  at: string;
}

/** Why a run failed. */
export interface RunError {
  code: string;
  message: string;
}

/** A fault that the run shows. */
export interface RunErrorData {
  message: string;
  agent: string;
  id?: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** A file. */
export interface RunFileData {
  message: string;
  agent: string;
  id?: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** A person has to answer. */
export interface RunInteractionRequestData {
  message: string;
  agent: string;
  id?: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** A person has answered. */
export interface RunInteractionResponseData {
  message: string;
  agent: string;
  id?: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** A whole message of the agent. */
export interface RunMessageData {
  message: string;
  agent: string;
  id?: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** The next piece of a message. */
export interface RunMessageDeltaData {
  message: string;
  agent: string;
  id?: string;
  offset: number;
  length: number;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** A message is complete. */
export interface RunMessageEndData {
  message: string;
  agent: string;
  id?: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** A message begins, or one that has not ended begins `again`. */
export interface RunMessageStartData {
  message: string;
  agent: string;
  id?: string;
  again?: boolean;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
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
  /** UTC, ISO 8601. */
  timestamp: string;
}

/** A whole thought. */
export interface RunThoughtData {
  message: string;
  agent: string;
  id?: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** The next piece of a thought. */
export interface RunThoughtDeltaData {
  message: string;
  agent: string;
  id?: string;
  offset: number;
  length: number;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** A thought is complete. */
export interface RunThoughtEndData {
  message: string;
  agent: string;
  id?: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** A thought begins, or one that has not ended begins `again`. */
export interface RunThoughtStartData {
  message: string;
  agent: string;
  id?: string;
  again?: boolean;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** A tool is called. */
export interface RunToolCallData {
  message: string;
  agent: string;
  id?: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** A tool has answered. */
export interface RunToolResultData {
  message: string;
  agent: string;
  id?: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** The tokens of one model call. */
export interface RunUsageData {
  message: string;
  agent: string;
  id?: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** The JSON Schema that the answer follows. */
export interface SchemaBody {
  name: string;
  schema: Record<string, unknown>;
  description?: string | null;
  strict?: boolean | null;
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
  invoke?: Array<"batch" | "stream" | "force">;
  /** As `prompt`, in an agent's file. */
  system_prompt?: string;
  max_tokens?: number;
  temperature?: number;
  rag_index?: string;
  rag_top_k?: number;
  taint?: "escalate" | "allow";
  group?: string;
}

/** A user's conversation with an agent; what it was not given is as the tenant's configuration says now. */
export interface Session {
  id: string;
  agent: string;
  user_id: string;
  /** UTC, ISO 8601. */
  created_at: string;
  /** UTC, ISO 8601. */
  last_activity: string;
  message_count: number;
  compact_strategy: "auto" | "manual" | "off";
  compact_keep_last_n: number;
  compact_observation_mask: boolean;
  parent_session_id: string | null;
  successor_session_id: string | null;
  archived_at: string | null;
  status: SessionStatus;
  /** How many have begun. */
  turns: number;
  /** What its last model call took and gave, with which the next turn begins; null before one. */
  context_tokens: number | null;
  /** Of all its turns: a decimal number. */
  cost_usd: string;
  /** Its first message's first text; null before one, and once it was erased. */
  title: string | null;
  /** How many tokens its model takes, if that is known. */
  context_window: number | null;
}

/** `POST /a1/agents/{name}/sessions`: what is left out is as the tenant's configuration says. */
export interface SessionBody {
  compact_strategy?: "auto" | "manual" | "off" | null;
  compact_keep_last_n?: number | null;
  compact_observation_mask?: boolean | null;
  budget?: BudgetBody | null;
}

/** A compaction: the source is archived, and its successor begins with the summary. */
export interface SessionCompacted {
  source_session_id: string;
  successor_session_id: string;
  summary_id: string;
  summary_text: string;
  /** About how many the source had come to. */
  tokens: number;
}

/** The session was archived. Its messages before the position `before` are the `summary` in its successor. */
export interface SessionCompactedData {
  successor: string;
  before: number;
  summary: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** A session of `user` with `agent` began; as the successor of `parent` with the messages that follow. `authors` names whose text those may contain. */
export interface SessionCreatedData {
  agent: string;
  user: string;
  settings?: SessionSettings;
  parent?: string;
  authors?: string[];
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** The session was deleted: it is shown no more, and its contents are erased. */
export interface SessionDeletedData {
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** Sessions, newest activity first. */
export interface SessionList {
  /** How many are here. */
  count: number;
  /** How many there are. */
  total: number;
  limit: number;
  /** How many come before these. */
  offset: number;
  /** The `cursor` of the next page; null on the last. */
  next: string | null;
  sessions: Session[];
}

/** A message of a session. */
export interface SessionMessage {
  id: string;
  role: "user" | "assistant" | "tool";
  content: string;
  /** UTC, ISO 8601. */
  created_at: string;
  /** When a compaction summarised it. */
  compacted_at: string | null;
  /** That of its turn. */
  thread_id: string;
  tool_call_id?: string;
  tool_name?: string;
  input?: unknown;
  is_error?: boolean;
  /** Of the last one of a turn that died, or was withheld: why. */
  stop_reason?: string;
  erased?: boolean;
}

/** Messages of a session, oldest first. */
export interface SessionMessageList {
  /** How many are here. */
  count: number;
  /** How many there are. */
  total: number;
  limit: number;
  /** How many come before these. */
  offset: number;
  /** The `cursor` of the next page; null on the last. */
  next: string | null;
  messages: SessionMessage[];
}

/** What the caller wants of a session; what is None is as the tenant's configuration says. `budget`: `run` bounds what a turn spends, `day` all of a day: `tokens`, `usd`, `calls`, `seconds`. */
export interface SessionSettings {
  compact_strategy?: "auto" | "manual" | "off" | null;
  compact_keep_last_n?: number | null;
  compact_observation_mask?: boolean | null;
  budget?: Record<string, Record<string, number | string>> | null;
}

/** `busy`: a turn runs or waits. */
export type SessionStatus = "idle" | "busy" | "archived" | "deleted";

/** What came of a turn of a session. */
export interface SessionTurn {
  /** The agent's last words. */
  reply: string;
  messages: Record<string, unknown>[];
  stop_reason: string;
  pending_interaction?: Record<string, unknown>;
  /** Of a turn that failed after it had shown something. */
  error?: RunError;
  usage: Record<string, number>;
  /** The sources that the answer names. */
  citations?: string[];
  agent: string;
  model: string | null;
  thread_id: string;
  session_id: string;
}

/** `POST /a1/agents/{name}/sessions/{sid}/messages`. `on_busy`: what becomes of it while another turn is open, if not what the tenant's configuration says. `on_disconnect`: `kill` ends the turn if the client leaves before its end. */
export interface SessionTurnBody {
  message: string;
  stream?: boolean | null;
  /** Wait for what is paused, instead of 503 `paused`. */
  wait?: boolean | null;
  on_busy?: "queue" | "reject" | "force" | "steer" | null;
  on_disconnect?: "continue" | "kill";
}

/** The session was archived; its successor begins with the whole history. */
export interface SessionUncompactedData {
  successor: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** What became of each. */
export interface SeveralActed {
  results: Acted[];
  /** Of a group: how many are still open, those refused among them. */
  left: number;
}

/** An index of the library, who reads it, and what goes on with it in the background. */
export interface ShownIndex {
  id: string;
  doc_count: number;
  /** What made its vectors. */
  embedding_model: string;
  /** UTC, ISO 8601. */
  created_at: string;
  /** The agents whose `rag_index` it is, by the configuration of now. */
  used_by: string[];
  /** Null if nothing goes on, and with `at`. */
  work: Work | null;
}

/** Something that stands out; of `count` of its kind in a bucket the last one. */
export interface ShownMark {
  /** Where it stands in the log. */
  position: number;
  /** UTC, ISO 8601. */
  at: string;
  kind: 
    | "failure"
    | "question"
    | "uncertain"
    | "start"
    | "stop"
    | "reload"
    | "pause"
    | "resume";
  count: number;
  thread_id?: string;
  agent?: string;
}

/** Upper bounds of what may be spent; None is no bound, 0 forbids. */
export interface Spend {
  tokens?: number;
  usd?: number;
  calls?: number;
  seconds?: number;
}

/** What may be spent at most; what is left out has no bound, 0 forbids. */
export interface SpendBody {
  tokens?: number | null;
  usd?: number | null;
  calls?: number | null;
  seconds?: number | null;
}

/** An injected envelope made a false claim. */
export interface SpoofAttemptData {
  field: string;
  claimed: string;
  actual: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** How a step or a call failed. Of an ask also why, and the dead letter that it comes from. Of a model call: whether the same call would fail again, and how long the provider asks to wait. */
export interface StepError {
  code: string;
  message: string;
  cause?: string;
  dead_letter?: string;
  is_final?: boolean;
  retry_after_s?: number | null;
}

/** How a step failed. */
export interface StepFailure {
  code: string;
  message: string;
}

/** A step got its result, which is the record's content (an ask has its reply instead), or its error. What it waited for stands here as in `step_started`, which a pure effect has none of. */
export interface StepRecordedData {
  message: string;
  agent: string;
  step: number;
  kind: 
    | "approve"
    | "ask"
    | "complete"
    | "effect"
    | "now"
    | "random"
    | "steer"
    | "uuid";
  input: string;
  error?: StepError;
  place?: string;
  effect?: "idempotent" | "pure" | "unsafe";
  approval?: string;
  key?: string;
  to?: string;
  model?: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** An operator said how the unsafe effect `key` ended; with `done` the content is its result. */
export interface StepResolvedData {
  message: string;
  agent: string;
  step: number;
  outcome: "done" | "fail" | "redo";
  key?: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** A handling began to wait in a step, or waits no more: what it waits for depends on `kind`. A step that has no end of its own is over with its attempt. */
export interface StepShown {
  event: "step";
  /** Where it stands in the log. */
  position: number;
  thread_id: string;
  message_id: string;
  agent: string;
  step: number;
  kind: "ask" | "complete" | "approve" | "effect";
  phase: "started" | "ended";
  /** UTC, ISO 8601. */
  timestamp: string;
  error: StepFailure | null;
  to?: string | null;
  model?: string | null;
  approval?: string | null;
  key?: string | null;
  effect?: "pure" | "idempotent" | "unsafe" | null;
}

/** A step of a handling began, the `step`-th (0: the consent to the message itself); `input` is its digest. `place` is where the handler calls it: `2/1/3` is the third step of the first task of the handler's second task. `key` is an effect's, or the id of the tool call that an ask is. `expires`: when an ask or approval is over. `unknown`: this unsafe effect was begun before, at `began` (µs), and its outcome is unknown. `to` is whom an ask asks, `model` the model that is called. */
export interface StepStartedData {
  message: string;
  agent: string;
  step: number;
  kind: 
    | "approve"
    | "ask"
    | "complete"
    | "effect"
    | "now"
    | "random"
    | "steer"
    | "uuid";
  input: string;
  effect?: "idempotent" | "pure" | "unsafe";
  approval?: string;
  expires?: number;
  key?: string;
  unknown?: boolean;
  place?: string;
  to?: string;
  model?: string;
  began?: number;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** The graceful stop has begun. */
export interface StopBegun {
  status: "stopping";
  /** Where it stands in the log. */
  position: number;
}

/** `include_usage`: a chunk with the usage comes before the last line. */
export interface StreamOptions {
  include_usage?: boolean | null;
  include_obfuscation?: boolean | null;
}

/** Replace the filter; with `since`, go on from that position of the timeline `log`. With `batch` what is pushed comes as JSON arrays, one for each commit; of payloads longer than `payloads` bytes the beginning comes. */
export interface SubscribeCommand {
  cmd: "subscribe";
  threads?: string[] | null;
  agents?: string[] | null;
  events?: string[] | null;
  since?: number | null;
  log?: string | null;
  batch?: boolean;
  payloads?: number | null;
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

/** A message of the conversation so far: its text stands in `content` or in `parts`. */
export interface TalkMessage {
  role: "user" | "assistant" | "tool";
  content?: string | Piece[] | null;
  parts?: Piece[] | null;
}

/** Keys of the tenant's configuration were written; one that is null has the value of the levels below again. */
export interface TenantConfigChangedData {
  changes: Record<string, unknown>;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** Another tenant's log was opened for the first time: from now on it is missed when it is gone. */
export interface TenantOpenedData {
  tenant: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
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

/** Text in a message. */
export interface TextPart {
  type: "text";
  text: string;
  cache_control?: Record<string, unknown> | null;
}

/** The next characters of a message or a thought; `offset` counts those before them (Unicode code points). */
export interface TextPiece {
  id: string;
  delta: string;
  offset: number;
}

/** An embedding model was asked for the vectors of so many texts. */
export interface TextsEmbeddedData {
  model: string;
  provider: string;
  texts: number;
  input_tokens: number;
  cost_usd: string;
  cost_source: "price" | "zero";
  duration: number;
  error?: StepError;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** What a model thought before an earlier answer; it is not read. */
export interface ThoughtPart {
  type: "thinking" | "redacted_thinking" | "reasoning";
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
  /** When it ended, if it has. */
  ended_at: string | null;
  /** Who paused it, if it is paused and that is known. */
  paused_by: By | null;
  paused_at: string | null;
  /** The thread whose past it shares. */
  forked_from: string | null;
  /** The first text of its first payload; null once erased. */
  title: string | null;
  waiting_for_people: ThreadQuestions;
  /** With `?q=`: where it was found. */
  hit?: Hit | null;
}

/** The thread ended: no message of it is open. */
export interface ThreadCompletedData {
  parent?: string;
  todos?: Record<string, Todo>;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** A thread begins. */
export interface ThreadCreated {
  event: "thread_created";
  /** Where it stands in the log. */
  position: number;
  thread: Thread;
}

/** A thread began. */
export interface ThreadCreatedData {
  parent?: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** The thread ended with open dead letters; `reason` is that of the last one. */
export interface ThreadFailedData {
  reason: string;
  parent?: string;
  todos?: Record<string, Todo>;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** The thread began as a fork: it shares the past of `source` up to the position `until`. */
export interface ThreadForkedData {
  source: string;
  until: number;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** The thread was killed. `ended`: it had ended before. */
export interface ThreadKilledData {
  ended?: boolean;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** Threads, by default those with the newest activity first. */
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

/** The thread was paused: none of its messages starts. */
export interface ThreadPausedData {
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** How much of the thread waits for a person. */
export interface ThreadQuestions {
  approvals: number;
  dead_letters: number;
  indeterminate: number;
}

/** An ended thread was reopened, with what outlived its end: open dead letters, a pause, reminders, tokens. */
export interface ThreadReopenedData {
  failed?: number;
  reason?: string;
  paused?: boolean;
  parent?: string;
  todos?: Record<string, Todo>;
  tokens?: number;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** The thread was resumed. */
export interface ThreadResumedData {
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
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
  by: By | null;
}

/** A thread with its first 500 messages, and what works on it. */
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
  /** When it ended, if it has. */
  ended_at: string | null;
  /** Who paused it, if it is paused and that is known. */
  paused_by: By | null;
  paused_at: string | null;
  /** The thread whose past it shares. */
  forked_from: string | null;
  /** The first text of its first payload; null once erased. */
  title: string | null;
  waiting_for_people: ThreadQuestions;
  /** With `?q=`: where it was found. */
  hit?: Hit | null;
  messages: Message[];
  /** The `cursor` for `/threads/{id}/messages` to go on with. */
  next: string | null;
  /** Those under way, which a kill ends; the oldest first, at most twenty. */
  handlings: OpenHandling[];
  /** How many are under way. */
  open_handlings: number;
}

/** Opens `/ws?ticket=…`, once. */
export interface Ticket {
  ticket: string;
  expires_in_seconds: number;
}

/** A thread's reminder; `met`: its message has come. */
export interface Todo {
  todo: string;
  agent: string;
  wait_for: string;
  from_listener: string;
  description: string;
  met: boolean;
  authors?: string[];
}

/** An agent closed a reminder. */
export interface TodoClosedData {
  todo: string;
  agent: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** An agent registered a reminder. */
export interface TodoRegisteredData {
  todo: string;
  agent: string;
  wait_for: string;
  from_listener: string;
  description: string;
  authors?: string[];
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
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
  /** A call changes nothing. */
  read_only: boolean;
  /** A call may change what is there, as far as it is known. */
  destructive: boolean;
  /** A repeated call changes nothing more. */
  idempotent: boolean;
  /** A call may reach what is outside of the organism. */
  open_world: boolean;
  /** The JSON Schema of its result. */
  result: Record<string, unknown>;
}

/** A tool of the caller's, who makes the calls of it. */
export interface ToolBody {
  type: "function";
  function: FunctionBody;
  cache_control?: Record<string, unknown> | null;
}

/** The model calls this function. */
export interface ToolChoice {
  type: "function";
  function: NamedFunction;
}

/** What a tool answered. */
export interface ToolExecuted {
  /** Of the tool's own shape. */
  result: unknown;
}

/** A tool as models are shown it. */
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

/** The running `turn` took in the `message` of the waiting turn `source`, which ends. */
export interface TurnAppendedData {
  turn: string;
  message: string;
  source: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** `POST /agents/{name}/invoke`; an `agent` that stands here too is the path's. */
export interface TurnBody {
  data: Given;
  agent?: string | null;
  session_id?: string | null;
  on_busy?: "queue" | "reject" | "force" | "steer" | null;
  /** Wait for what is paused, instead of 503 `paused`. */
  wait?: boolean | null;
  flags?: FlagsBody | null;
}

/** The turn's thread ended, after so many `messages` besides the one that began it. `authors` names whose text the session may contain from here on. */
export interface TurnEndedData {
  turn: string;
  outcome: "appended" | "completed" | "failed" | "killed";
  messages?: number;
  authors?: string[];
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** A message to the session was accepted; `turn` is its thread. It waits for the turns before it. */
export interface TurnStartedData {
  turn: string;
  message: string;
  on_busy?: "force" | "reject" | "steer";
  budget?: Record<string, Record<string, number | string>>;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
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
  /** What bounds today, the tenant's first; none with `at`. */
  budgets: DayBudget[];
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

/** A tool stored a value, which is the content, or deleted it. `authors` names whose text it may contain; `principal` and `user` are those of the injection at its root. */
export interface ValueSetData {
  key: string;
  deleted?: boolean;
  authors?: string[];
  principal?: string;
  user?: string;
  /** The digest of its content. */
  content?: string;
  /** What the content is erased with, if not with its thread. */
  content_owner?: string;
}

/** How much waits for a person. */
export interface WaitingForPeople {
  approvals: number;
  dead_letters: number;
  indeterminate: number;
  /** Tools that their MCP servers have changed. */
  foreign_tools: number;
}

/** What a handling waits for. */
export interface WaitsFor {
  kind: "agent" | "model" | "effect" | "person";
  /** The agent, the model, the effect's key, or the id of the approval or the uncertain effect. */
  name: string | null;
  /** UTC, ISO 8601. */
  since: string;
  step: number;
  /** Of an effect, an uncertain one too. */
  effect: "pure" | "idempotent" | "unsafe" | null;
}

/** How a message came about: it, the one whose handling led to it, and so on; the injection comes last. */
export interface Why {
  messages: Message[];
  count: number;
  /** Where the path goes on, if it is longer than 500. */
  next: string | null;
}

/** What goes on in the background: how many of an index's documents have vectors by its model, or by a new one. */
export interface Work {
  kind: "embed" | "reembed";
  done: number;
  total: number;
}

/** What happened from one position to another, the times of both, and how much of each. */
export interface organism__server__api__activity__Bucket {
  /** Where it stands in the log. */
  first: number;
  /** Where it stands in the log. */
  last: number;
  /** UTC, ISO 8601. */
  from: string;
  /** UTC, ISO 8601. */
  until: string;
  messages: number;
  /** Dead letters: messages that failed for good, refused sends. */
  failures: number;
  /** How often a person was asked. */
  approvals: number;
  /** Unsafe effects that were found open. */
  uncertain: number;
}

/** The calls of an hour or a day. */
export interface organism__server__api__usage__Bucket {
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
  /** Of the hour or day. */
  start: string;
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
  | AgentUpdated
  | ReloadDone
  | RunShown
  | TextHeard
  | ModelCalled
  | IndexChanged
  | IndexProgress
  | HandlingStarted
  | HandlingEnded
  | StepShown
  | RatesShown
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
  | AgentUpdated
  | ReloadDone
  | RunShown
  | TextHeard
  | ModelCalled
  | IndexChanged
  | IndexProgress
  | HandlingStarted
  | HandlingEnded
  | StepShown
  | RatesShown
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

/** What an event of the log says, by its type. */
export interface EventDataByType {
  agent_paused: AgentPausedData;
  agent_resumed: AgentResumedData;
  approval_cancelled: ApprovalCancelledData;
  approval_expired: ApprovalExpiredData;
  approval_requested: ApprovalRequestedData;
  approval_resolved: ApprovalResolvedData;
  budget_reserved: BudgetReservedData;
  budget_settled: BudgetSettledData;
  call_answered: CallAnsweredData;
  confirm_redeemed: ConfirmRedeemedData;
  confirm_refused: ConfirmRefusedData;
  confirm_requested: ConfirmRequestedData;
  content_erased: ContentErasedData;
  documents_changed: DocumentsChangedData;
  foreign_tools_accepted: ForeignToolsAcceptedData;
  foreign_tools_changed: ForeignToolsChangedData;
  index_created: IndexCreatedData;
  index_deleted: IndexDeletedData;
  loop_blocked: LoopBlockedData;
  message_dead: MessageDeadData;
  message_discarded: MessageDiscardedData;
  message_dropped: MessageDroppedData;
  message_failed: MessageFailedData;
  message_handled: MessageHandledData;
  message_kept: MessageKeptData;
  message_refused: MessageRefusedData;
  message_replayed: MessageReplayedData;
  message_retried: MessageRetriedData;
  message_sent: MessageSentData;
  message_started: MessageStartedData;
  model_called: ModelCalledData;
  organism_paused: OrganismPausedData;
  organism_reloaded: OrganismReloadedData;
  organism_resumed: OrganismResumedData;
  organism_started: OrganismStartedData;
  organism_stopped: OrganismStoppedData;
  run_data: RunDataData;
  run_done: RunDoneData;
  run_error: RunErrorData;
  run_file: RunFileData;
  run_interaction_request: RunInteractionRequestData;
  run_interaction_response: RunInteractionResponseData;
  run_message: RunMessageData;
  run_message_delta: RunMessageDeltaData;
  run_message_end: RunMessageEndData;
  run_message_start: RunMessageStartData;
  run_thought: RunThoughtData;
  run_thought_delta: RunThoughtDeltaData;
  run_thought_end: RunThoughtEndData;
  run_thought_start: RunThoughtStartData;
  run_tool_call: RunToolCallData;
  run_tool_result: RunToolResultData;
  run_usage: RunUsageData;
  session_compacted: SessionCompactedData;
  session_created: SessionCreatedData;
  session_deleted: SessionDeletedData;
  session_uncompacted: SessionUncompactedData;
  spoof_attempt: SpoofAttemptData;
  step_recorded: StepRecordedData;
  step_resolved: StepResolvedData;
  step_started: StepStartedData;
  tenant_config_changed: TenantConfigChangedData;
  tenant_opened: TenantOpenedData;
  texts_embedded: TextsEmbeddedData;
  thread_completed: ThreadCompletedData;
  thread_created: ThreadCreatedData;
  thread_failed: ThreadFailedData;
  thread_forked: ThreadForkedData;
  thread_killed: ThreadKilledData;
  thread_paused: ThreadPausedData;
  thread_reopened: ThreadReopenedData;
  thread_resumed: ThreadResumedData;
  todo_closed: TodoClosedData;
  todo_registered: TodoRegisteredData;
  turn_appended: TurnAppendedData;
  turn_ended: TurnEndedData;
  turn_started: TurnStartedData;
  value_set: ValueSetData;
}

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

/** Every route, by its method and path. Refused, it answers an ErrorAnswer. */
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
      /** Only what this one sent. */
      from?: string;
      /** Only what this one got. */
      to?: string;
      /** Only messages whose payload is of this type. */
      type?: string;
      /** Only messages that this one's handling sent. */
      cause?: string;
      /** Only what was sent, or last active, at this time or later. */
      since?: string;
      /** `desc`: newest first. */
      order?: "asc" | "desc";
      /** Only what has this text in its payload. */
      q?: string;
      /** Of a payload with more bytes of JSON than this only the beginning, as `payload_cut`. */
      payloads?: number;
      /** With what has become of each message: the attempts to handle it. */
      handlings?: boolean;
      /** With the recorded envelopes. */
      xml?: boolean;
    };
    body: undefined;
    answer: MessageList;
  };
  "GET /api/v1/threads/{id}": {
    query: {
      /** Of a payload with more bytes of JSON than this only the beginning, as `payload_cut`. */
      payloads?: number;
      /** With what has become of each message: the attempts to handle it. */
      handlings?: boolean;
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
      /** Only the threads of this session. */
      session?: string;
      /** Only what was sent, or last active, at this time or later. */
      since?: string;
      /** Only what was last active at this time or earlier. */
      until?: string;
      /** Only what waits for a person; `false`: only what does not. */
      waiting?: boolean;
      /** Largest first: by its last activity, which is the default, when it began, how long it lasted (an open one: until its last activity), or what it cost. */
      order?: "activity" | "created" | "duration" | "cost";
      /** Only what has this text in its payload. */
      q?: string;
    };
    body: undefined;
    answer: ThreadList;
  };
  "POST /api/v1/threads/kill": {
    query: {};
    body: IdsBody;
    answer: SeveralActed;
  };
  "POST /api/v1/threads/pause": {
    query: {};
    body: IdsBody;
    answer: SeveralActed;
  };
  "POST /api/v1/threads/resume": {
    query: {};
    body: IdsBody;
    answer: SeveralActed;
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
  "POST /api/v1/threads/{id}/dead-letters/replay": {
    query: {};
    body: NoBody;
    answer: Thread;
  };
  "POST /api/v1/threads/{id}/dead-letters/discard": {
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
      /** Only what this one sent. */
      from?: string;
      /** Only what this one got. */
      to?: string;
      /** Only messages whose payload is of this type. */
      type?: string;
      /** Only messages that this one's handling sent. */
      cause?: string;
      /** Only what was sent, or last active, at this time or later. */
      since?: string;
      /** `desc`: newest first. */
      order?: "asc" | "desc";
      /** Only what has this text in its payload. */
      q?: string;
      /** Of a payload with more bytes of JSON than this only the beginning, as `payload_cut`. */
      payloads?: number;
      /** With what has become of each message: the attempts to handle it. */
      handlings?: boolean;
      /** With the recorded envelopes. */
      xml?: boolean;
    };
    body: undefined;
    answer: MessageList;
  };
  "GET /api/v1/messages/{id}/why": {
    query: {
      /** Of a payload with more bytes of JSON than this only the beginning, as `payload_cut`. */
      payloads?: number;
      /** With what has become of each message: the attempts to handle it. */
      handlings?: boolean;
      /** With the recorded envelopes. */
      xml?: boolean;
    };
    body: undefined;
    answer: Why;
  };
  "GET /api/v1/messages/{id}/run": {
    query: {
      /** What follows this position. */
      after?: number;
      /** How many at most. */
      limit?: number;
      /** As it stood at this position, or the last one of this time. */
      at?: number | string;
    };
    body: undefined;
    answer: Run;
  };
  "GET /api/v1/messages/{id}": {
    query: {
      /** Of a payload with more bytes of JSON than this only the beginning, as `payload_cut`. */
      payloads?: number;
      /** With what has become of each message: the attempts to handle it. */
      handlings?: boolean;
      /** With the recorded envelopes. */
      xml?: boolean;
      /** As it stood at this position, or the last one of this time. */
      at?: number | string;
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
  "GET /api/v1/organism/snapshot": {
    query: {
      /** As it stood at this position, or the last one of this time. */
      at?: number | string;
      /** Only these threads, separated by commas. */
      threads?: string[];
      /** Only these agents, separated by commas. */
      agents?: string[];
      /** Of a payload with more bytes of JSON than this only the beginning, as `payload_cut`. */
      payloads?: number;
    };
    body: undefined;
    answer: Connected;
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
  "GET /api/v1/organism/activity": {
    query: {
      /** What follows this position, or the last one of this time. */
      after?: number | string;
      /** Up to this position, or the last one of this time; by default to the head. */
      until?: number | string;
      /** Buckets of as many positions, or of as much time. */
      by?: "position" | "time";
      /** How many at most; 200 by default. */
      buckets?: number;
      /** Only of this thread. */
      thread?: string;
      /** Only what this one got. */
      agent?: string;
    };
    body: undefined;
    answer: Activity;
  };
  "GET /api/v1/find": {
    query: {
      /** What to find. */
      q?: string;
      /** How many of each kind at most. */
      limit?: number;
    };
    body: undefined;
    answer: Found;
  };
  "GET /api/v1/organism/graph": {
    query: {
      /** As data, or as the text of a flowchart. */
      format?: "json" | "mermaid";
      /** As it stood at this position, or the last one of this time. */
      at?: number | string;
      /** Of so many seconds before; 3,600 by default. */
      window?: number;
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
      /** Only the failures of this group, as `group=true` names it. */
      in_group?: string;
      /** Only what has this text in its payload. */
      q?: string;
      /** Of a payload with more bytes of JSON than this only the beginning, as `payload_cut`. */
      payloads?: number;
      /** Failures that are alike are one row: same agent, code and line. */
      group?: boolean;
    };
    body: undefined;
    answer: DeadLetterList | FailureGroupList;
  };
  "POST /api/v1/dead-letters/replay": {
    query: {};
    body: IdsBody | GroupBody;
    answer: SeveralActed;
  };
  "POST /api/v1/dead-letters/discard": {
    query: {};
    body: IdsBody | GroupBody;
    answer: SeveralActed;
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
    answer: Approval | ApprovalCheck;
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
  "GET /api/v1/foreign-tools": {
    query: {
      /** How many at most. */
      limit?: number;
      /** How many to pass over. */
      offset?: number;
      /** `next` of the page before, of this list and filter. */
      cursor?: string;
      /** As it stood at this position, or the last one of this time. */
      at?: number | string;
      status?: "accepted" | "waiting";
    };
    body: undefined;
    answer: ForeignToolList;
  };
  "POST /api/v1/foreign-tools/{name}/accept": {
    query: {};
    body: AcceptToolBody;
    answer: ForeignTool;
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
      /** Only events of these types, separated by commas. */
      type?: EventType[];
      /** `desc`: newest first. */
      order?: "asc" | "desc";
      /** How many at most. */
      limit?: number;
      /** With the content that is stored apart from the events. */
      content?: boolean;
    };
    body: undefined;
    answer: EventList;
  };
  "GET /api/v1/events": {
    query: {
      /** Where it stands in the log. */
      since?: number;
      /** With `since`: what happened up to this position, then `caught_up`, then the end. */
      until?: number;
      /** The timeline of `since`, as `connected` named it. */
      log?: string;
      /** Only these threads, separated by commas. */
      threads?: string[];
      /** Only these agents, separated by commas. */
      agents?: string[];
      /** Only frames of these, separated by commas. */
      events?: FrameName[];
      /** Of a payload with more bytes of JSON than this only the beginning, as `payload_cut`. */
      payloads?: number;
    };
    body: undefined;
    answer: string;
  };
  "POST /api/v1/ws-ticket": {
    query: {};
    body: NoBody;
    answer: Ticket;
  };
  "GET /api/v1/me": {
    query: {};
    body: undefined;
    answer: Me;
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
  "GET /v1/models/{id}": {
    query: {};
    body: undefined;
    answer: ModelShown;
  };
  "GET /v1/tools": {
    query: {};
    body: undefined;
    answer: ToolList;
  };
  "POST /v1/tools/execute": {
    query: {};
    body: ExecuteBody;
    answer: ToolExecuted | Injected;
  };
  "POST /v1/chat/completions": {
    query: {};
    body: CompletionBody;
    answer: ChatCompleted | string;
  };
  "POST /v1/embeddings": {
    query: {};
    body: EmbeddingsBody;
    answer: EmbeddingList;
  };
  "GET /v1/tenant/config": {
    query: {};
    body: undefined;
    answer: ConfigValues;
  };
  "PUT /v1/tenant/config": {
    query: {};
    body: ConfigBody;
    answer: ConfigValues;
  };
  "GET /v1/billing/usage": {
    query: {
      /** By default 31 days before `to`. */
      from?: string;
      /** By default now. */
      to?: string;
      /** By default `day`. */
      granularity?: "hour" | "day";
    };
    body: undefined;
    answer: Billed;
  };
  "GET /a1/agents": {
    query: {
      /** How many at most. */
      limit?: number;
      /** How many to pass over. */
      offset?: number;
      /** `next` of the page before, of this list and filter. */
      cursor?: string;
    };
    body: undefined;
    answer: ChatAgentList;
  };
  "GET /a1/agents/{name}": {
    query: {};
    body: undefined;
    answer: ChatAgent;
  };
  "GET /a1/agents/{name}/sessions": {
    query: {
      /** How many at most. */
      limit?: number;
      /** How many to pass over. */
      offset?: number;
      /** `next` of the page before, of this list and filter. */
      cursor?: string;
    };
    body: undefined;
    answer: SessionList;
  };
  "GET /a1/sessions": {
    query: {
      /** How many at most. */
      limit?: number;
      /** How many to pass over. */
      offset?: number;
      /** `next` of the page before, of this list and filter. */
      cursor?: string;
      /** Only those that stand so. */
      status?: "idle" | "busy" | "archived";
    };
    body: undefined;
    answer: SessionList;
  };
  "POST /a1/agents/{name}/sessions": {
    query: {};
    body: SessionBody;
    answer: Session;
  };
  "GET /a1/agents/{name}/sessions/{sid}": {
    query: {};
    body: undefined;
    answer: Session;
  };
  "DELETE /a1/agents/{name}/sessions/{sid}": {
    query: {};
    body: NoBody;
    answer: ;
  };
  "GET /a1/agents/{name}/sessions/{sid}/messages": {
    query: {
      /** How many at most. */
      limit?: number;
      /** How many to pass over. */
      offset?: number;
      /** `next` of the page before, of this list and filter. */
      cursor?: string;
    };
    body: undefined;
    answer: SessionMessageList;
  };
  "POST /a1/agents/{name}/sessions/{sid}/uncompact": {
    query: {};
    body: NoBody;
    answer: Session;
  };
  "GET /a1/agents/{name}/sessions/{sid}/lineage": {
    query: {};
    body: undefined;
    answer: Lineage;
  };
  "POST /a1/agents/{name}/chat": {
    query: {};
    body: ChatTurnBody;
    answer: ChatTurn | string;
  };
  "POST /a1/agents/{name}/sessions/{sid}/messages": {
    query: {};
    body: SessionTurnBody;
    answer: SessionTurn | string;
  };
  "POST /a1/agents/{name}/sessions/{sid}/compact": {
    query: {};
    body: NoBody;
    answer: SessionCompacted;
  };
  "GET /a1/rag/indices": {
    query: {
      /** How many at most. */
      limit?: number;
      /** How many to pass over. */
      offset?: number;
      /** `next` of the page before, of this list and filter. */
      cursor?: string;
      /** As it stood at this position, or the last one of this time. */
      at?: number | string;
    };
    body: undefined;
    answer: LibraryIndexList;
  };
  "GET /a1/rag/indices/{index_id}": {
    query: {
      /** As it stood at this position, or the last one of this time. */
      at?: number | string;
    };
    body: undefined;
    answer: ShownIndex;
  };
  "DELETE /a1/rag/indices/{index_id}": {
    query: {};
    body: NoBody;
    answer: Deleted;
  };
  "GET /a1/rag/indices/{index_id}/documents": {
    query: {
      /** How many at most. */
      limit?: number;
      /** How many to pass over. */
      offset?: number;
      /** `next` of the page before, of this list and filter. */
      cursor?: string;
    };
    body: undefined;
    answer: LibraryDocumentList;
  };
  "GET /a1/rag/indices/{index_id}/embedding": {
    query: {};
    body: undefined;
    answer: LibraryEmbedding;
  };
  "POST /a1/rag/indices/{index_id}/documents": {
    query: {
      /** `false`: 202 once they are stored, and embed them in the background. */
      wait?: boolean;
    };
    body: IngestBody;
    answer: Ingested;
  };
  "POST /a1/rag/indices/{index_id}/documents/append": {
    query: {
      /** `false`: 202 once they are stored, and embed them in the background. */
      wait?: boolean;
    };
    body: IngestBody;
    answer: Ingested;
  };
  "POST /a1/rag/indices/{index_id}/files": {
    query: {
      /** What the file is called. */
      name?: string;
    };
    body: Blob;
    answer: FileTaken;
  };
  "GET /a1/rag/indices/{index_id}/documents/{doc_id}": {
    query: {};
    body: undefined;
    answer: LibraryDocument;
  };
  "PATCH /a1/rag/indices/{index_id}/documents/{doc_id}": {
    query: {};
    body: PatchDocumentBody;
    answer: LibraryDocument;
  };
  "DELETE /a1/rag/indices/{index_id}/documents/{doc_id}": {
    query: {};
    body: NoBody;
    answer: Deleted;
  };
  "POST /a1/rag/indices/{index_id}/reembed": {
    query: {};
    body: ReembedBody;
    answer: ShownIndex;
  };
  "POST /a1/rag/indices/{index_id}/query": {
    query: {};
    body: RetrieveBody;
    answer: Retrieved;
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
