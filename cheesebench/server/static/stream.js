"use strict";
// What the live pages share. Everything that a model or a protocol wrote is put on the page with textContent.
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

// Only what has changed is touched, so that a selection, the focus and a screen reader are left alone.
function say(id, text) {
  const place = typeof id === "string" ? byId(id) : id;
  if (place.textContent !== text) place.textContent = text;
}

// As the terminal and the report say it: to the cent.
const money = (value) => "$" + value.toLocaleString("en", {minimumFractionDigits: 2, maximumFractionDigits: 2});
const roughly = (value) => value < 10 ? money(value) : "$" + Math.round(value).toLocaleString("en");
const whole = (value) => value.toLocaleString("en");
// As cheesebench/amounts.py writes it: halves away from zero, and no digit behind the twelfth.
const rounded = (value, decimals) => (Math.round(Number((10 ** decimals * value).toPrecision(12))) / 10 ** decimals).toFixed(decimals);
const perHundred = (value) => rounded(100 * value, 1).replace(/\.0$/, "");
const percent = (value) => (value === null ? "–" : perHundred(value) + " %");

function duration(seconds) {
  if (seconds < 100) return rounded(seconds, 0) + " s";
  if (seconds < 6000) return rounded(seconds / 60, 0) + " min";
  return rounded(seconds / 3600, 1) + " h";
}

// The browser connects again by itself; the page says so meanwhile.
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
