"use strict";
try {
  const kept = localStorage.getItem("labelsieve-theme");
  if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
} catch { /* some browsers have no storage for local files: keep the system's theme */ }
