"use strict";
// Functions that the live pages share. All texts of a model or a protocol are put on the page with textContent.
const MARKS = { PASS: "✔", FAIL: "✘", INCONCLUSIVE: "?", ERROR: "!" };
const byId = (id) => document.getElementById(id);

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function link(text, href) {
  const made = element("a", text);
  made.href = href;
  return made;
}

function pill(verdict, text) {
  return element("span", text || ((MARKS[verdict] || "") + " " + verdict).trim(), "verdict " + verdict.toLowerCase());
}

// Only texts that have changed are replaced, so that selections, the focus and screen readers are not disturbed.
function say(id, text) {
  const place = typeof id === "string" ? byId(id) : id;
  if (place.textContent !== text) place.textContent = text;
}

// Amounts are shown to the cent, as in the terminal and in the report.
const money = (value) => "$" + value.toLocaleString("en", {minimumFractionDigits: 2, maximumFractionDigits: 2});
const roughly = (value) => value < 10 ? money(value) : "$" + Math.round(value).toLocaleString("en");
const whole = (value) => value.toLocaleString("en");
// Round as cheesebench/amounts.py does: halves away from zero, after rounding to twelve significant digits.
const rounded = (value, decimals) => (Math.round(Number((10 ** decimals * value).toPrecision(12))) / 10 ** decimals).toFixed(decimals);
const perHundred = (value) => rounded(100 * value, 1).replace(/\.0$/, "");
const percent = (value) => (value === null ? "–" : perHundred(value) + " %");

function duration(seconds) {
  if (seconds < 100) return rounded(seconds, 0) + " s";
  if (seconds < 6000) return rounded(seconds / 60, 0) + " min";
  return rounded(seconds / 3600, 1) + " h";
}

// The browser connects again by itself. Until then, the page says that there is no connection.
function listen(path, handlers) {
  const source = new EventSource(path);
  source.onerror = () => say("connection", "no connection: is cheesebench view still running? Trying again…");
  source.addEventListener("trouble", (event) => say("connection", JSON.parse(event.data)));
  for (const [kind, handler] of Object.entries(handlers)) {
    source.addEventListener(kind, (event) => {
      handler(JSON.parse(event.data));
      if (kind !== "line") say("connection", "");
    });
  }
  return source;
}
