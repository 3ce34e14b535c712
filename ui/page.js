// page.js - elements and words: what all parts of the page are written with.
//
// Text goes into the page as text nodes only; nothing here takes markup.

/** An element with attributes and children; strings become text. */
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null && child !== ""));
  return element;
}

export const byId = (id) => document.getElementById(id);

/** "41s", "3m", "2h5m", "4d": since a time in milliseconds. */
export function age(since) {
  const s = Math.max(0, Math.floor((Date.now() - since) / 1000));
  if (s < 120) return `${s}s`;
  if (s < 7200) return `${Math.floor(s / 60)}m`;
  if (s < 48 * 3600) return `${Math.floor(s / 3600)}h${Math.floor(s / 60) % 60}m`;
  return `${Math.floor(s / 86400)}d`;
}

export function clock(at) {
  return new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
}

/** How a word that says how something is looks; "" for most. */
export function tone(word) {
  if (/^(Running|Succeeded|prepared|admitted|running|registered|Healthy|Normal|there|allocated|held|ready)$/.test(word)) return "good";
  if (/^(Pending|pending|waiting|wanted|preparing|unpreparing|terminating|admitting|taking|starting|pulling|ending|connecting|registering|retrying|releasing|[Uu]nknown)$/.test(word)) return "warn";
  if (/^(Failed|failing|gone|removed|Unhealthy|Warning|refused|not ready)$/.test(word)) return "bad";
  return "";
}

export const word = (text) => text && el("span", { class: `word ${tone(text)}` }, text);

export function named(space, name) {
  return space ? el("span", {}, el("span", { class: "space" }, `${space}/`), name) : el("span", {}, name);
}

/** Where the page shows something: it is in the address, so that it can be gone back from, and sent. */
export const placeOf = (kind, space, name) => `#show=${encodeURIComponent(`${kind}:${space}/${name}`)}`;

/** A link to what the page knows of something. */
export function linkTo(kind, space, name, text) {
  return el("a", { href: placeOf(kind, space, name) }, text ?? named(space, name));
}

/** Elements with ", " between them; of many, the first and how many more. */
export function several(elements, max = 4) {
  const shown = elements.length > max + 1 ? elements.slice(0, max) : elements;
  const list = shown.flatMap((element, i) => (i ? [", ", element] : [element]));
  if (shown.length < elements.length) list.push(` and ${elements.length - shown.length} more`);
  return list;
}

/** A command to be typed. */
export const command = (text) => el("code", { class: "command" }, text);
