// The page: shows the picture that `fold` makes of the frames, and sends what the operator asks for.
// Text of payloads and models only ever becomes text nodes.

import { apply, empty, mergeMessages, replaceAgents } from "./fold.js";
import { buildForm } from "./form.js";
import { connect } from "./socket.js";

const TOKEN = "organism.token";
const THEME = "organism.theme";
const RECENT_MESSAGES = 100;
const THREADS_SHOWN = 100;
const WAITING_SHOWN = 100;
const WAITING_DELAY_MS = 100;

const $ = (id) => document.getElementById(id);
const make = (name, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
};

let state = empty();
let token = null;
let connection = null;
let form = null;
let formOf = null;
let chosenThread = null;
let waitingTimer = 0;
const dirty = new Set();

// ── API ──────────────────────────────────────────────────────────────────────────────────────────────────────────

async function api(path, { method = "GET", body, accept = "application/json" } = {}) {
  const headers = { Authorization: `Bearer ${token}`, Accept: accept };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(`/api/v1${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  const said = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(said.error?.message ?? answer.statusText), { details: said.error?.details ?? [] });
  return said;
}

async function loadRecent() {
  const { total } = await api("/messages?limit=1");
  const page = await api(`/messages?limit=${RECENT_MESSAGES}&offset=${Math.max(0, total - RECENT_MESSAGES)}`);
  mergeMessages(state, page.messages);
  show("messages");
}

async function loadThread(id) {
  const { messages } = await api(`/threads/${encodeURIComponent(id)}`);
  mergeMessages(state, messages);
  show("messages");
}

/** What waits for a person, read again whenever something of it has come or gone; a burst is read once. */
function loadWaiting() {
  waitingTimer ||= setTimeout(async () => {
    waitingTimer = 0;
    try {
      const paths = ["/organism", "/approvals?status=pending", "/dead-letters", "/indeterminate"];
      const [organism, ...lists] = await Promise.all(paths.map((path, at) => api(at ? `${path}${path.includes("?") ? "&" : "?"}limit=${WAITING_SHOWN}` : path)));
      const [{ approvals }, { dead_letters: deadLetters }, { indeterminate }] = lists;
      state.waiting = { approvals, deadLetters, indeterminate };
      if (state.organism) state.organism.waiting_for_people = organism.waiting_for_people;
      show("organism", "waiting");
    } catch (error) {
      notify(error);
    }
  }, WAITING_DELAY_MS);
}

async function act(button, path, method = "POST", body = undefined) {
  button.disabled = true;
  $("notice").textContent = "";
  try {
    return await api(path, { method, body });
  } catch (error) {
    notify(error);
  } finally {
    button.disabled = false;
  }
}

async function reload() {
  const changes = await act($("reload"), "/organism/reload");
  if (!changes) return;
  const kinds = ["added", "removed", "updated"].filter((kind) => changes[kind].length);
  notify({ message: `Reloaded: ${kinds.map((kind) => `${kind} ${changes[kind].join(", ")}`).join("; ") || "nothing has changed"}.` }, false);
}

// ── connection ───────────────────────────────────────────────────────────────────────────────────────────────────

function start(given) {
  token = given;
  connection?.close();
  connection = connect(token, {
    frame: onFrame,
    status(kind, text) {
      $("connection").dataset.state = kind;
      $("connection").textContent = text;
    },
    resumeFrom: () => (state.log && state.organism ? { position: state.position, log: state.log } : null),
    forget: () => (state = empty()),
    refused() {
      sessionStorage.removeItem(TOKEN);
      askForToken("That token was not taken. Is it the one of this server, and not older than 12 hours?");
    },
  });
}

function onFrame(frame) {
  const touched = apply(state, frame);
  if (frame.event === "connected") $("notice").textContent = "";
  if (frame.event === "connected" && frame.organism) {
    chooseReceivers();
    loadRecent().catch(notify);
  }
  if (frame.event === "connected" || touched.includes("waiting")) loadWaiting();
  if (touched.includes("reload")) {
    api(`/agents?limit=500`).then(({ agents }) => {
      replaceAgents(state, agents);
      formOf = null;
      chooseReceivers();
      show("agents");
    }, () => {});
  }
  show(...touched, "position");
}

/** Draws at most once a frame of the screen, whatever came in between. */
function show(...parts) {
  if (!dirty.size) requestAnimationFrame(draw);
  parts.forEach((part) => dirty.add(part));
}

function draw() {
  const parts = new Set(dirty);
  dirty.clear();
  $("position").textContent = state.position.toLocaleString();
  if (parts.has("organism")) drawOrganism();
  if (parts.has("agents")) drawAgents();
  if (parts.has("threads")) drawThreads();
  if (parts.has("messages")) drawStream();
  if (parts.has("waiting")) drawWaiting();
}

// ── views ────────────────────────────────────────────────────────────────────────────────────────────────────────

function drawOrganism() {
  const organism = state.organism;
  if (!organism) return;
  $("name").textContent = organism.name;
  document.title = `${organism.name} · Organism`;
  $("organism-status").hidden = false;
  $("organism-status").textContent = organism.status;
  $("organism-status").dataset.state = organism.status;
  $("active-threads").textContent = organism.active_threads.toLocaleString();
  $("total-messages").textContent = organism.total_messages.toLocaleString();
  const { approvals, dead_letters, indeterminate } = organism.waiting_for_people;
  const waiting = approvals + dead_letters + indeterminate;
  $("waiting-count").textContent = waiting.toLocaleString();
  $("waiting-count").classList.toggle("some", waiting > 0);
  $("pause-organism").hidden = false;
  $("pause-organism").textContent = organism.status === "paused" ? "Resume all" : "Pause all";
}

function drawAgents() {
  const agents = [...state.agents.values()];
  $("agents-count").textContent = agents.length;
  reconcile($("agents"), agents, (agent) => agent.name, newAgent, drawAgent);
}

function newAgent(agent) {
  const pause = make("button", { type: "button", className: "quiet" });
  pause.addEventListener("click", () => {
    const verb = state.agents.get(agent.name)?.paused ? "resume" : "pause";
    act(pause, `/agents/${encodeURIComponent(agent.name)}/${verb}`);
  });
  const inject = make("button", { type: "button", className: "quiet", textContent: "Inject" });
  inject.setAttribute("aria-label", `Inject a message to ${agent.name}`);
  inject.addEventListener("click", () => {
    $("inject-to").value = agent.name;
    chooseForm().then(() => $("inject-fields").querySelector("input, select, textarea")?.focus());
  });
  const root = make(
    "li",
    { className: "card agent" },
    make("div", { className: "title" }, make("span", { className: "lamp" }), make("strong", { textContent: agent.name }), make("span", { className: "state" })),
    make("p", { className: "about" }),
    make("p", { className: "peers" }),
    make("div", { className: "actions" }, make("span", { className: "queue" }), pause, inject),
  );
  root.lamp = root.querySelector(".lamp");
  root.pause = pause;
  return root;
}

function drawAgent(root, agent) {
  root.dataset.state = agent.state;
  root.querySelector(".state").textContent = agent.paused && agent.state !== "paused" ? `${agent.state} · paused` : agent.state;
  root.querySelector(".about").textContent = agent.description;
  root.querySelector(".peers").textContent = agent.peers.length ? `→ ${agent.peers.join(", ")}` : "answers its caller only";
  root.querySelector(".queue").textContent = agent.queue_depth ? `${agent.queue_depth} waiting` : "";
  root.pause.textContent = agent.paused ? "Resume" : "Pause";
  root.pause.setAttribute("aria-label", `${agent.paused ? "Resume" : "Pause"} ${agent.name}`);
}

function drawThreads() {
  const threads = [...state.threads.values()].sort((a, b) => (a.last_activity < b.last_activity ? 1 : -1)).slice(0, THREADS_SHOWN);
  $("threads-count").textContent = state.threadsTotal || "";
  $("threads-empty").hidden = threads.length > 0;
  reconcile($("threads"), threads, (thread) => thread.id, newThread, drawThread);
}

function newThread(thread) {
  const open = make("button", { type: "button", className: "open" }, make("code", { textContent: short(thread.id) }), make("span", { className: "state" }));
  open.addEventListener("click", () => chooseThread(chosenThread === thread.id ? null : thread.id));
  const pause = make("button", { type: "button", className: "quiet pause" });
  pause.addEventListener("click", () => act(pause, `/threads/${thread.id}/${state.threads.get(thread.id)?.paused ? "resume" : "pause"}`));
  const kill = make("button", { type: "button", className: "quiet danger kill", textContent: "Kill" });
  kill.setAttribute("aria-label", `Kill thread ${short(thread.id)}`);
  kill.addEventListener("click", () => act(kill, `/threads/${thread.id}/kill`));
  return make(
    "li",
    { className: "card thread", title: thread.id },
    open,
    make("p", { className: "about" }),
    make("p", { className: "fault" }),
    make("div", { className: "actions" }, make("span", { className: "queue" }), pause, kill),
  );
}

function drawThread(root, thread) {
  root.dataset.state = thread.status;
  root.classList.toggle("chosen", thread.id === chosenThread);
  root.querySelector(".open").setAttribute("aria-pressed", String(thread.id === chosenThread));
  root.querySelector(".state").textContent = thread.paused ? `${thread.status} · paused` : thread.status;
  root.querySelector(".about").textContent = thread.participants.join(" · ");
  root.querySelector(".fault").textContent = thread.error ?? "";
  root.querySelector(".queue").textContent = `${thread.message_count} message${thread.message_count === 1 ? "" : "s"} · ${clock(thread.last_activity)}`;
  const isActive = thread.status === "active";
  root.querySelector(".pause").hidden = !isActive;
  root.querySelector(".pause").textContent = thread.paused ? "Resume" : "Pause";
  root.querySelector(".kill").hidden = !isActive;
}

function drawWaiting() {
  const { approvals, deadLetters, indeterminate } = state.waiting;
  const roots = deadLetters.filter((letter) => !letter.root);
  const items = [...approvals.map(approvalItem), ...roots.map(failureItem), ...indeterminate.map(effectItem)];
  $("waiting-panel").hidden = !items.length;
  reconcile($("waiting"), items, (item) => `${item.path} ${item.detail}`, newWaiting, () => {});
}

const approvalItem = (approval) => ({
  path: `/approvals/${approval.id}/resolve`,
  thread: approval.thread_id,
  title: `${approval.agent} asks`,
  detail: visible(JSON.stringify(approval.preview, null, 2)),
  next: approval.why ?? "Nothing is done before you agree.",
  acts: [["Approve", "POST", { decision: "approve" }], ["Reject", "POST", { decision: "reject" }]],
});

/** A failure: the dead letter that it comes from with its lines, the one that raised first, then who failed with it, and where. */
const failureItem = (letter) => {
  const others = state.waiting.deadLetters.filter((other) => other.root === letter.id).reverse();
  const lines = [...linesOf(letter), ...others.flatMap((other) => [`${other.agent} failed with it:`, ...linesOf(other)])];
  return {
    path: `/dead-letters/${letter.id}`,
    thread: letter.thread_id,
    title: letter.attempts ? `${letter.agent} failed` : `${letter.agent} could not send to ${letter.to}`,
    text: others.length ? `${letter.reason} (with it: ${others.map((other) => other.agent).join(", ")})` : letter.reason,
    detail: visible(lines.join("\n")),
    next: "Correct what failed and reload, then replay.",
    acts: [["Replay", "POST", undefined, "/replay"], ["Discard", "DELETE"]],
  };
};

const linesOf = (letter) => (letter.traceback ?? []).map((line) => `${line.file}:${line.line} in ${line.function}\n    ${line.code}`);

const effectItem = (effect) => ({
  path: `/indeterminate/${effect.id}/resolve`,
  thread: effect.thread_id,
  title: `${effect.agent}: did it happen?`,
  text: `The effect ${effect.key} began and did not end.`,
  detail: "",
  next: "Find out, then say what became of it.",
  acts: [["It happened", "POST", { outcome: "done" }], ["Do it again", "POST", { outcome: "redo" }], ["It failed", "POST", { outcome: "fail" }]],
});

function newWaiting(item) {
  const buttons = item.acts.map(([name, method, body, more = ""]) => {
    const button = make("button", { type: "button", className: "quiet", textContent: name });
    button.setAttribute("aria-label", `${name}: ${item.title}`);
    button.addEventListener("click", () => act(button, item.path + more, method, body));
    return button;
  });
  const thread = make("button", { type: "button", className: "quiet", textContent: "Show thread" });
  thread.addEventListener("click", () => chooseThread(item.thread));
  return make(
    "li",
    { className: "card waits" },
    make("strong", { textContent: item.title }),
    item.text ? make("p", { className: "fault", textContent: item.text }) : null,
    item.detail ? make("pre", { textContent: item.detail }) : null,
    item.next ? make("p", { className: "hint", textContent: item.next }) : null,
    make("div", { className: "actions" }, ...buttons, thread),
  );
}

/** The text with what nobody sees in it written out: characters that turn others around, and those without width. */
const visible = (text) => text.replace(/[^\P{C}\n]|[\p{Zl}\p{Zp}]/gu, (one) => `⟨U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

function drawStream() {
  const shown = state.messages.filter((entry) => !chosenThread || entry.thread_id === chosenThread).reverse();
  $("stream-empty").hidden = shown.length > 0;
  reconcile($("stream"), shown, (entry) => entry.id, newEntry, () => {});
}

function newEntry(entry) {
  const route = make(
    "p",
    { className: "route" },
    entry.from ? make("span", { className: "who", textContent: entry.from }) : null,
    entry.to ? make("span", { className: "arrow", textContent: "→" }) : null,
    entry.to ? make("span", { className: "who", textContent: entry.to }) : null,
    make("span", { className: "type", textContent: entry.payload_type ?? entry.title ?? "" }),
    make("time", { dateTime: entry.timestamp ?? "", textContent: clock(entry.timestamp) }),
  );
  const body = entry.kind === "message" ? payload(entry.payload) : make("p", { className: entry.kind === "closed" ? "about" : "fault", textContent: entry.text });
  const root = make("li", { className: `entry ${entry.kind}` }, route, body);
  root.style.setProperty("--hue", hue(entry.thread_id ?? ""));
  return root;
}

function payload(value) {
  const isFlat = value && typeof value === "object" && !Array.isArray(value) && Object.values(value).every((one) => typeof one !== "object" || one === null);
  if (!isFlat) return make("pre", { textContent: JSON.stringify(value, null, 2) });
  const rows = Object.entries(value).flatMap(([name, one]) => [make("dt", { textContent: name }), make("dd", { textContent: one === null ? "–" : String(one) })]);
  return make("dl", { className: "payload" }, ...rows);
}

/** Makes the children of `place` those of `items`, in order, touching only what differs. */
function reconcile(place, items, keyOf, create, update) {
  const known = new Map([...place.children].map((child) => [child.dataset.key, child]));
  let at = place.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    let child = known.get(key);
    if (!child) {
      child = create(item);
      child.dataset.key = key;
    }
    known.delete(key);
    update(child, item);
    if (child === at) at = at.nextElementSibling;
    else place.insertBefore(child, at);
  }
  for (const child of known.values()) child.remove();
}

const short = (id) => (id.length > 14 ? `${id.slice(0, 4)}…${id.slice(-6)}` : id);
const clock = (at) => (at ? new Date(at).toLocaleTimeString() : "");
/** A thread's colour: any but red, which is for failures. */
const hue = (text) => 60 + [...text].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 270, 7);

// ── what the operator does ───────────────────────────────────────────────────────────────────────────────────────

function chooseThread(id) {
  chosenThread = id;
  $("filter").hidden = !id;
  $("filter-name").textContent = id ? short(id) : "";
  show("threads", "messages");
  if (id) loadThread(id).catch(notify);
}

function chooseReceivers() {
  const before = $("inject-to").value;
  const options = [...state.agents.keys()].map((name) => make("option", { value: name, textContent: name }));
  $("inject-to").replaceChildren(...options);
  if (state.agents.has(before)) $("inject-to").value = before;
  chooseForm();
}

async function chooseForm() {
  const name = $("inject-to").value;
  if (!name || formOf === name) return;
  formOf = name;
  try {
    const schema = await api(`/agents/${encodeURIComponent(name)}/schema`, { accept: "application/schema+json" });
    $("inject-about").textContent = [schema.title, schema.description].filter(Boolean).join(" – ");
    form = buildForm($("inject-fields"), schema);
  } catch (error) {
    formOf = null;
    say(error.message, true);
  }
}

async function inject(event) {
  event.preventDefault();
  if (!form) return;
  form.clear();
  say("");
  try {
    const sent = await api("/inject", { method: "POST", body: { to: $("inject-to").value, payload: form.value() } });
    say(`Sent, in thread ${short(sent.thread_id)}.`);
  } catch (error) {
    const homeless = form.showFaults(error.details ?? []);
    say(homeless[0] ?? error.message, true);
  }
}

function say(text, isFault = false) {
  $("inject-said").textContent = text;
  $("inject-said").classList.toggle("fault", isFault);
}

/** What became of an act, or a fault with its details; it stays until the next act. */
function notify({ message, details = [] }, isFault = true) {
  const more = details.filter((fault) => !message.includes(fault.message)).map((fault) => `${fault.param}: ${fault.message}`);
  $("notice").textContent = [message, ...more].join("\n");
  $("notice").classList.toggle("fault", isFault);
}

function askForToken(why) {
  if (why) $("ask-why").textContent = why;
  if (!$("ask").open) $("ask").showModal();
}

function turnTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  const isLight = getComputedStyle(document.documentElement).getPropertyValue("--is-light").trim() === "1";
  $("theme").textContent = isLight ? "Dark" : "Light";
  $("theme").setAttribute("aria-pressed", String(Boolean(theme)));
}

/** The link's token is in the fragment, which reached no server; it moves to this tab's memory and out of the address. */
function tokenOfLink() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(TOKEN, given);
    history.replaceState(null, "", location.pathname + location.search);
  }
  return given ?? sessionStorage.getItem(TOKEN);
}

$("inject").addEventListener("submit", inject);
$("inject-to").addEventListener("change", chooseForm);
$("filter-clear").addEventListener("click", () => chooseThread(null));
$("pause-organism").addEventListener("click", () => {
  act($("pause-organism"), `/organism/${state.organism?.status === "paused" ? "resume" : "pause"}`);
});
$("reload").addEventListener("click", reload);
$("theme").addEventListener("click", () => {
  const theme = $("theme").textContent === "Light" ? "light" : "dark";
  localStorage.setItem(THEME, theme);
  turnTheme(theme);
});
$("ask-form").addEventListener("submit", () => {
  const given = $("ask-token").value.trim();
  if (!given) return askForToken();
  sessionStorage.setItem(TOKEN, given);
  $("ask-token").value = "";
  start(given);
});
addEventListener("hashchange", () => location.hash.startsWith("#token=") && start(tokenOfLink()));

turnTheme(localStorage.getItem(THEME));
const known = tokenOfLink();
if (known) start(known);
else askForToken();
