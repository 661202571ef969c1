// ---- finding classes and candidates, and ordering classes

const plain = (text) => {
  const small = text.toLowerCase();
  return /^[\x00-\x7f]*$/.test(small) ? small : small.normalize("NFD").replace(/\p{M}/gu, "");
};
const textsOf = new WeakMap(); // article -> for each candidate, what is searched
const searchable = (article) => {
  if (!textsOf.has(article)) {
    const { id, caption } = dataOf(article).ranked;
    textsOf.set(article, id.map((id, at) => plain(caption?.[at] ? `${caption[at]} ${id}` : id)));
  }
  return textsOf.get(article);
};

const search = document.getElementById("search");
const wanted = document.getElementById("decision"); // only where there are decisions
const isDecided = (article, at) => {
  if (!wanted?.value) return true;
  return (dataOf(article).ranked.d?.[at] ?? "0") === wanted.value;
};
// A class whose name has all the words is shown whole; of another, the candidates that have the words its name lacks.
const matchesIn = (article, words) => {
  const name = plain(article.dataset.name);
  const byName = words.every((word) => name.includes(word));
  const n = dataOf(article).ranked.id.length;
  if (byName && wanted?.value) return { byName, places: range(0, n) };
  if (words.length === 0) return { byName, places: [] };
  const sought = byName ? words : words.filter((word) => !name.includes(word));
  const texts = searchable(article);
  return { byName, places: range(0, n).filter((at) => sought.every((word) => texts[at].includes(word))) };
};
const countText = (byName, candidates, classes) => {
  const within = candidates === 0 ? "no candidates" : `${counted(candidates, "candidate")} in ${counted(classes, "class")}`;
  if (!search.value.trim()) return wanted?.value ? within : counted(articles.length, "class");
  return `${grouped(byName)} of ${counted(articles.length, "class")} by name, ${within} by caption or id`;
};
const filter = () => {
  const words = plain(search.value).split(/\s+/).filter(Boolean);
  let [named, candidates, classes] = [0, 0, 0];
  for (const article of articles) {
    const { byName, places } = matchesIn(article, words);
    const matches = places.filter((at) => isDecided(article, at));
    const isWhole = byName && !wanted?.value;
    if (words.length > 0 && byName) named += 1;
    if (matches.length > 0) { candidates += matches.length; classes += 1; }
    article.hidden = !isWhole && matches.length === 0;
    const before = matchesOf.get(article);
    if (isWhole || article.hidden) matchesOf.delete(article);
    else matchesOf.set(article, matches);
    if (before || matchesOf.has(article)) buildLater(article);
  }
  document.getElementById("count").textContent = countText(named, candidates, classes);
};
let soon = 0;
search?.addEventListener("input", () => { clearTimeout(soon); soon = setTimeout(filter, 120); });
wanted?.addEventListener("change", filter);

const number = (article, key, missing) => (article.dataset[key] === undefined ? missing : Number(article.dataset[key]));
const orders = {
  name: () => 0,
  n: (a, b) => number(b, "n", 0) - number(a, "n", 0),
  low: (a, b) => number(a, "mean", 2) - number(b, "mean", 2),
  high: (a, b) => number(b, "mean", -1) - number(a, "mean", -1),
  auc: (a, b) => number(a, "auc", 2) - number(b, "auc", 2),
  decided: (a, b) => number(a, "decided", 0) - number(b, "decided", 0),
};
document.getElementById("order")?.addEventListener("change", (event) => {
  classList.append(...[...articles].sort(orders[event.target.value])); // stable: by name within equals
});
if (search?.value || wanted?.value) filter(); // the browser may have kept it over a reload
