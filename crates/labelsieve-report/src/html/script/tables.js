// ---- sortable tables

const valueOf = (row, column) => {
  const cell = row.cells[column];
  if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
  return cell.textContent.trim();
};
// Numbers before texts before nothing, whichever way the rest goes.
const kindOf = (value) => (typeof value === "number" ? 0 : value === "" ? 2 : 1);
const compare = (a, b, direction) => {
  if (kindOf(a) !== kindOf(b)) return kindOf(a) - kindOf(b);
  if (typeof a === "number") return direction * (a - b);
  return direction * a.localeCompare(b, undefined, { numeric: true });
};
const sortTable = (table, heading, column) => {
  const before = heading.getAttribute("aria-sort");
  const numeric = column > 0 && table.querySelector(`tbody tr :nth-child(${column + 1})[data-value]`) !== null;
  const first = numeric ? "descending" : "ascending";
  const second = numeric ? "ascending" : "descending";
  const order = before === first ? second : first;
  for (const other of table.querySelectorAll("th[aria-sort]")) other.setAttribute("aria-sort", "none");
  heading.setAttribute("aria-sort", order);
  const direction = order === "ascending" ? 1 : -1;
  for (const body of table.tBodies) {
    const rows = [...body.rows].filter((row) => !row.classList.contains("group"));
    rows.sort((a, b) => compare(valueOf(a, column), valueOf(b, column), direction));
    body.append(...rows);
  }
};
for (const table of document.querySelectorAll("table.sortable")) {
  const headings = table.tHead.rows[table.tHead.rows.length - 1].cells;
  [...headings].forEach((heading, column) => {
    const button = make("button", { type: "button" });
    button.append(...heading.childNodes);
    heading.append(button);
    heading.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => sortTable(table, heading, column));
  });
}
