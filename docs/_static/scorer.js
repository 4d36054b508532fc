// Sphinx's scores, except that a heading which is what was searched for comes first.
const asked = (new URLSearchParams(location.search).get("q") || "").trim().toLowerCase();
var Scorer = {
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  score: ([, title, , , score]) =>
    score + (title.split(" > ").at(-1).toLowerCase() === asked ? 20 : 0),
};
