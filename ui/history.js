// history.js - what has happened to devices since the page was opened.

const OF_A_DEVICE_MAX = 10;
const DEVICES_MAX = 20000;

export class Histories {
  #before = new Map(); // device key: what it was like
  #lists = new Map();

  clear() {
    this.#before.clear();
    this.#lists.clear();
  }

  /** The changes of a device, {at, text}, the newest first. */
  of(key) {
    return this.#lists.get(key) ?? [];
  }

  /** All devices as they are now. */
  see(devices) {
    const seen = new Set();
    for (const device of devices) {
      seen.add(device.key);
      this.#compare(device);
    }
    for (const key of this.#before.keys()) {
      if (seen.has(key)) continue;
      this.#before.delete(key);
      this.#note(key, "no longer listed");
    }
  }

  #compare(device) {
    const now = `${device.state}\n${device.names}`;
    const before = this.#before.get(device.key);
    this.#before.set(device.key, now);
    if (before === undefined) {
      if (this.#lists.has(device.key)) this.#note(device.key, `back, ${device.state}`);
    } else if (before !== now) {
      const [state, names] = before.split("\n");
      const change = state === device.state ? device.state : `${state} → ${device.state}`;
      this.#note(device.key, change + (device.names ? `, ${device.names}` : names && `, was ${names}`));
    }
  }

  #note(key, text) {
    const list = this.of(key);
    list.unshift({ at: Date.now(), text });
    list.length = Math.min(list.length, OF_A_DEVICE_MAX);
    this.#lists.delete(key);
    this.#lists.set(key, list); // at the end
    if (this.#lists.size > DEVICES_MAX) this.#lists.delete(this.#lists.keys().next().value);
  }
}
