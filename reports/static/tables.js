"use strict";
// Makes tables that can be filtered, and sorted by a click on a heading. Without this script, they show all rows in the run's order.
(function () {
  const text = (cell) => cell.textContent.trim().replace(/\s+/g, " ");

  // Return the number in a text such as "✔ 87 %" or "$0.12", or the text if it has no number. Empty cells come last.
  function key(cell) {
    const shown = text(cell);
    const found = shown.match(/-?\d+(\.\d+)?/);
    if (found && /^[✔✘?!$<–-]?\s*\$?-?\d/.test(shown)) return Number(found[0]);
    return shown === "–" || shown === "" ? null : shown.toLowerCase();
  }

  function compare(a, b) {
    if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
    if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
    return typeof a === "number" ? -1 : 1;
  }

  function sortable(table) {
    const body = table.tBodies[0];
    const original = [...body.rows];
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const was = head.getAttribute("aria-sort");
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        if (was === "descending") return body.append(...original); // The third click restores the order of the run.
        const sign = was ? -1 : 1;
        head.setAttribute("aria-sort", was ? "descending" : "ascending");
        const keyed = original.map((row) => [key(row.cells[column]), row]);
        keyed.sort((a, b) => (a[0] === null || b[0] === null ? compare(a[0], b[0]) : sign * compare(a[0], b[0])));
        body.append(...keyed.map((one) => one[1]));
      });
    });
  }

  function filterable(table) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < 4) return;
    const bar = document.createElement("p");
    bar.className = "filter";
    const name = table.getAttribute("aria-label") || "this table";
    const word = document.createElement("input");
    word.type = "search";
    word.placeholder = "filter";
    word.setAttribute("aria-label", "Filter " + name);
    const count = document.createElement("span");
    count.setAttribute("role", "status");
    const verdicts = [...new Set(rows.map((row) => row.dataset.verdict).filter(Boolean))];
    const chosen = document.createElement("select");
    chosen.setAttribute("aria-label", "Verdicts shown in " + name);
    for (const one of ["all verdicts", ...verdicts]) chosen.append(new Option(one));
    function apply() {
      const wanted = word.value.toLowerCase();
      let left = 0;
      for (const row of rows) {
        const fits = text(row).toLowerCase().includes(wanted) && (chosen.selectedIndex < 1 || row.dataset.verdict === chosen.value);
        row.hidden = !fits;
        left += fits;
      }
      count.textContent = left === rows.length ? "" : left + " of " + rows.length;
    }
    word.addEventListener("input", apply);
    chosen.addEventListener("change", apply);
    bar.append(word);
    if (verdicts.length > 1) bar.append(chosen);
    bar.append(count);
    (table.closest(".scroll") || table).before(bar);
  }

  for (const table of document.querySelectorAll("table[data-sort]")) {
    filterable(table);
    sortable(table);
  }
})();
