// Keys for the inbox: j and k go through it, a assigns to oneself, s snoozes. Everything
// works without this file too.
"use strict";

(() => {
  const items = () => [...document.querySelectorAll("#inbox [data-item]")];
  const here = () => items().findIndex((item) => item.contains(document.activeElement));
  const go = (place) => {
    const all = items();
    const item = all[Math.max(0, Math.min(place, all.length - 1))];
    if (item) {
      item.querySelector("[data-opens]").focus({ preventScroll: true });
      item.scrollIntoView({ block: "nearest" });
    }
  };

  // What was dealt with leaves the list: the next one takes its place.
  let place = -1;
  document.addEventListener("htmx:beforeRequest", (event) => {
    place = event.detail.elt.matches("[data-item] form") ? here() : -1;
  });
  document.addEventListener("htmx:afterSettle", () => {
    if (place >= 0) {
      go(place);
      place = -1;
    }
  });

  const close = () => {
    const open = document.querySelector("#inbox details[open]");
    if (open) {
      open.open = false;
      open.querySelector("summary").focus();
    }
  };

  const snooze = (item) => {
    const menu = item.querySelector("[data-snooze]");
    if (menu) {
      menu.open = true;
      menu.querySelector("button").focus();
    } else {
      item.querySelector("[data-snoozes]").click();
    }
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      close();
      return;
    }
    if (event.target.matches("input, textarea, select")) return;
    const at = here();
    const item = items()[at];
    if (event.key === "j") {
      go(at + 1);
    } else if (event.key === "k") {
      go(at - 1);
    } else if (event.key === "a" && item) {
      item.querySelector("[data-takes]")?.click();
    } else if (event.key === "s" && item) {
      snooze(item);
    } else {
      return;
    }
    event.preventDefault();
  });
})();
