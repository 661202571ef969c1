// ---- galleries

const range = (start, end) => Array.from({ length: end - start }, (_, i) => start + i);
const ranks = (start, end) => (end - start === 1 ? `rank ${grouped(end)}` : `ranks ${grouped(start + 1)} to ${grouped(end)}`);
const matchesOf = new Map(); // article -> places of the candidates that are looked for; all of them if it has no entry

const wholeRanking = (article, add) => {
  const { shown, ranked } = dataOf(article);
  const n = ranked.id.length;
  const gap = (start, end) => {
    if (start < end) add(null, foldedRows(article, range(start, end), `${ranks(start, end)}: ${counted(end - start, "candidate")} without a picture here`));
  };
  let next = 0;
  for (const [name, start, end] of shown) {
    gap(next, start);
    const title = `${name}, ${ranks(start, end)} of ${grouped(n)}`;
    add(title, cards(article, "ranked", title, range(start, end)));
    next = end;
  }
  gap(next, n);
};
const onlyMatches = (article, matches, add) => {
  const pictured = matches.filter((at) => dataOf(article).ranked.p?.[at] !== undefined);
  const others = matches.filter((at) => dataOf(article).ranked.p?.[at] === undefined);
  if (pictured.length > 0) {
    const title = `Matches with a picture (${grouped(pictured.length)})`;
    add(title, cards(article, "ranked", title, pictured));
  }
  if (others.length > CHUNK) add(null, foldedRows(article, others, `${grouped(others.length)} matches without a picture`));
  else if (others.length > 0) add(`Matches without a picture (${grouped(others.length)})`, rows(article, others));
};

const build = (article) => {
  const gallery = article.querySelector(".gallery");
  gallery.replaceChildren();
  buttonsOf.set(article, { clean: new Map(), ranked: new Map() });
  const add = (title, list) => gallery.append(...(title ? [make("h4", {}, title)] : []), list);
  const { clean, clean_shown } = dataOf(article);
  if (clean.id.length > 0) {
    const some = clean_shown < clean.id.length ? `first ${grouped(clean_shown)} of ` : "";
    const title = `Clean examples (${some}${grouped(clean.id.length)})`;
    add(title, cards(article, "clean", title, range(0, clean_shown)));
  }
  const matches = matchesOf.get(article);
  if (matches) onlyMatches(article, matches, add);
  else wholeRanking(article, add);
};

const articles = [...document.querySelectorAll("article.class")];
const classList = document.getElementById("class-list");
const unbuilt = new Set(articles);
const buildOnce = (article) => {
  observer.unobserve(article);
  if (unbuilt.delete(article)) build(article);
};
const observer = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) if (isIntersecting) buildOnce(target);
}, { rootMargin: "400px 0px" });
const buildLater = (article) => {
  const gallery = article.querySelector(".gallery");
  for (const image of gallery.querySelectorAll("img")) { sourceOf.delete(image); pictures.unobserve(image); }
  gallery.replaceChildren();
  unbuilt.add(article);
  observer.unobserve(article); // observing again reports whether it is in view now
  observer.observe(article);
};
articles.forEach((article) => observer.observe(article));
