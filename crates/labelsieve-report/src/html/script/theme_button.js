// ---- dark and light

const themeButton = document.getElementById("theme");
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : prefersDark.matches;
};
const showTheme = () => {
  themeButton.textContent = isDark() ? "Light" : "Dark";
  themeButton.setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
};
themeButton.hidden = false;
themeButton.addEventListener("click", () => {
  const theme = isDark() ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("labelsieve-theme", theme); } catch { /* kept for this view only */ }
  showTheme();
});
prefersDark.addEventListener("change", showTheme);
showTheme();
