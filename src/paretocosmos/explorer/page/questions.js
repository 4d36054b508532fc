// ---- choosing by questions: two outcomes at a time, and the choice that fits the answers ----
const MOST_QUESTIONS = 8;
const LEAST_QUESTIONS = 5;
const NOISE = 0.08; // how fuzzy answers are, where the front is 1 wide
const ENOUGH = 0.8; // of the probability
const ANSWERS = { a: "the first", b: "the second", "=": "neither" };
// Each choice may be the ideal one: of two others, the nearer is then preferred (Coombs's unfolding).
// `points` are choices with all their values from 0 to 1; asked are [a, b, answer].
const unfold = (points) => {
  const apart = points.map((one) => points.map((other) => Math.hypot(...one.map((value, j) => value - other[j]))));
  // that the first of two is preferred, if the ideal is `h`
  const firstAt = (a, b, h) => 1 / (1 + Math.exp((apart[a][h] - apart[b][h]) / NOISE));
  const likely = (asked) => {
    const each = points.map((_, h) => asked.reduce((product, [a, b, answer]) => {
      const first = firstAt(a, b, h);
      return product * (answer === "a" ? first : answer === "b" ? 1 - first : 4 * first * (1 - first));
    }, 1));
    const total = each.reduce((sum, one) => sum + one, 0);
    return each.map((one) => (total > 0 ? one / total : 1 / points.length));
  };
  const entropy = (p) => (p > 0 && p < 1 ? -p * Math.log(p) - (1 - p) * Math.log(1 - p) : 0);
  const expected = (chances, of) => chances.reduce((sum, one, h) => sum + one * of(h), 0);
  const places = Array.from(points.keys());
  return {
    likely,
    // The two whose answer says most.
    next(asked) {
      const chances = likely(asked);
      const some = places.filter((_, at) => at % Math.ceil(points.length / 30) === 0);
      const pairs = some.flatMap((a, at) => some.slice(at + 1).map((b) => [a, b])).filter(([a, b]) => !asked.some(([c, d]) => a === c && b === d));
      const tells = ([a, b]) => entropy(expected(chances, (h) => firstAt(a, b, h))) - expected(chances, (h) => entropy(firstAt(a, b, h)));
      return pairs.length ? pairs.map((pair) => [pair, tells(pair)]).reduce((best, one) => (one[1] > best[1] ? one : best))[0] : null;
    },
    // The choice that is nearest to the ideal on average, and how probable it is to be close.
    best(asked) {
      const chances = likely(asked);
      const away = places.map((at) => expected(chances, (h) => apart[at][h]));
      const at = away.indexOf(Math.min(...away));
      return { at, sure: expected(chances, (h) => (apart[at][h] < NOISE ? 1 : 0)) };
    },
  };
};
// Where the middle 80 % of some values with their chances lie.
const middleOf = (values, chances) => {
  const order = Array.from(values.keys()).sort((a, b) => values[a] - values[b]);
  const endAt = (share) => { let sum = 0; return values[order.find((at) => (sum += chances[at]) >= share - 1e-9)]; };
  return [endAt((1 - ENOUGH) / 2), endAt((1 + ENOUGH) / 2)];
};

const quiz = { model: null, places: [], asked: [] };
const valuesOf = (name) => quiz.places.map((at) => chosenFrom().columns[name][at]);
const startQuiz = () => {
  const front = chosenFrom();
  const { run } = state;
  quiz.places = front.order.filter((at) => isKept(runs[run], at) && !front.dominated[at] && (state.constants || !front.constant[at]) && traded.every((name) => isNumber(front.columns[name][at])));
  const scaled = traded.map((name) => {
    const values = valuesOf(name);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    return values.map((value) => (high > low ? (value - low) / (high - low) : 0));
  });
  quiz.model = unfold(quiz.places.map((_, at) => scaled.map((column) => column[at])));
  quiz.asked = [];
  showQuiz();
  $("quiz").showModal();
};
const quizCard = (place, title, answer) => {
  const ray = chosenFrom().ray(quiz.places[place]);
  const card = make("button", { type: "button", class: "card" }, make("b", {}, title), make("span", {}, leadText(active(), ray, choosingSplit)),
    ...traded.map((name) => make("span", { class: "quiet" }, `${capital(labelOf(name))}: ${inUnits(name, valueAt(active(), ray, choosingSplit, name))}`)));
  card.addEventListener("click", () => answer());
  return card;
};
const plainButton = (text, act) => {
  const button = make("button", { type: "button" }, text);
  button.addEventListener("click", act);
  return button;
};
const sureOf = (asked) => {
  const chances = quiz.model.likely(asked);
  return listing(traded.map((name) => { const [low, high] = middleOf(valuesOf(name), chances); return `${theOf(name)} ${bare(name, low) === bare(name, high) ? "of" : `from ${bare(name, low)} to`} ${inUnits(name, high)}`; }), "and");
};
// Each within the intervals of the other: an answer would be arbitrary.
const isAlike = (pair) => [pair, [...pair].reverse()].every(([a, b]) => traded.every((name) => {
  const [here, there] = [a, b].map((at) => chosenFrom().ray(quiz.places[at]));
  const ends = endsAt(active(), here, choosingSplit, name);
  const value = valueAt(active(), there, choosingSplit, name);
  return ends && ends[0] <= value && value <= ends[1];
}));
const showQuiz = () => {
  const { model, asked } = quiz;
  const stop = plainButton("Close", () => $("quiz").close());
  const pair = quiz.places.length > 1 && asked.length < MOST_QUESTIONS && !(asked.length >= LEAST_QUESTIONS && model.best(asked).sure >= ENOUGH) ? model.next(asked) : null;
  if (pair) {
    const answer = (letter) => { asked.push([...pair, letter]); showQuiz(); };
    say($("quiz-title"), "Which of these two do you prefer?");
    say($("quiz-text"), `Question ${asked.length + 1} of ${MOST_QUESTIONS} at most, on ${dataName(choosingSplit)}.${isAlike(pair) ? " The data cannot tell these two apart: each lies within the intervals of the other." : ""}`);
    $("quiz-body").replaceChildren(quizCard(pair[0], "The first", () => answer("a")), quizCard(pair[1], "The second", () => answer("b")));
    $("quiz-actions").replaceChildren(plainButton("Neither is better", () => answer("=")), stop);
    return;
  }
  if (!asked.length) {
    say($("quiz-title"), "There is nothing to ask");
    say($("quiz-text"), "Fewer than two choices keep the limits.");
    $("quiz-body").replaceChildren();
    $("quiz-actions").replaceChildren(stop);
    return;
  }
  const place = quiz.places[model.best(asked).at];
  const take = () => {
    setRay(chosenFrom().ray(place), false, asked.map(([a, b, letter]) => `${quiz.places[a]}${letter}${quiz.places[b]}`).join(" "));
    $("quiz").close();
  };
  say($("quiz-title"), "This fits your answers best");
  say($("quiz-text"), `What you want lies here with a probability of 80 %: ${sureOf(asked)}. The better your answers agree, the narrower this is.`);
  $("quiz-body").replaceChildren(quizCard(quiz.places.indexOf(place), "Take this choice", take));
  $("quiz-actions").replaceChildren(plainButton("Ask again", startQuiz), stop);
  $("quiz-body").firstChild.focus();
};
// What was answered on the way to the choice, for the record: "3a17" prefers ray 3 to ray 17.
const questionsOf = () => state.asked.split(" ").flatMap((text) => {
  const found = /^(\d+)([ab=])(\d+)$/.exec(text);
  const rays = found && [found[1], found[3]].map(Number);
  if (!found || rays.some((at) => at >= chosenFrom().count)) return [];
  return [{ first: chosenFrom().ray(rays[0]), second: chosenFrom().ray(rays[1]), preferred: ANSWERS[found[2]] }];
});
$("ask").addEventListener("click", startQuiz);
