// spark.js - how much of something was held during the last hour, as a small line.

const WIDTH = 120;
const HEIGHT = 22;
const SAMPLES_MIN = 6;
const SHORT_MS = 600000;
const SVG = "http://www.w3.org/2000/svg";

function shape(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

/** What the line says, in words. */
function words(held, n, stepMs) {
  const minutes = Math.round((held.length * stepMs) / 60000);
  const span = minutes < 60 ? `the last ${Math.max(1, minutes)} min` : "the last hour";
  const [least, most] = [Math.min(...held), Math.max(...held)];
  return `held in ${span}: ${least === most ? least : `${least} to ${most}`} of ${n}`;
}

/** A line from the first sample on; the whole width is an hour or, soon after the start, ten minutes. `null`: there is
 * nothing to show yet. */
export function spark({ stepMs, held }, n) {
  if (held.length < SAMPLES_MIN || !n || !stepMs) return null;
  const spanMs = held.length * stepMs <= SHORT_MS ? SHORT_MS : 3600000;
  const step = WIDTH / (spanMs / stepMs - 1);
  const high = Math.max(n, ...held);
  const y = (value) => HEIGHT - 2 - ((HEIGHT - 4) * value) / high;
  const x = (i) => WIDTH - (held.length - 1 - i) * step;
  const points = held.map((value, i) => `${x(i).toFixed(1)},${y(value).toFixed(1)}`);
  const svg = shape("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, role: "img" });
  const title = shape("title", {});
  title.textContent = words(held, n, stepMs);
  svg.setAttribute("aria-label", title.textContent);
  svg.append(title, shape("line", { x1: 0, x2: WIDTH, y1: HEIGHT - 2, y2: HEIGHT - 2, class: "ground" }),
    shape("polygon", { points: `${x(0).toFixed(1)},${HEIGHT - 2} ${points.join(" ")} ${WIDTH},${HEIGHT - 2}`, class: "area" }),
    shape("polyline", { points: points.join(" "), class: "rope" }));
  return svg;
}
