"use strict";
// Puts the parts of the page behind tabs. Without this script, and on paper, the parts are below one another.
(function () {
  const panels = [...document.querySelectorAll("[data-tab]")];
  const nav = document.querySelector("header nav");
  if (!nav || panels.length < 2) return;
  const KEY = "cheesebench " + location.pathname;
  const list = document.createElement("div");
  list.className = "tabs";
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", "Parts of this page");
  const tabs = panels.map((panel, number) => {
    const tab = document.createElement("button");
    tab.type = "button";
    tab.textContent = panel.dataset.tab;
    tab.id = "tab-" + number;
    tab.setAttribute("role", "tab");
    panel.id = "panel-" + number;
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", tab.id);
    tab.setAttribute("aria-controls", panel.id);
    tab.addEventListener("click", () => choose(number, true));
    list.append(tab);
    return tab;
  });
  nav.replaceWith(list);

  function choose(number, remembered) {
    // On all tabs but the first, the head of the page is short, so that the pictures are in sight.
    document.documentElement.classList.toggle("short", number > 0);
    panels.forEach((panel, other) => {
      panel.hidden = other !== number;
      tabs[other].setAttribute("aria-selected", String(other === number));
      tabs[other].tabIndex = other === number ? 0 : -1;
    });
    if (remembered) try { localStorage.setItem(KEY, panels[number].dataset.tab); } catch (error) { /* not allowed to remember */ }
  }

  list.addEventListener("keydown", (event) => {
    const at = tabs.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const next = (to + tabs.length) % tabs.length;
    choose(next, true);
    tabs[next].focus();
  });

  // Show the tab of an element that a link or another script leads to.
  const reveal = (element) => {
    const found = panels.findIndex((panel) => panel.contains(element));
    if (found >= 0) choose(found, false);
  };
  document.addEventListener("reveal", (event) => reveal(event.target));
  function follow() {
    const target = document.getElementById(location.hash.slice(1));
    if (!target) return;
    reveal(target);
    target.scrollIntoView();
  }
  window.addEventListener("hashchange", follow);

  let before = 0;
  window.addEventListener("beforeprint", () => {
    before = panels.findIndex((panel) => !panel.hidden);
    for (const panel of panels) panel.hidden = false;
  });
  window.addEventListener("afterprint", () => choose(before, false));

  let known = null;
  try { known = localStorage.getItem(KEY); } catch (error) { /* not allowed to remember */ }
  choose(Math.max(0, panels.findIndex((panel) => panel.dataset.tab === known)), false);
  follow();
})();
