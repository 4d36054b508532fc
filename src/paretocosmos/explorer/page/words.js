// ---- what things are called, and numbers with their units ----
const words = page.words;
const measureOf = (name) => (Object.hasOwn(page.measures, name) ? page.measures[name] : { label: nice(name), goal: nice(name), meaning: "", unit: "" });
const labelOf = (name) => measureOf(name).label;
// Within a sentence: "the gap in who is found", "wrong answers".
const theOf = (name) => labelOf(name).replace(/^(?=(gap|difference|larger|loss|error|typical|average|squared|calibration|area)\b)/, "the ");
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
// Shares and their differences are shown in hundredths.
const scaleOf = (name) => (measureOf(name).unit ? 100 : 1);
const unitOf = (name) => measureOf(name).unit;
const inUnits = (name, value, digits = 1) => {
  if (!isNumber(value)) return "not known";
  return unitOf(name) ? `${fixed(100 * value, digits)}\u00a0${unitOf(name)}` : plain(value);
};
const bare = (name, value) => (unitOf(name) ? fixed(100 * value, 1) : plain(value));
// The metric that tells of an objective in numbers that people know.
const plainOf = (name) => (Object.hasOwn(words.instead, name) ? words.instead[name] : name);
const traded = names.map(plainOf);
// What a difference means: "2.8 more wrong answers in 100", "3.1 points less gap".
const difference = (name, by) => {
  const { label, unit } = measureOf(name);
  if (!isNumber(by)) return `${label} not known`;
  const size = unit ? fixed(Math.abs(100 * by), 1) : plain(Math.abs(by));
  if (Number(size) === 0) return `as much ${label}`.replace("as much wrong answers", "as many wrong answers").replace("as much right answers", "as many right answers");
  if (unit === "of 100") return `${size} ${by > 0 ? "more" : "fewer"} ${label} in 100`;
  if (unit === "points") return `${theOf(name)} ${by > 0 ? "larger" : "smaller"} by ${size} points`;
  return `${theOf(name)} ${by > 0 ? "larger" : "smaller"} by ${size}`;
};
// A limit as it was typed: "gap in who is selected at most 2 points".
const limitText = ({ name, bound, side }) => `${labelOf(name)} at ${side > 0 ? "most" : "least"} ${Number((bound * scaleOf(name)).toPrecision(6))}${unitOf(name) ? `\u00a0${unitOf(name)}` : ""}`;
// After a number: "1 is selected", "2 are selected".
const agreeing = (text, count) => (String(count) === "1" ? text.replace(/\bare\b/, "is") : text);
// For lists: what is traded first, in plain numbers; losses last.
const byPlainness = [...new Set([...traded, ...quantities.filter((name) => unitOf(name)), ...quantities.filter((name) => !names.includes(name)), ...names])];
const rowsIn = (split) => {
  const size = Object.hasOwn(words.sizes, split) ? `${words.sizes[split].toLocaleString("en-US")} ` : "";
  return `${size}${words.rows}`;
};
const whose = (split) => {
  if (split === "own") return "of your file";
  if (split === choosingSplit) return "held back from training and used for choosing";
  return split === "train" ? "used for training" : "used neither for training nor for choosing";
};
// Where answers are yes or no, the probability from which one is a yes.
const decidedAt = () => (words.threshold === null || words.threshold === undefined ? "" : `An answer counts as a yes where its probability is above ${words.threshold}. `);
const moved = () => typeof words.threshold === "number" && words.threshold !== 0.5;
const countedOn = (split) => `${rowsIn(split)} ${whose(split)} (${splitName(split).toLowerCase()})`;
