// Copies what a button names: the content of a template, or the text of an element.
"use strict";

(() => {
  const write = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // No clipboard outside a secure context: the old way, by a selection.
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };

  const copy = async (button) => {
    const source = document.getElementById(button.dataset.copies);
    await write((source.content ?? source).textContent.trim());
    const label = button.querySelector("[data-label]");
    const before = label.textContent;
    label.textContent = "Copied";
    const region = document.getElementById("announcement");
    if (region) region.textContent = "Copied.";
    setTimeout(() => { label.textContent = before; }, 2000);
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copies]");
    if (button) copy(button);
  });
  document.addEventListener("DOMContentLoaded", () => {
    for (const button of document.querySelectorAll("[data-copies]")) button.hidden = false;
  });
})();
