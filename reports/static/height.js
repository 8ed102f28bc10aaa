"use strict";
// In a notebook, the page is inside a frame. It tells the frame its height.
new ResizeObserver(() => {
  window.parent.postMessage({ cheesebenchHeight: document.documentElement.offsetHeight }, "*");
}).observe(document.documentElement);
