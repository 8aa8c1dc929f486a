// (state, frame) → state: how the page's picture follows from the frames. Pure: it touches no page and no network.

export const MESSAGES_KEPT = 500;
export const THREADS_KEPT = 600;

export const empty = () => ({
  position: 0,
  log: null,
  organism: null,
  agents: new Map(),
  threads: new Map(),
  threadsTotal: 0,
  messages: [],
  waiting: { approvals: [], deadLetters: [], indeterminate: [] },
});

/** Applies one frame in place and names what it touched: any of organism, agents, threads, messages, waiting. */
export function apply(state, frame) {
  const touched = (FOLDS[frame.event] ?? (() => []))(state, frame);
  if (frame.event !== "connected" && Number.isInteger(frame.position) && isFromLog(frame)) {
    state.position = Math.max(state.position, frame.position);
  }
  return touched;
}

/** Answers to commands carry positions too; only what comes from the log moves the cursor. */
const isFromLog = (frame) => frame.event in FOLDS || ["checkpoint", "caught_up"].includes(frame.event);

/** Adds messages that were read by REST to those that came live; each is there once, in order. */
export function mergeMessages(state, older) {
  const known = new Set(state.messages.map((entry) => entry.id));
  const fresh = older.filter((message) => !known.has(message.id)).map((message) => ({ kind: "message", ...message }));
  state.messages = [...fresh, ...state.messages].sort((a, b) => a.position - b.position).slice(-MESSAGES_KEPT);
}

export function replaceAgents(state, agents) {
  state.agents = new Map(agents.map((agent) => [agent.name, agent]));
}

const FOLDS = {
  connected(state, frame) {
    state.log = frame.log;
    if (!frame.organism) return []; // resumed: the picture is still the one of `position`
    state.position = frame.position;
    state.organism = frame.organism;
    replaceAgents(state, frame.agents);
    state.threads = new Map(frame.threads.map((thread) => [thread.id, thread]));
    state.threadsTotal = frame.threads_total;
    state.messages = [];
    return ["organism", "agents", "threads", "messages"];
  },

  message(state, frame) {
    const message = frame.message;
    addEntry(state, { kind: "message", ...message });
    if (state.organism) state.organism.total_messages += 1;
    const thread = state.threads.get(message.thread_id);
    if (thread) {
      thread.message_count = (thread.message_count ?? 0) + 1;
      thread.participants = [...new Set([...thread.participants, message.from, message.to])];
      touch(state, thread, message.timestamp);
    }
    return ["organism", "threads", "messages"];
  },

  thread_created(state, frame) {
    state.threads.set(frame.thread.id, { message_count: 0, error: null, ...frame.thread });
    state.threadsTotal += 1;
    if (state.organism) state.organism.active_threads += 1;
    forgetOldest(state);
    return ["organism", "threads"];
  },

  thread_updated(state, frame) {
    const thread = state.threads.get(frame.thread_id);
    const { event, position, thread_id, ...fields } = frame;
    if (state.organism) {
      const before = thread ? thread.status : frame.status === "active" ? "" : "active";
      state.organism.active_threads += (frame.status === "active") - (before === "active");
    }
    if (thread) {
      Object.assign(thread, fields);
      touch(state, thread, frame.last_activity);
    }
    return ["organism", "threads"];
  },

  agent_state(state, frame) {
    const { event, position, agent, ...fields } = frame;
    const known = state.agents.get(agent);
    if (known) Object.assign(known, fields);
    return ["agents"];
  },

  organism_state(state, frame) {
    if (state.organism) state.organism.status = frame.status;
    return ["organism"];
  },

  error(state, frame) {
    if (!("timestamp" in frame)) return []; // the answer to a command
    addEntry(state, {
      kind: "error",
      id: `error-${frame.position}`,
      position: frame.position,
      thread_id: frame.thread_id,
      timestamp: frame.timestamp,
      from: frame.agent,
      text: frame.error,
      title: `attempt ${frame.attempt} failed`,
    });
    return ["messages"];
  },

  dead_letter(state, frame) {
    const letter = frame.dead_letter;
    const isOpen = frame.status === "open";
    addEntry(state, {
      kind: isOpen ? "dead" : "closed",
      id: `dead-${frame.position}`,
      position: frame.position,
      thread_id: frame.thread_id,
      timestamp: letter.timestamp ?? null,
      from: letter.from ?? "",
      to: letter.to,
      text: letter.reason ?? letter.id,
      title: isOpen ? `dead letter: ${letter.code}` : `dead letter ${frame.status}`,
    });
    return ["messages", "waiting"];
  },

  approval: () => ["waiting"],
  indeterminate: () => ["waiting"],

  reload: () => ["reload"],
};

function addEntry(state, entry) {
  state.messages.push(entry);
  if (state.messages.length > MESSAGES_KEPT) state.messages.splice(0, state.messages.length - MESSAGES_KEPT);
}

/** Newest activity last in the map: the list shows it backwards. */
function touch(state, thread, at) {
  thread.last_activity = at ?? thread.last_activity;
  state.threads.delete(thread.id);
  state.threads.set(thread.id, thread);
}

function forgetOldest(state) {
  if (state.threads.size <= THREADS_KEPT) return;
  for (const [id, thread] of state.threads) {
    if (thread.status !== "active") {
      state.threads.delete(id);
      return;
    }
  }
}
