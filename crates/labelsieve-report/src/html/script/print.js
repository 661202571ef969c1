// ---- printing: paper cannot be scrolled, so everything that has a picture is there at once

let unfolded = [];
addEventListener("beforeprint", () => {
  articles.filter((article) => !article.hidden).forEach(buildOnce);
  for (const [button, finish] of [...unfinished]) if (button.isConnected) finish();
  for (const image of [...sourceOf.keys()]) {
    if (!image.isConnected) continue;
    image.decoding = "sync";
    load(image);
  }
  unfolded = [...document.querySelectorAll("details:not([open])")];
  for (const details of unfolded) details.open = true;
});
addEventListener("afterprint", () => { for (const details of unfolded) details.open = false; });
