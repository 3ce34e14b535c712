// counters.js - counters that devices of a pool share: what those that are held leave for the others.

const UNITS = {
  n: 1e-9, u: 1e-6, m: 1e-3, "": 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60,
};

/** "10Gi" as a number, near enough to compare. */
export function amountOf(quantity) {
  const [, digits, unit] = /^([-+]?[\d.]+(?:[eE][-+]?\d+)?)([a-zA-Z]*)$/.exec(String(quantity).trim()) ?? [];
  return digits === undefined || UNITS[unit] === undefined ? NaN : Number(digits) * UNITS[unit];
}

export class Counters {
  #left = new Map(); // "set counter": an amount

  /** Of a pool: the sets of its slices, and its devices that are held. */
  constructor(sets, held) {
    for (const set of sets) {
      for (const [name, { value }] of Object.entries(set.counters ?? {})) this.#left.set(`${set.name} ${name}`, amountOf(value));
    }
    for (const device of held) {
      for (const [key, value] of Counters.#consumed(device)) this.#left.set(key, (this.#left.get(key) ?? NaN) - amountOf(value));
    }
  }

  static #consumed(device) {
    return (device.consumesCounters ?? []).flatMap(({ counterSet, counters }) =>
      Object.entries(counters ?? {}).map(([name, { value }]) => [`${counterSet} ${name}`, value]));
  }

  /** What is short for a device that nobody has: "memory of gpu-0: 10Gi wanted". Empty: nothing. */
  shortageOf(device) {
    const found = Counters.#consumed(device).find(([key, value]) => amountOf(value) > this.#left.get(key));
    if (!found) return "";
    const [set, name] = found[0].split(" ");
    return `${name} of ${set}: ${found[1]} wanted, held devices leave less`;
  }
}
