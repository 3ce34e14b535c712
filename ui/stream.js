// stream.js - answers that go on: read line by line, begun anew when they break.

const FIRST_PAUSE_MS = 800;
const LAST_PAUSE_MS = 20000;
const FACTOR = 1.7;
const PAGE = 500;

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Gives each line of the answer to `online`. Ends when the answer does, or when it is silent for too long. */
async function readLines(response, silenceMs, abort, online) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let parts = []; // of a line whose end has not come: long ones come in hundreds
  let timer = 0;
  try {
    for (;;) {
      clearTimeout(timer);
      timer = setTimeout(abort, silenceMs);
      const { done, value } = await reader.read();
      if (done) return;
      let from = 0;
      for (let to = value.indexOf("\n"); to >= 0; to = value.indexOf("\n", from)) {
        parts.push(value.slice(from, to));
        const line = parts.join("");
        parts = [];
        from = to + 1;
        if (line) online(JSON.parse(line));
      }
      if (from < value.length) parts.push(value.slice(from));
    }
  } finally {
    clearTimeout(timer);
  }
}

async function ask(url, token, signal) {
  const response = await fetch(url, {
    headers: { Authorization: `Bearer ${token}`, Accept: "application/json" },
    cache: "no-store",
    signal,
  });
  if (response.ok) return response;
  let message = response.statusText;
  try {
    message = (await response.json()).message || message;
  } catch {
    // not every refusal is a Status
  }
  throw new Refused(response.status, message);
}

export async function fetchJson(url, token, signal) {
  return (await ask(url, token, signal)).json();
}

export async function fetchText(url, token, signal) {
  return (await ask(url, token, signal)).text();
}

const SESSION_S = 12 * 3600; // a working day

/** Changes the token of a link for one of this tab, and ends the former: a link signs in once. */
export async function exchange(token, id) {
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  const body = JSON.stringify({ admin: "page", lifetimeSeconds: SESSION_S });
  const answer = await fetch("/davit/v1/tokens", { method: "POST", headers, body, cache: "no-store" });
  if (!answer.ok) throw new Refused(answer.status, "This link was used already, or is too old: davit ui prints another.");
  const made = await answer.json();
  await fetch(`/davit/v1/tokens/${encodeURIComponent(id)}`, { method: "DELETE", headers });
  return made.token;
}

/**
 * Something that is watched for ever: `run(signal, good)` reads it once and calls good() when data
 * came. `told(state, ms, error)`: "live", "waiting" for the next try, "refused" for good.
 */
export class Source {
  #abort = null;
  #timer = 0;
  #pause = FIRST_PAUSE_MS;

  constructor(run, told) {
    this.run = run;
    this.told = told;
  }

  start() {
    if (!this.#abort) this.#go();
  }

  stop() {
    clearTimeout(this.#timer);
    this.#abort?.abort();
    this.#abort = null;
  }

  async #go() {
    const abort = new AbortController();
    let error = null;
    this.#abort = abort;
    try {
      await this.run(abort, () => {
        this.#pause = FIRST_PAUSE_MS;
        this.told("live");
      });
    } catch (caught) {
      error = caught;
    }
    if (this.#abort !== abort) return; // stopped
    if (error instanceof Refused && (error.status === 401 || error.status === 403)) {
      this.#abort = null;
      this.told("refused", 0, error);
      return;
    }
    const ms = this.#pause * (0.8 + 0.4 * Math.random());
    this.#pause = Math.min(this.#pause * FACTOR, LAST_PAUSE_MS);
    this.told("waiting", ms, error);
    this.#timer = setTimeout(() => this.#go(), ms);
  }
}

/** The node's own documents: the first is whole, later ones have what changed. */
export function nodeSource(token, ondocument, told) {
  return new Source(async (abort, good) => {
    const response = await ask("/davit/v1/node?watch=true", token(), abort.signal);
    await readLines(response, 45000, () => abort.abort(), (doc) => {
      good();
      ondocument(doc);
    });
  }, told);
}

async function listAll(path, params, token, signal) {
  const items = [];
  let version = "";
  let more = "";
  do {
    const query = new URLSearchParams({ ...params, limit: PAGE, ...(more && { continue: more }) });
    const list = await (await ask(`${path}?${query}`, token, signal)).json();
    items.push(...(list.items ?? []));
    version = list.metadata.resourceVersion;
    more = list.metadata.continue ?? "";
  } while (more);
  return { items, version };
}

/** Objects of a kind that changes seldom: listed every so often, so that it takes no connection for itself. */
export function pollSource(path, params, token, everyMs, onlist, told) {
  return new Source(async (abort, good) => {
    for (;;) {
      onlist((await listAll(path, params(), token(), abort.signal)).items);
      good();
      await new Promise((resolve, reject) => {
        const timer = setTimeout(resolve, everyMs);
        abort.signal.addEventListener("abort", () => {
          clearTimeout(timer);
          reject(new Error("stopped"));
        });
      });
    }
  }, told);
}

/** Objects of a kind: `onlist(items)`, then `onchange(type, object)`. */
export function objectSource(path, params, token, onlist, onchange, told) {
  return new Source(async (abort, good) => {
    const { items, version } = await listAll(path, params(), token(), abort.signal);
    onlist(items);
    good();
    const query = new URLSearchParams({
      ...params(), watch: "true", allowWatchBookmarks: "true", resourceVersion: version,
    });
    const response = await ask(`${path}?${query}`, token(), abort.signal);
    await readLines(response, 150000, () => abort.abort(), (event) => {
      if (event.type === "ERROR") throw new Error(event.object.message); // listed anew
      if (event.type !== "BOOKMARK") onchange(event.type, event.object);
    });
  }, told);
}
