"use strict";
try {
  const kept = localStorage.getItem("labelsieve-theme");
  if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
} catch { /* no storage for local files in some browsers: the system's theme it is */ }
