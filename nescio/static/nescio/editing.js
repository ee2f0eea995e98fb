// An entry is edited in its place, on its own page and on those of the admin that show it:
// e begins, Ctrl+Enter saves, Escape leaves. It works by plain links and forms too.
"use strict";

(() => {
  const isTyping = (element) =>
    element.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName);
  const isChanged = (field) => field.matches("select")
    ? !field.selectedOptions[0]?.defaultSelected
    : field.matches("input, textarea") && field.value !== field.defaultValue;
  const openForm = () => document.getElementById("entry-form");

  const edits = (event) => {
    const at = event.target;
    const form = openForm();
    const isHeld = event.ctrlKey || event.metaKey;
    if (!form && event.key === "e" && !isHeld && !event.altKey && !isTyping(at)) {
      // Of several entries on a page it is the one where the focus is, or the first.
      const near = at.closest("article, section")?.querySelector("[data-edits]");
      const begin = near || document.querySelector("[data-edits]");
      begin?.click();
      return Boolean(begin);
    }
    if (!form || event.isComposing) {
      return false;
    }
    if (event.key === "Enter" && isHeld && form.contains(at)) {
      form.requestSubmit();
      return true;
    }
    if (event.key === "Escape") {
      const isTyped = "unsaved" in form.dataset || [...form.elements].some(isChanged);
      if (!isTyped || window.confirm("Leave without saving what you typed?")) {
        form.querySelector("[data-cancels]").click();
      }
      return true;
    }
    return false;
  };
  document.addEventListener("keydown", (event) => {
    if (edits(event)) {
      event.preventDefault();
    }
  });

  // Once the form is gone, the focus is again where the editing began; if that is gone as
  // well, for the entry is due no more, on what undoes it.
  let returns = "";
  document.addEventListener("htmx:beforeRequest", (event) => {
    const at = event.detail.elt;
    returns = at.dataset.returns || returns;
    if (at.matches("[data-edits]")) {
      document.querySelector(".edited")?.remove(); // of what was edited before
    }
  });
  document.addEventListener("htmx:afterRequest", () => {
    if (returns && !openForm() && !document.getElementById(returns)) {
      document.querySelector(".edited button")?.focus();
      returns = "";
    }
  });
  document.addEventListener("htmx:afterSettle", () => {
    const place = returns && !openForm() && document.getElementById(returns);
    if (place) {
      place.focus();
      document.querySelector(".edited")?.scrollIntoView({ block: "nearest" });
      returns = "";
    }
  });

  // What only works with scripts is hidden until they run.
  document.addEventListener("htmx:load", (event) => {
    for (const hint of event.detail.elt.querySelectorAll("[data-scripted]")) {
      hint.hidden = false;
    }
  });

  // The admin has no words for what fails: its own page says why an entry is not edited.
  document.addEventListener("htmx:responseError", (event) => {
    const at = event.detail.elt;
    if (at.matches("[data-edits]")) {
      window.location.assign(at.href);
    } else if (at === openForm()) {
      const said = document.createElement("p");
      said.className = "error";
      said.role = "alert";
      said.textContent = `It is not saved (error ${event.detail.xhr.status}). What you typed is still here; try again.`;
      at.prepend(said);
    }
  });
})();
