// A form made from a JSON Schema: the plain kinds get fields of their own, everything else a field for JSON.

const element = (name, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};

/** Puts the schema's fields into `place`; gives {value(), showFaults(details), clear()}. */
export function buildForm(place, schema) {
  const required = new Set(schema.required ?? []);
  const fields = Object.entries(schema.properties ?? {}).map(([name, part]) => field(name, part, required.has(name), schema));
  place.replaceChildren(...fields.map((one) => one.root));
  return {
    value: () => Object.fromEntries(fields.map((one) => [one.name, one.read()]).filter(([, value]) => value !== undefined)),
    showFaults: (details) => showFaults(fields, details),
    clear: () => fields.forEach((one) => one.fault("")),
  };
}

function field(name, part, isRequired, schema) {
  const shape = resolve(part, schema);
  const control = controlFor(shape);
  const id = `field-${name}`;
  const fault = element("p", { className: "fault", id: `${id}-fault`, hidden: true });
  const label = element("label", { htmlFor: id, textContent: name });
  if (!isRequired) label.append(element("span", { className: "optional", textContent: " optional" }));
  control.input.id = id;
  control.input.name = name;
  control.input.setAttribute("aria-describedby", fault.id);
  if (isRequired) control.input.setAttribute("aria-required", "true");
  const hints = [part.description ?? shape.description, control.hint].filter(Boolean).join(" ");
  const hint = hints ? [element("p", { className: "hint", textContent: hints })] : [];
  return {
    name,
    root: element("div", { className: "field" }, label, control.input, ...hint, fault),
    read: () => control.read(isRequired),
    fault(text) {
      fault.textContent = text;
      fault.hidden = !text;
      control.input.setAttribute("aria-invalid", String(Boolean(text)));
    },
    focus: () => control.input.focus(),
  };
}

/** Looks through `$ref` and through the null of an optional field. */
function resolve(part, schema) {
  if (part.$ref?.startsWith("#/$defs/")) return resolve(schema.$defs[part.$ref.slice("#/$defs/".length)], schema);
  const others = part.anyOf?.filter((one) => one.type !== "null");
  return others?.length === 1 ? resolve(others[0], schema) : part;
}

function controlFor(shape) {
  if (shape.enum) return choice(shape.enum);
  if (shape.type === "boolean") return choice([true, false]);
  if (shape.type === "integer" || shape.type === "number") return number(shape);
  if (shape.type === "string") return text(shape);
  return json(shape);
}

function choice(values) {
  const options = [element("option", { value: "", textContent: "–" })];
  options.push(...values.map((value, at) => element("option", { value: String(at), textContent: String(value) })));
  const input = element("select", {}, ...options);
  return { input, read: () => (input.value === "" ? undefined : values[Number(input.value)]) };
}

function number(shape) {
  const input = element("input", { type: "text", inputMode: shape.type === "integer" ? "numeric" : "decimal", autocomplete: "off" });
  return {
    input,
    hint: shape.type === "integer" ? "A whole number." : "A number.",
    read() {
      const said = input.value.trim();
      if (!said) return undefined;
      return Number.isFinite(Number(said)) ? Number(said) : said; // what is no number is refused by the server, by name
    },
  };
}

function text(shape) {
  const isLong = (shape.maxLength ?? Infinity) > 200 && !shape.format && !shape.pattern;
  const input = isLong ? element("textarea", { rows: 1 }) : element("input", { type: "text", autocomplete: "off" });
  if (isLong) input.addEventListener("keydown", sendOnEnter);
  const hints = { date: "A date as 2026-01-31.", "date-time": "A time as 2026-01-31T10:00:00Z." };
  return {
    input,
    hint: hints[shape.format] ?? (shape.contentEncoding === "base64" ? "Base64." : ""),
    read: (isRequired) => (input.value === "" && !isRequired ? undefined : input.value),
  };
}

/** Enter sends, as in a one-line field; with Shift it begins a new line. */
function sendOnEnter(event) {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  event.target.form.requestSubmit();
}

function json(shape) {
  const example = shape.type === "array" ? "[]" : "{}";
  const input = element("textarea", { rows: 3, placeholder: example, spellcheck: false, className: "json" });
  return {
    input,
    hint: `JSON, as ${example}.`,
    read() {
      if (!input.value.trim()) return undefined;
      try {
        return JSON.parse(input.value);
      } catch {
        return input.value;
      }
    },
  };
}

/** Each fault goes to its field by the first step of its pointer; gives the texts of those that found none. */
function showFaults(fields, details) {
  const homeless = [];
  fields.forEach((one) => one.fault(""));
  for (const { param, message } of details) {
    const steps = (param ?? "").split("/").filter(Boolean);
    if (steps[0] === "payload") steps.shift();
    const home = fields.find((one) => one.name === steps[0]);
    if (home) home.fault(message);
    else homeless.push(param ? `${param}: ${message}` : message);
  }
  fields.find((one) => !one.root.querySelector(".fault").hidden)?.focus();
  return homeless;
}
