// Elements, numbers and packed arrays. Text from the data is only ever set as text.

const $ = (id) => document.getElementById(id);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

const draw = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function unpack(text, Kind) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Kind(bytes.buffer);
}

const count = (value) => value.toLocaleString("en");
const counted = (value, one, many) => `${count(value)} ${value === 1 ? one : many}`;
const percent = (value) => (value === null ? "–" : `${(100 * value).toFixed(1)}%`);
const fixed = (value, digits = 3) =>
  value === null || !Number.isFinite(value) ? "–" : value.toFixed(digits);

// At most four digits, for axes and legends.
function brief(value) {
  if (value === null || !Number.isFinite(value)) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return count(value);
  return Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3
    ? value.toExponential(1)
    : String(+value.toPrecision(3));
}

// Round steps from `low` to `high`, about `n` of them.
function ticks(low, high, n) {
  const raw = (high - low) / n;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999) * power;
  const marks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++)
    marks.push(+(i * step).toPrecision(12));
  return marks;
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colourOf = (entry) => entry.colours[dark.matches ? 1 : 0];
