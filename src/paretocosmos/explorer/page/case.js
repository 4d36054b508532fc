// ---- a case of the visitor's own: what the network answers, and where that changes ----
const networkOf = (run) => {
  if (run.network) run.computes ??= buildNetwork(run.network, page.columns, page.answer);
  return run.computes;
};
const threshold = words.threshold ?? 0.5;
let asked = { features: null, outputs: null }; // outputs where they are the same at all rays
let flips = []; // weights of the first objective at which the answer changes: { weight, from, to }
const answerAt = (ray) => {
  const network = networkOf(active());
  const outputs = asked.outputs ?? network.run(asked.features, 1, ray);
  return network.read(outputs, 0, ray);
};
const classOf = (answer) => (answer.length > 1 ? answer.indexOf(Math.max(...answer)) : Number(answer[0] > threshold));
const PLACES = 100;
// The first guess is a grid; each change on it is then found by halving.
const findFlips = () => {
  if (J !== 2 || page.answer.task === "number") return [];
  const [low, high] = rangeOfWeights();
  const at = (weight) => classOf(answerAt([weight, 1 - weight]));
  const found = [];
  let from = at(low);
  for (let place = 1; place <= PLACES && high > low; place += 1) {
    let [left, right] = [low + ((place - 1) / PLACES) * (high - low), low + (place / PLACES) * (high - low)];
    const to = at(right);
    if (to !== from) {
      for (let step = 0; step < 12; step += 1) {
        const middle = (left + right) / 2;
        if (at(middle) === from) left = middle;
        else right = middle;
      }
      found.push({ weight: right, from, to });
    }
    from = to;
  }
  return found;
};
const readForm = () => {
  const cells = page.columns.map((column, c) => {
    const { value } = $("case-form").elements[c];
    return [value === "" ? NaN : Number(value)];
  });
  const network = networkOf(active());
  const features = network.encode(cells, 1);
  asked = { features, outputs: network.shared ? network.run(features, 1, state.ray) : null };
  flips = findFlips();
  changed("case");
};
// Numbers begin with the median of the training rows, categories with the most frequent one.
const fieldOf = (column) => {
  if (!column.labels) {
    const field = make("input", { type: "number", step: "any", placeholder: "missing" });
    field.value = Number(column.fill.toPrecision(7));
    return field;
  }
  const field = make("select");
  const others = [[-1, "any other"]];
  if (column.missing < 0) others.push([-1, "missing"]);
  options(field, [...column.labels.map((label, at) => [at, label]), ...others], column.means.indexOf(Math.max(...column.means)));
  return field;
};
const buildForm = () => {
  const network = networkOf(active());
  $("case").hidden = !network && !active().networkNote;
  $("case-form").hidden = !network;
  flips = [];
  if (!network) {
    for (const id of ["case-answer", "case-flips"]) say($(id), "");
    say($("case-text"), active().networkNote);
    return changed("case");
  }
  const { about } = active().record;
  const group = isGroup(about) && typeof about.sensitive === "string" && !page.columns.some(({ name }) => name === about.sensitive) ? ` It does not read ${nice(about.sensitive)}, so that is not asked for.` : "";
  say($("case-text"), `Fill in what the network reads. It is part of this page, so what you enter stays here.${group} The form begins with medians and with the most frequent categories of the training data. Where a number is missing, leave it empty.`);
  if (!$("case-form").elements.length) {
    const again = make("button", { type: "reset" }, "Start again");
    $("case-form").append(...page.columns.map((column) => make("label", {}, make("span", {}, nice(column.name)), fieldOf(column))), make("span", { class: "actions" }, again));
  }
  return readForm();
};
// What a yes means, as the bars above have it: "Predicted to earn over 50,000".
const askedOfCase = () => words.outcomes.find(({ cells }) => cells.every(({ counted, true_classes: over }) => counted === "positive" && over.length !== 1))?.title ?? `Predicted “${page.answer.classes[1]}”`;
const answersOf = (index) => (page.answer.task === "binary" ? ["no", "yes"][index] : `“${page.answer.classes[index]}”`);
const showCase = () => {
  if (!asked.features || !networkOf(active())) return;
  const answer = answerAt(state.ray);
  const { classes, task } = page.answer;
  const number = (text) => make("b", {}, text);
  const best = classOf(answer);
  if (task === "number") $("case-answer").replaceChildren("The prediction is ", number(plain(answer[0])), ".");
  else if (task === "binary") $("case-answer").replaceChildren(`${askedOfCase()}: `, number(answersOf(best)), ", since a yes has a probability of ", number(percent(answer[0], 1)), ".");
  else $("case-answer").replaceChildren("Most probable: ", number(`“${classes[best]}”`), ", with a probability of ", number(percent(answer[best], 1)), ".");
  if (J !== 2 || task === "number") return;
  const wish = wishOf(0);
  const said = flips.map(({ weight, from, to }) => `with more than ${percent(weight, 1)} of the weight on ${wish} it is ${answersOf(to)} instead of ${answersOf(from)}`);
  say($("case-flips"), said.length ? `${capital(listing(said, "and"))}. The slider is marked there.` : "The answer is the same at every trade-off.");
};
const setUpCase = () => {
  $("case-form").addEventListener("submit", (event) => event.preventDefault());
  $("case-form").addEventListener("input", readForm);
  // a form is reset after its event
  $("case-form").addEventListener("reset", () => setTimeout(() => {
    page.columns.forEach((column, c) => { $("case-form").elements[c].value = fieldOf(column).value; });
    readForm();
  }));
};
on("run", buildForm);
on("case ray", unhurried("case", showCase));
