"use strict";
// What the theme leaves without a name, or out of reach of the keyboard; it makes parts of its pages as they come into sight.
(function () {
  let count = 0;
  function name() {
    for (const search of document.querySelectorAll(".md-search:not([aria-label])")) search.setAttribute("aria-label", "Search");
    for (const wide of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) wide.tabIndex = 0;
    for (const buttons of document.querySelectorAll(".md-code__nav:not([data-named])")) {
      buttons.dataset.named = "";
      buttons.setAttribute("aria-label", "Code " + ++count);
    }
  }
  new MutationObserver(name).observe(document.documentElement, { childList: true, subtree: true });
  name();
})();
