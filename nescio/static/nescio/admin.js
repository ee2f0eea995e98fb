"use strict";
// What the theme leaves to who sees the page and holds a mouse: names and keys.

// select2 shows a box of its own for a select and leaves the select's label behind.
function nameBoxes() {
  for (const box of document.querySelectorAll(".select2-selection:not([data-named])")) {
    const select = box.closest(".select2-container").previousElementSibling;
    const label = select && select.labels && select.labels[0];
    if (!label) continue;
    label.id ||= `${select.id}-label`;
    const shown = box.querySelector(".select2-selection__rendered");
    if (shown.matches("ul")) shown.role = "presentation"; // of several it holds a box to search in
    for (const part of [box, shown.querySelector("input") || shown]) {
      const ids = part.getAttribute("aria-labelledby");
      part.setAttribute("aria-labelledby", ids ? `${label.id} ${ids}` : label.id);
    }
    box.dataset.named = "";
  }
}

// A table of rows has its labels at the head of the columns.
function nameCells() {
  const fields = "td[data-label] :is(input:not([type=hidden]), select, textarea)";
  for (const field of document.querySelectorAll(fields)) {
    if (field.labels.length || field.hasAttribute("aria-label")) continue;
    field.setAttribute("aria-label", field.closest("td").dataset.label);
  }
  for (const head of document.querySelectorAll(".tabular thead th:last-child")) {
    head.textContent.trim() || (head.textContent = "Delete");
  }
}

// Each scrolling part is a region with a name of its own, and a sign with a name an image.
function nameParts() {
  document.querySelector("#nav-sidebar-apps .simplebar-content-wrapper")?.setAttribute("aria-label", "Pages");
  for (const part of document.querySelectorAll("fieldset[aria-labelledby] .simplebar-content-wrapper")) {
    const heading = document.getElementById(part.closest("fieldset").getAttribute("aria-labelledby"));
    if (heading) part.setAttribute("aria-label", heading.textContent.trim());
  }
  for (const sign of document.querySelectorAll("span.help-tooltip")) sign.role = "img";
}

const CLICKED = "[x-on\\:click]:not(input, select, textarea, td, :empty)";
const PRESSED_BY_KEYS = "button, a[href]";
const ICON_NAMES = {
  close: "Close the navigation",
  computer: "Theme",
  dark_mode: "Theme",
  dock_to_right: "Navigation",
  light_mode: "Theme",
  more_horiz: "Actions",
  more_vert: "Change what is chosen",
  search: "Search",
};

// What only a click opens or switches becomes a button, and says whether it is open.
function makeButtons() {
  for (const each of document.querySelectorAll(`${CLICKED}:not([data-button])`)) {
    each.dataset.button = "";
    if (!each.matches(PRESSED_BY_KEYS)) {
      each.role = "button";
      each.tabIndex = 0;
    }
    const opens = each.getAttribute("x-on:click").match(/^(\w+) = !\1\b/);
    if (opens) each.setAttribute("x-bind:aria-expanded", opens[1]);
  }
}

// An icon is a word in a font of signs: its button is named in words of ours.
function nameIcons() {
  const icons = ".material-symbols-outlined:not([data-named])";
  for (const icon of document.querySelectorAll(icons)) {
    icon.dataset.named = "";
    const holder = icon.closest("a, button, [role=button]");
    const name = icon.textContent.trim();
    if (holder && holder.textContent.trim() === name && !holder.title) {
      holder.ariaLabel ||= ICON_NAMES[name] || name.replaceAll("_", " ");
    }
    if (holder !== icon) icon.ariaHidden = "true";
  }
}

// Of the words for each choice of a select, those for the chosen one.
function showChosen() {
  for (const part of document.querySelectorAll("[data-for]")) {
    const select = document.getElementById(part.dataset.for);
    part.hidden = Boolean(select) && select.value !== part.dataset.value;
  }
}

function press(event) {
  const at = event.target;
  if (!at.matches(`[data-button]:not(${PRESSED_BY_KEYS})`)) return;
  if (event.repeat || (event.key !== "Enter" && event.key !== " ")) return;
  event.preventDefault();
  at.click();
}

// A letter in a list chooses there: the theme would take it as the key of its search.
function keepLetter(event) {
  if (event.key.length === 1 && event.target.matches("select")) event.stopPropagation();
}

function complete() {
  nameBoxes();
  nameCells();
  nameParts();
  makeButtons();
  nameIcons();
  showChosen();
}

document.addEventListener("change", showChosen);
document.addEventListener("keydown", press);
document.addEventListener("keydown", keepLetter);
document.addEventListener("DOMContentLoaded", () => {
  complete();
  // The theme hides the page until it has started; a browser may have looked before.
  if (document.activeElement === document.body) document.querySelector("[autofocus]")?.focus();
  new MutationObserver(complete).observe(document.body, { childList: true, subtree: true });
});

// The theme names the first of several chosen files; say how many there are.
document.addEventListener("change", (event) => {
  const { files, type } = event.target;
  if (type !== "file" || files.length < 2) return;
  const shown = event.target.closest("label")?.querySelector("input[type=text]");
  shown?.setAttribute("value", `${files.length} files`);
});
