// ---- jumps inside the page: galleries on the way grow as they come near, so scrolling repeats until the target stays

let stillJumping = false;
const jump = () => {
  const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
  if (!target) return;
  const article = target.closest("article.class");
  if (article?.hidden) { search.value = ""; if (wanted) wanted.value = ""; filter(); }
  let left = 20;
  stillJumping = true;
  const again = () => {
    if (!stillJumping) return;
    target.scrollIntoView();
    left -= 1;
    if (left > 0) requestAnimationFrame(again);
  };
  again();
};
for (const event of ["wheel", "touchstart", "keydown", "pointerdown"]) addEventListener(event, () => { stillJumping = false; }, { passive: true });
addEventListener("hashchange", jump);
document.addEventListener("click", (event) => {
  if (event.target.closest("a[href^='#']")?.hash === location.hash) jump(); // the address stays, but the reader asks again
});
jump();
