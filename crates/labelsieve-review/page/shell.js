// Around the pictures: theme, and the sides that are drawers where there is no room for them.

import { setText, $ } from "./dom.js";

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : prefersDark.matches;
};
const showTheme = () => {
  setText($("theme"), isDark() ? "Light" : "Dark");
  $("theme").setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
};
const startTheme = () => {
  $("theme").addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    try { localStorage.setItem("labelsieve-theme", theme); } catch { /* for this view only, then */ }
    showTheme();
  });
  prefersDark.addEventListener("change", showTheme);
  showTheme();
};

const DRAWERS = [["open-classes", "classes"], ["open-scores", "scores"]];
const setDrawer = (opener, side, open) => {
  $(side).classList.toggle("open", open);
  $(opener).setAttribute("aria-expanded", String(open));
};
export const closeDrawers = () => {
  const open = DRAWERS.filter(([, side]) => $(side).classList.contains("open"));
  for (const [opener, side] of open) setDrawer(opener, side, false);
  return open.length > 0;
};
const startDrawers = () => {
  for (const [opener, side] of DRAWERS) {
    $(opener).addEventListener("click", () => {
      const open = !$(side).classList.contains("open");
      closeDrawers();
      setDrawer(opener, side, open);
      if (open) $(side).querySelector("input, button")?.focus();
    });
  }
  $("main").addEventListener("pointerdown", closeDrawers);
};

/** Opens or closes the filters. */
export const showTools = (open) => {
  $("tools").hidden = !open;
  $("open-tools").setAttribute("aria-expanded", String(open));
};

export const startShell = () => {
  startTheme();
  startDrawers();
  $("open-tools").addEventListener("click", () => showTools($("tools").hidden));
};
