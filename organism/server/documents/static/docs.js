// Sends the forms of /docs. The token stays in its field: nothing is stored, and it goes to this server only.

const token = document.querySelector("#token");
const MOST_CHARACTERS = 100_000;

/** The request that a form describes. Empty fields are left out. */
function requestOf(form) {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  const headers = token.value ? { Authorization: `Bearer ${token.value.trim()}` } : {};
  for (const field of form.querySelectorAll("input")) {
    if (!field.value) continue;
    if (field.dataset.in === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(field.value));
    else if (field.dataset.in === "query") query.set(field.name, field.value);
    else headers[field.name] = field.value;
  }
  const body = form.querySelector("textarea");
  if (body?.value) headers["Content-Type"] = body.name;
  const address = query.size ? `${path}?${query}` : path;
  return [address, { method: form.dataset.method, headers, body: body?.value || undefined, cache: "no-store" }];
}

/** JSON with line breaks, any other text as it is. */
function readable(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** Sends the form and shows the answer as it comes: a stream goes on until the form is sent again. */
async function send(form, output, signal) {
  const [address, request] = requestOf(form);
  const answer = await fetch(address, { ...request, signal });
  const head = `${answer.status} ${answer.statusText}\n${[...answer.headers].map((line) => line.join(": ")).join("\n")}\n\n`;
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (reader) {
    const { done, value } = await reader.read();
    if (done) break;
    text += value;
    output.textContent = head + text;
    if (text.length > MOST_CHARACTERS) await reader.cancel();
  }
  output.textContent = head + readable(text);
}

for (const form of document.querySelectorAll("form")) {
  let sending = new AbortController();
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    sending.abort();
    sending = new AbortController();
    const { signal } = sending;
    const output = form.querySelector("output");
    output.textContent = "…";
    try {
      await send(form, output, signal);
    } catch (error) {
      if (!signal.aborted) output.textContent = String(error);
    }
  });
}
