"use strict";
// Names for fields that the admin leaves without one, for who does not see the page.

// select2 shows a box of its own for a select and leaves the select's label behind.
function nameBoxes() {
  for (const box of document.querySelectorAll(".select2-selection:not([data-named])")) {
    const select = box.closest(".select2-container").previousElementSibling;
    const label = select && select.labels && select.labels[0];
    if (!label) continue;
    label.id ||= `${select.id}-label`;
    const shown = box.querySelector(".select2-selection__rendered");
    for (const part of [box, shown]) {
      if (!part) continue;
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
}

function nameAll() {
  nameBoxes();
  nameCells();
}

document.addEventListener("DOMContentLoaded", () => {
  nameAll();
  new MutationObserver(nameAll).observe(document.body, { childList: true, subtree: true });
});
