// ---- the page's elements: text is always text, never markup ----
const $ = (id) => document.getElementById(id);
// The page before this script has changed anything, for a copy of it.
const untouched = document.documentElement.outerHTML;
const DASH = "–";
const fill = (node, attributes, children) => {
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
};
const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const nice = (name) => String(name).replaceAll("_", " ");
const splitName = (split) => ({ val: "Validation", test: "Test", train: "Train", own: "Your rows" }[split] ?? split);
const named = (value) => (isGroup(value) ? value.name : value);
const isGroup = (value) => value !== null && typeof value === "object";
// Touches the page only where something changed: reading is cheap, laying out is not.
const say = (node, text) => { if (node.textContent !== text) node.textContent = text; };

// A part of the page that is renewed at once where it is in sight, and else when things have come to rest.
const unhurried = (id, show) => {
  let [seen, resting] = [true, 0];
  new IntersectionObserver((entries) => {
    seen = entries[entries.length - 1].isIntersecting;
    if (seen) show();
  }).observe($(id));
  return () => {
    clearTimeout(resting);
    if (seen) show();
    else resting = setTimeout(show, 150);
  };
};

// A column shows as many decimals as its largest number needs for four digits.
const decimals = (values) => {
  let largest = 0;
  for (const value of values) if (isNumber(value)) largest = Math.max(largest, Math.abs(value));
  return largest > 0 ? clamp(4 - Math.ceil(Math.log10(largest) + 1e-12), 0, 8) : 4;
};
const fixed = (value, digits) => {
  if (!isNumber(value)) return DASH;
  const text = Math.abs(value) >= 1e4 && digits === 0 ? Math.round(value).toLocaleString("en-US") : value.toFixed(digits);
  return text.replace("-", "−");
};
// Sentences of the program mark names as a terminal does.
const unquoted = (text) => String(text).replaceAll("`", "");
const plain = (value) => {
  if (!isNumber(value)) return DASH;
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en-US").replace("-", "−");
  return fixed(value, decimals([value]));
};
const percent = (share, digits = 0) => (isNumber(share) ? `${(100 * share).toFixed(digits)}\u00a0%` : DASH);
const duration = (seconds) => {
  if (!isNumber(seconds)) return DASH;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
};

// A row of radio buttons in a fieldset; hidden where there is nothing to choose.
const segments = (id, options, chosen, onChange) => {
  const box = $(id);
  box.replaceChildren(box.querySelector("legend"), ...options.map(([value, text]) => {
    const radio = make("input", { type: "radio", name: id, value });
    radio.checked = value === chosen;
    radio.addEventListener("change", () => onChange(value));
    return make("label", {}, radio, make("span", {}, text));
  }));
  box.hidden = options.length < 2;
};
const options = (select, entries, chosen) => {
  select.replaceChildren(...entries.map(([value, text]) => make("option", { value }, text)));
  select.value = chosen;
};
