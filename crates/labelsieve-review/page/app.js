const session = await (await fetch("api/session")).json();
const app = document.getElementById("app");
app.replaceChildren();
for (const { name, n_candidates } of session.classes) {
  const line = document.createElement("p");
  line.textContent = `${name}: ${n_candidates} candidates`;
  app.append(line);
}
