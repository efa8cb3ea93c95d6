// How Sphinx ranks the results of a search. Pages for users come first, then those for developers,
// then the changelog, which names nearly everything. The numbers are Sphinx's own, as a scorer
// replaces all of them.
var Scorer = {
  score: ([page, title, anchor, description, score]) => {
    if (page === "CHANGELOG") return score - 20;
    if (/^docs\/(CONFIG|config|guides)\b/.test(page)) return score + 3;
    return /^docs\/|^README|^python\//.test(page) ? score : score - 10;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
