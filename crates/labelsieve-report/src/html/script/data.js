// ---- the examples of a class, from columns (see class_data.rs)

const folders = JSON.parse(document.getElementById("folders")?.textContent ?? "[]");
const addressOf = (columns, at) => {
  const to = columns.to?.[at];
  if (typeof to !== "number") return to ?? undefined;
  return folders[to] + columns.id[at].split("/").map(encodeURIComponent).join("/");
};

const parsed = new WeakMap(); // article -> its data
const dataOf = (article) => {
  if (!parsed.has(article)) parsed.set(article, JSON.parse(article.querySelector("script").textContent));
  return parsed.get(article);
};

const DECISIONS = ["", "accepted", "rejected", "unsure"];
const hundredths = (value) => (value === undefined || value === null ? undefined : (value / 100).toFixed(2));
// `kind` is `clean` or `ranked`, `at` the place in that list.
const itemOf = (article, kind, at) => {
  const data = dataOf(article);
  const columns = data[kind];
  const letter = columns.t?.[at];
  return {
    id: columns.id[at],
    caption: columns.caption?.[at] ?? "",
    relevance: hundredths(columns.r?.[at]),
    probability: hundredths(columns.q?.[at]),
    rank: kind === "ranked" ? at + 1 : undefined,
    truth: letter === "y" ? "relevant" : letter === "n" ? "irrelevant" : "",
    decision: DECISIONS[Number(columns.d?.[at] ?? 0)],
    name: data.names[columns.name?.[at]],
    best: data.bests[columns.best?.[at]],
    similarity: hundredths(columns.sim?.[at]),
    neighbours: columns.nn?.[at] ?? undefined,
    address: addressOf(columns, at),
    picture: columns.p?.[at],
  };
};
const nameOf = (item) => item.caption || item.id;
