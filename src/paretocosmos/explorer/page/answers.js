// ---- confusion matrices, at the evaluated ray nearest to the preference ----
let counted = [];
const buildAnswers = () => {
  const answers = active().answers;
  $("answers").hidden = !answers || !page.heads.length;
  counted = [];
  if ($("answers").hidden) return;
  segments("heads", page.heads.map((head, at) => [String(at), nice(head.name)]), String(state.head), (at) => { state.head = Number(at); changed("view"); });
  segments("groups", page.groups.length ? ["Everybody", ...page.groups].map((name, at) => [String(at), name]) : [], String(state.group), (at) => { state.group = Number(at); changed("view"); });
  const { classes } = page.heads[state.head];
  $("answers-body").replaceChildren(...Object.keys(answers.confusion).map((split) => {
    const cells = classes.map(() => classes.map(() => make("td", {}, make("span"), make("small"))));
    counted.push({ split, cells });
    const small = classes.length > 4;
    return make("figure", { class: small ? "confusion many" : "confusion" }, make("figcaption", {}, splitName(split)),
      make("div", { class: "sideways", tabindex: 0, role: "region", "aria-label": `Answers, ${splitName(split)}` }, make("table", {}, make("thead", {}, make("tr", {}, make("th", { scope: "col" }, small ? "true" : "true ↓ answer →"), ...classes.map((name) => make("th", { scope: "col" }, name)))),
        make("tbody", {}, ...classes.map((name, row) => make("tr", {}, make("th", { scope: "row" }, name), ...cells[row]))))));
  }));
  shownAt = null;
  showAnswers();
};
let shownAt = null;
const showAnswers = () => {
  const run = active();
  if (!counted.length) return;
  const at = heaviest(mixOf(run, choosingSplit));
  const front = run.front(choosingSplit);
  const wanted = run.networks > 0 ? front.ray(at) : state.ray;
  const apart = (k) => front.ray(run.answers.rayIndices[k]).reduce((sum, one, j) => sum + (one - wanted[j]) ** 2, 0);
  let place = 0;
  run.answers.rayIndices.forEach((_, k) => { if (apart(k) < apart(place)) place = k; });
  const key = `${run.index} ${place} ${state.head} ${state.group}`;
  if (key === shownAt) return;
  shownAt = key;
  const C = page.heads[state.head].classes.length;
  const groups = page.groups.length ? page.groups.length + 1 : 1;
  const ray = front.ray(run.answers.rayIndices[place]).map((one) => one.toFixed(3)).join(", ");
  say($("answers-text"), `Counted at the evaluated ray ${ray}, the nearest to your preference. Rows are true classes, columns the network’s answers.`);
  for (const { split, cells } of counted) {
    const counts = run.answers.confusion[split][state.head];
    const from = (place * groups + Math.min(state.group, groups - 1)) * C * C;
    for (let row = 0; row < C; row += 1) {
      let total = 0;
      for (let column = 0; column < C; column += 1) total += counts[from + row * C + column];
      for (let column = 0; column < C; column += 1) {
        const count = counts[from + row * C + column];
        const cell = cells[row][column];
        const share = total ? count / total : 0;
        say(cell.firstChild, C > 4 ? (count ? String(count) : "·") : count.toLocaleString("en-US"));
        say(cell.lastChild, C > 4 ? "" : percent(share, 1));
        cell.style.setProperty("--share", share.toFixed(3));
        cell.className = row === column ? "right" : "wrong";
      }
    }
  }
};
on("run view", buildAnswers);
on("ray", unhurried("answers", showAnswers));
