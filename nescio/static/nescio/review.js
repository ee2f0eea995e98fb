// Keys for those who judge many answers. They work in the form and where nothing has the
// focus, as after a click on the page, and not while a text is edited; everything works
// without this file too.
"use strict";

(() => {
  document.addEventListener("DOMContentLoaded", () => {
    const form = document.getElementById("review");
    // What is opened from a list is begun with Enter; the question stays in sight.
    form?.querySelector("[value=take]")?.focus({ preventScroll: true });
    const first = form && form.querySelector("[data-grade] input:not(:disabled)");
    if (!first || first.matches("fieldset:disabled *")) return;
    const errors = document.getElementById("errors");
    (errors || form.querySelector("[data-grade] input:checked") || first).focus();

    const grade = (key) => {
      const groups = [...form.querySelectorAll("[data-grade]")];
      const here = groups.find((group) => group.contains(document.activeElement));
      const group = here || groups.find((each) => !each.querySelector(":checked"));
      const choices = group ? group.querySelectorAll("input") : [];
      const choice = choices[Math.min(key, choices.length - 1)];
      if (!choice) return;
      choice.checked = true;
      const next = groups[groups.indexOf(group) + 1];
      (next ? next.querySelector("input") : form.querySelector("[value=judge_and_go_on]")).focus();
    };

    document.addEventListener("keydown", (event) => {
      if (event.target !== document.body && !form.contains(event.target)) return;
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        form.requestSubmit(form.querySelector("[value=judge_and_go_on]"));
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.matches("textarea, select, input[type=text]")) return;
      const digit = /^(?:Digit|Numpad)([0-9])$/.exec(event.code);
      if (event.shiftKey && digit) {
        const piece = form.querySelectorAll("[name=evidence]")[digit[1] - 1];
        if (piece) { piece.checked = !piece.checked; event.preventDefault(); }
      } else if (digit && digit[1] <= 2) {
        grade(Number(digit[1]));
        event.preventDefault();
      } else if (event.key === "e") {
        form.querySelector("[name=ideal_answer]").focus();
        event.preventDefault();
      }
    });

    // Who types a text for an entry wants it written.
    form.querySelectorAll("[data-chooses]").forEach((text) => {
      text.addEventListener("input", () => {
        form.querySelector(`[name=knowledge][value="${text.dataset.chooses}"]`).checked = true;
      });
    });
  });
})();
